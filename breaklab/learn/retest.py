"""Tests again at every save: first the ones the break turns red, then, once green, all of them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from breaklab.model import BreakSpec, Lab, Project
from breaklab.ranks.jobs import TestJob, TestOutcome, TestReport, TestResult
from breaklab.ranks.warm import WarmParent

_TIMEOUT_S = 600.0
_RED = (TestOutcome.FAILED, TestOutcome.ERROR)

Fingerprint = dict[str, tuple[int, int]]


def fingerprint(folders: Iterable[Path]) -> Fingerprint:
    """Return when each Python file was changed, and its size.

    Looked at again and again instead of waiting for events of the file system: those are missed on
    WSL, network drives and in some containers.
    """
    found: Fingerprint = {}
    for folder in folders:
        for root, inner, files in os.walk(folder):
            inner[:] = [name for name in inner if not name.startswith((".", "__"))]
            for name in files:
                if name.endswith(".py"):
                    path = os.path.join(root, name)  # noqa: PTH118 - ten times a second
                    try:
                        status = os.stat(path)  # noqa: PTH116
                    except OSError:
                        continue  # an editor is just replacing it
                    found[path] = (status.st_mtime_ns, status.st_size)
    return found


@dataclass(frozen=True)
class Verdict:
    """What the tests said about the tree as it was at one save."""

    report: TestReport
    whole: bool  # all tests were run, not only the ones that the break turns red


class _SupersededError(Exception):
    """A newer save made this run of the tests pointless."""


class Retester:
    """Runs tests in the background whenever a file changes; ask it often with :meth:`poll`.

    Args:
        project: the learner's project.
        lab: whose source and tests are watched.
        spec: the applied break; its red tests come first.
        warm: the parent that tests are forked from; closing it ends a run that is under way.
    """

    def __init__(self, project: Project, lab: Lab, spec: BreakSpec, warm: WarmParent) -> None:
        self._project = project
        self._lab = lab
        self._red = spec.red
        self._warm = warm
        # More than one, so that a test which hangs does not hold up the next save's.
        self._pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="tests")
        self._seen: Fingerprint = {}
        self._saves = 0  # how many changes were noticed; each run belongs to one
        self._future: Future[Verdict] | None = None
        self._results: list[TestResult] = []  # of the run that is under way

    @property
    def num_done(self) -> int:
        """How many tests of the run that is under way have ended."""
        return len(self._results)

    @property
    def num_red(self) -> int:
        """How many of those failed."""
        return sum(result.outcome in _RED for result in list(self._results))

    @property
    def is_testing(self) -> bool:
        """Whether a run of the tests is under way."""
        return self._future is not None

    def poll(self) -> Verdict | None:
        """Look for changes and for an answer; return a verdict once it is there.

        Raises:
            RunError: the tests could not be started.
        """
        seen = fingerprint((self._lab.source, self._lab.tests))
        if seen != self._seen:
            self._seen = seen
            self._start(self._red)
        if self._future is None or not self._future.done():
            return None
        future, self._future = self._future, None
        if isinstance(future.exception(), _SupersededError):
            return None
        verdict = future.result()
        if verdict.report.green and not verdict.whole:
            self._start(())
        return verdict

    def test_all(self) -> None:
        """Run all tests now, whatever was saved."""
        self._start(())

    def stop(self) -> None:
        """Give up a run that is under way; the next :meth:`poll` begins it anew."""
        if self._future is not None:
            self._saves += 1
            self._future.cancel()
            self._future, self._results = None, []
            self._seen = {}

    def close(self) -> None:
        """Wait for the thread; close the warm parent before, or the run goes on to its end."""
        self._saves += 1
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _start(self, targets: tuple[str, ...]) -> None:
        self._saves += 1
        if self._future is not None:
            self._future.cancel()
        self._results = []
        self._future = self._pool.submit(self._run, targets, self._saves, self._results)

    def _run(self, targets: tuple[str, ...], save: int, results: list[TestResult]) -> Verdict:
        def take(result: TestResult) -> None:
            if save != self._saves:
                raise _SupersededError
            results.append(result)

        root = self._project.root
        everything = (self._lab.tests.relative_to(root).as_posix(),)
        job = TestJob(root, self._lab.source, targets or everything, _TIMEOUT_S)
        report = self._warm.run_tests(job, take)
        return Verdict(report, whole=not targets)
