"""What `breaklab lint` of 100 specs costs, beside what it can't do without.

Two floors. The plain one is what a first script for it would do before it looks at anything: import
LibCST and PyYAML, `yaml.safe_load` each spec, parse the source of each. The bare one parses with
PyYAML's C parser, and each source once however many specs change it; so does lint. All are timed as
processes, in turn, by their CPU time, of which the least of several counts: it depends least on
what else the machine does.

    python benchmarks/lint_cost.py [--specs 100] [--times 5]

Exit code 1 when lint takes more than 1.5 times the plain floor.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

REPO = Path(__file__).resolve().parents[1]
GOAL = 1.5
BARE = """
import sys
from pathlib import Path
import libcst
import yaml
loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
for path in sorted(Path("breaks").glob("*.yaml")):
    yaml.compose(path.read_bytes(), Loader=loader)
for source in sys.argv[1:]:
    libcst.parse_module(Path(source).read_bytes())
"""
PLAIN = """
from pathlib import Path
import libcst
import yaml
for path in sorted(Path("breaks").glob("*.yaml")):
    file = yaml.safe_load(path.read_text())["inject"]["file"]
    libcst.parse_module(Path("labs/phase35", file).read_bytes())
"""


def make_project(root: Path, count: int) -> list[str]:
    """Copy lab, tests and settings, and the catalogue again and again; return the sources."""
    for name in ("labs", "tests/phase35"):
        shutil.copytree(REPO / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(REPO / "pyproject.toml", root)
    (root / "breaks").mkdir()
    originals = sorted((REPO / "breaks").glob("[0-9]*.yaml"))
    sources = set()
    for number in range(count):
        text = originals[number % len(originals)].read_text()
        sources.add(f"labs/phase35/{yaml.safe_load(text)['inject']['file']}")
        text = re.sub(r"^bug-id: .*$", f"bug-id: 99-{number:03}", text, count=1, flags=re.M)
        text = re.sub(r"^slug: .*$", rf"\g<0>-{number}", text, count=1, flags=re.M)
        text = re.sub(r"^prerequisites: .*\n", "", text, flags=re.M)
        (root / "breaks" / f"99-{number:03}.yaml").write_text(text)
    return sorted(sources)


def cpu_seconds(command: list[str], cwd: Path) -> float:
    """Return the CPU time of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{command[:4]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Print both times and the ratio; 1 when it is above the goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--specs", type=int, default=100)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    os.environ["BREAKLAB_LANG"] = "en"
    with tempfile.TemporaryDirectory(prefix="lint-") as folder:
        root = Path(folder)
        sources = make_project(root, options.specs)
        lint = [sys.executable, "-m", "breaklab", "lint"]
        python = [sys.executable, "-c"]
        commands = [lint, [*python, PLAIN], [*python, BARE, *sources]]
        rounds = [
            [cpu_seconds(command, root) for command in commands] for _ in range(options.times)
        ]
    ours, plain, bare = (min(times) for times in zip(*rounds, strict=True))
    print(f"{options.specs} specs, {len(sources)} sources, CPU time, least of {options.times}:")
    print(f"  breaklab lint                     {ours:6.3f} s, {ours / options.specs:.4f} per spec")
    print(f"  plain floor: parse all            {plain:6.3f} s, ratio {ours / plain:5.2f}")
    print(f"  bare floor: C parser, sources once{bare:6.3f} s, ratio {ours / bare:5.2f}")
    print(f"  goal: below {GOAL} times the plain floor")
    return int(ours >= GOAL * plain)


if __name__ == "__main__":
    sys.exit(main())
