"""One candidate bug after another on the same lab, tests and mutated lines: four ways, ratios.

    python benchmarks/mutants.py --tools /tmp/tools [--count 20] [--module sampler]
        [--tests tests/phase35/test_sharding.py] [--select EXPRESSION]

cosmic-ray makes the mutants of one module of the lab and runs its tests on a sample of them; then a
cold pytest and breaklab's warm parent do the same, mutant by mutant; mutmut, which makes mutants of
its own, is tried. Each way stops at a mutant's first red test. cosmic-ray and mutmut live in an
environment of their own, ``--tools``, made with pip if it is not there.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

from breaklab.inject.scope import can_notice, telling_lines
from breaklab.prove.scratch import Scratch, scratch_copy
from breaklab.ranks.launch import warm_parent
from breaklab.spec.project import find_project, load_labs

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("cosmic-ray==8.7.0", "mutmut==3.8.1")
MUTMUT_LIMIT_S = 180.0
LIMIT_S = 120.0  # for the tests of one mutant


@dataclass(frozen=True)
class Mutant:
    """One mutated module, and what cosmic-ray found with it."""

    source: bytes
    killed: bool


def tool(tools: Path, name: str) -> str:
    """Return the path of a tool, installing all if need be."""
    if not (tools / "bin" / name).exists():
        subprocess.run([sys.executable, "-m", "venv", str(tools)], check=True)
        subprocess.run([tools / "bin" / "pip", "install", "--quiet", *TOOLS], check=True)
    return str(tools / "bin" / name)


def pytest_command(options: argparse.Namespace) -> list[str]:
    """The command that every cold way runs for a mutant."""
    select = ["-k", options.select] if options.select else []
    quiet = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    return [sys.executable, "-m", "pytest", *quiet, options.tests, *select]


def by_cosmic_ray(root: Path, module: Path, options: argparse.Namespace) -> list[Mutant]:
    """Let cosmic-ray judge a sample of its mutants; print its seconds for each."""
    command = " ".join(f"'{word}'" if " " in word else word for word in pytest_command(options))
    (root / "cr.toml").write_text(
        f'[cosmic-ray]\nmodule-path = "{module}"\ntimeout = {LIMIT_S}\nexcluded-modules = []\n'
        f'test-command = "{command}"\n[cosmic-ray.distributor]\nname = "local"\n'
    )
    cosmic_ray = tool(options.tools, "cosmic-ray")
    subprocess.run([cosmic_ray, "init", "cr.toml", "cr.sqlite"], cwd=root, check=True)
    with closing(sqlite3.connect(root / "cr.sqlite")) as session:
        order = "start_pos_row, start_pos_col, operator_name, occurrence"
        query = f"select job_id from mutation_specs order by {order}"
        jobs = [row[0] for row in session.execute(query)]
        step = max(1, len(jobs) // options.count)
        kept = jobs[step // 2 :: step][: options.count]
        places = ",".join("?" * len(kept))
        for table in ("work_items", "mutation_specs"):
            session.execute(f"delete from {table} where job_id not in ({places})", kept)
        session.commit()
    started = time.monotonic()
    subprocess.run([cosmic_ray, "exec", "cr.toml", "cr.sqlite"], cwd=root, check=True)
    report("cosmic-ray", [(time.monotonic() - started) / len(kept)])
    with closing(sqlite3.connect(root / "cr.sqlite")) as session:
        rows = session.execute("select diff, test_outcome from work_results").fetchall()
    pristine = (root / module).read_bytes()
    return [Mutant(patched(diff, pristine), how != "SURVIVED") for diff, how in rows]


def patched(diff: str, pristine: bytes) -> bytes:
    """Return the module with a mutation's diff, one hunk, applied."""
    lines = pristine.decode().split("\n")
    header, *hunk = diff[diff.index("@@ -") :].split("\n")
    first, _comma, count = header.split()[1].removeprefix("-").partition(",")
    start = int(first) - 1
    new = [line[1:] for line in hunk if line[:1] in ("+", " ")]
    old = [line[1:] for line in hunk if line[:1] in ("-", " ")]
    assert lines[start : start + len(old)] == old, (header, count)
    return "\n".join([*lines[:start], *new, *lines[start + len(old) :]]).encode()


def by_cold_pytest(
    root: Path, module: Path, mutants: list[Mutant], options: argparse.Namespace
) -> list[bool]:
    """Run pytest anew for each mutant."""
    command, killed, seconds = pytest_command(options), [], []
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    for mutant in mutants:
        (root / module).write_bytes(mutant.source)
        started = time.monotonic()
        done = subprocess.run(command, cwd=root, capture_output=True, env=env, timeout=LIMIT_S)
        seconds.append(time.monotonic() - started)
        killed.append(done.returncode != 0)
    report("cold pytest", seconds)
    return killed


def by_breaklab(mutants: list[Mutant], module: Path, options: argparse.Namespace) -> list[bool]:
    """Fork pytest from one warm parent for each mutant, for the tests that get to its lines."""
    project = find_project(ROOT)
    lab = load_labs(project)[0]
    arguments = ("-x", *(("-k", options.select) if options.select else ()))
    in_source = (ROOT / module).relative_to(lab.source).as_posix()
    pristine = (ROOT / module).read_bytes()
    with ExitStack() as stack:
        warm = stack.enter_context(warm_parent(lab))
        copies = [
            stack.enter_context(scratch_copy(project, lab, parent=warm.folder())) for _job in "ab"
        ]
        control = warm.run_tests(copies[0].tests((options.tests,), trace_lines=True))
        if not control.green:
            raise SystemExit("the pristine lab is not green")

        def judge(scratch: Scratch, mutant: Mutant) -> bool:
            lines = telling_lines(pristine, mutant.source)
            tests = tuple(
                node
                for node, run in control.lines_run.items()
                if lines is None or can_notice(run, in_source, lines)
            )
            if not tests:
                return False
            scratch.path(module).write_bytes(mutant.source)
            job = replace(scratch.tests(tests), pytest_args=arguments, timeout_s=LIMIT_S)
            return not warm.run_tests(job).green

        for num_jobs in (1, 2):
            started = time.monotonic()
            killed = in_turns(copies[:num_jobs], mutants, judge)
            wall_s = time.monotonic() - started
            report(f"breaklab, {num_jobs} at a time", [wall_s / len(mutants)])
    print(f"{'':24} once, the control run of these tests: {control.duration_s:.1f} s")
    return killed


def in_turns(
    copies: list[Scratch], mutants: list[Mutant], judge: Callable[[Scratch, Mutant], bool]
) -> list[bool]:
    """Judge the mutants, each scratch copy taking every n-th."""
    killed = [False] * len(mutants)

    def work(first: int) -> None:
        for index in range(first, len(mutants), len(copies)):
            killed[index] = judge(copies[first], mutants[index])

    with ThreadPoolExecutor(len(copies)) as pool:
        list(pool.map(work, range(len(copies))))
    return killed


def by_mutmut(root: Path, module: Path, options: argparse.Namespace) -> None:
    """Try mutmut on the same module and tests, for a while; say how it went."""
    (root / "setup.cfg").write_text(
        f"[mutmut]\nsource_paths={module}\n"
        f"pytest_add_cli_args_test_selection={options.tests}\nalso_copy=\n  labs\n"
        "  tests\n  pyproject.toml\n"
    )
    paths = os.pathsep.join([str(ROOT), *(entry for entry in sys.path if "site-packages" in entry)])
    env = {**os.environ, "PYTHONPATH": paths}
    command = [tool(options.tools, "mutmut"), "run", "--max-children", "2"]
    try:
        done = subprocess.run(
            command, cwd=root, capture_output=True, text=True, env=env, timeout=MUTMUT_LIMIT_S
        )
    except subprocess.TimeoutExpired as error:
        last = (error.stdout or b"").decode(errors="replace").strip().splitlines()[-1:]
        print(f"mutmut: not done after {MUTMUT_LIMIT_S:.0f} s; its last line: {''.join(last)}")
        return
    last = (done.stdout + done.stderr).strip().splitlines()[-3:]
    print(f"mutmut: exit code {done.returncode}; it says: {' / '.join(last)}")


_seconds: dict[str, float] = {}


def report(way: str, seconds: list[float]) -> None:
    """Print and keep the seconds of one way."""
    _seconds[way] = statistics.fmean(seconds)
    print(f"{way:24} {_seconds[way]:7.2f} s a mutant", flush=True)


def main() -> None:
    """Print a table of seconds for each mutant, and the ratios to breaklab's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", type=Path, required=True)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--module", default="sampler")
    parser.add_argument("--tests", default="tests/phase35/test_sharding.py")
    parser.add_argument("--select", default="", help="as pytest's -k")
    options = parser.parse_args()
    project = find_project(ROOT)
    lab = load_labs(project)[0]
    module = (lab.source / "minidp" / f"{options.module}.py").relative_to(ROOT)
    with (
        tempfile.TemporaryDirectory() as folder,
        scratch_copy(project, lab, parent=Path(folder)) as scratch,
    ):
        root = scratch.project.root
        (root / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
        mutants = by_cosmic_ray(root, module, options)
        cold = by_cold_pytest(root, module, mutants, options)
        (root / module).write_bytes((ROOT / module).read_bytes())
        warm = by_breaklab(mutants, module, options)
        best = _seconds["breaklab, 2 at a time"]
        for way, seconds in _seconds.items():
            print(f"{way:24} {seconds / best:7.1f} times breaklab's, 2 at a time")
        same = sum(m.killed == c == w for m, c, w in zip(mutants, cold, warm, strict=True))
        print(f"the same verdict three ways: {same} of {len(mutants)}")
        by_mutmut(root, module, options)


if __name__ == "__main__":
    main()
