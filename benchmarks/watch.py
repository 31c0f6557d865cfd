"""How long from saving a file to the verdict of `breaklab watch`, against a cold pytest?

For each break, on a copy of the project: put it in, then save the source again and again with
another comment at its end, and measure until the first red test is known and until all tests that
the break turns red have run. The cold pytest runs the same tests in a new process each time. Saves
and cold runs take turns, so that a change of the machine's load touches both alike.

    python benchmarks/watch.py [BUG_ID ...] [--rounds 5] [--project FOLDER]
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from breaklab.inject.edit import inject
from breaklab.learn.retest import Retester
from breaklab.model import BreakSpec, Lab
from breaklab.ranks.launch import warm_parent
from breaklab.spec.catalogue import load_catalogue
from breaklab.spec.project import find_project, lab_of

NUM_BREAKS = 5
POLL_S = 0.005
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".breaklab", "__pycache__", ".*_cache")


def until_verdict(retester: Retester) -> tuple[float, float]:
    """Return the seconds until the first red test, and until the verdict."""
    started = time.perf_counter()
    first_red = 0.0
    while True:
        verdict = retester.poll()
        seconds = time.perf_counter() - started
        if not first_red and retester.is_testing and retester.num_red:
            first_red = seconds
        if verdict is not None:
            return first_red or seconds, seconds
        time.sleep(POLL_S)


def cold_pytest(spec: BreakSpec, lab: Lab, root: Path) -> float:
    started = time.perf_counter()
    env = {**os.environ, "PYTHONPATH": str(lab.source)}
    command = [sys.executable, "-m", "pytest", "-q", *spec.red]
    subprocess.run(command, cwd=root, env=env, capture_output=True, check=False)
    return time.perf_counter() - started


def measure(bug_id: str, root: Path, rounds: int) -> tuple[float, float, float, int]:
    project = find_project(root)
    spec = load_catalogue(project).find(bug_id)
    lab = lab_of(project, spec)
    source = lab.root / spec.inject.file
    pristine = source.read_bytes()
    broken = inject(pristine, spec.inject, path=spec.inject.file).source
    source.write_bytes(broken)
    times = []
    with warm_parent(lab) as warm:
        retester = Retester(project, lab, spec, warm)
        until_verdict(retester)  # starts the warm parent
        for number in range(rounds):
            source.write_bytes(broken + b"\n# %d\n" % number)
            times.append((*until_verdict(retester), cold_pytest(spec, lab, root)))
    retester.close()
    source.write_bytes(pristine)
    first, verdict, cold = (statistics.median(column) for column in zip(*times, strict=True))
    return first, verdict, cold, len(spec.red)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bug_ids", nargs="*", metavar="BUG_ID")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--project", type=Path, default=Path(__file__).resolve().parents[1])
    options = parser.parse_args()

    bug_ids = options.bug_ids or list(load_catalogue(find_project(options.project)).specs)
    print(f"{'break':<8}{'tests':>6}{'first red s':>13}{'verdict s':>11}{'cold s':>9}{'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        shutil.copytree(options.project, root, ignore=LEFT_OUT)
        for bug_id in bug_ids[:NUM_BREAKS]:
            first, verdict, cold, tests = measure(bug_id, root, options.rounds)
            print(
                f"{bug_id:<8}{tests:>6}{first:>13.2f}{verdict:>11.2f}{cold:>9.2f}"
                f"{cold / verdict:>7.1f}"
            )


if __name__ == "__main__":
    main()
