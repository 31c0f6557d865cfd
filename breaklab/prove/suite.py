"""Run a lab's whole suite on several cores: one job for each test file, a few at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from breaklab.ranks.jobs import TestJob, TestReport, TestResult
from breaklab.ranks.warm import WarmParent

NUM_JOBS = 2  # tests start up to four ranks each; more jobs than this only wait for each other


def run_suite(
    warm: WarmParent,
    job: TestJob,
    on_result: Callable[[TestResult], None] | None = None,
    *,
    num_jobs: int = NUM_JOBS,
) -> TestReport:
    """Run the test files below the targets of ``job``, and return one report for all.

    Args:
        warm: the parent to fork from.
        job: its targets are files, folders or node ids; folders are taken apart.
        on_result: sees each test as it ends; called from several threads.
        num_jobs: how many files are run at a time.

    Raises:
        RunError: the tests could not be started, or the warm parent died.
    """
    files = _largest_first(job.root, [f for t in job.targets for f in _files(job.root, t)])
    if len(files) < 2:
        return warm.run_tests(job, on_result)
    started = time.monotonic()
    with ThreadPoolExecutor(max_workers=num_jobs) as pool:
        jobs = [replace(job, targets=(file,)) for file in files]
        reports = list(pool.map(lambda each: warm.run_tests(each, on_result), jobs))
    return _merged(reports, started)


def _files(root: Path, target: str) -> list[str]:
    folder = root / target
    if not folder.is_dir():
        return [target]
    patterns = ("test_*.py", "*_test.py")
    found = {file for pattern in patterns for file in folder.rglob(pattern)}
    return sorted(file.relative_to(root).as_posix() for file in found)


def _largest_first(root: Path, files: Sequence[str]) -> list[str]:
    """Sort by size, so that no long file begins last while the other cores have nothing to do."""

    def size(target: str) -> int:
        path = root / target.partition("::")[0]
        return path.stat().st_size if path.is_file() else 0

    return sorted(dict.fromkeys(files), key=lambda target: (-size(target), target))


def _merged(reports: Sequence[TestReport], started: float) -> TestReport:
    # 5 is pytest's "no tests were collected"; one file without tests is no failure of the suite.
    failed = [report.exit_code for report in reports if report.exit_code not in (0, 5)]
    results = [result for report in reports for result in report.results]
    return TestReport(
        results=tuple(sorted(results, key=lambda result: result.nodeid.partition("::")[0])),
        exit_code=failed[0] if failed else (0 if results else 5),
        timed_out=any(report.timed_out for report in reports),
        duration_s=time.monotonic() - started,
        output="\n".join(report.output for report in reports),
        origins={name: file for report in reports for name, file in report.origins.items()},
        lines_run={node: run for report in reports for node, run in report.lines_run.items()},
    )
