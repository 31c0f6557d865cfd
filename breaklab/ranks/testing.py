"""Collects what a fork of the warm parent reports while it runs pytest."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from breaklab.errors import RunError
from breaklab.i18n import _
from breaklab.ranks.jobs import TestJob, TestOutcome, TestReport, TestResult
from breaklab.ranks.link import JobLink
from breaklab.ranks.startup import refusal
from breaklab.ranks.stream import TextLog
from breaklab.ranks.suite import NO_PYTEST

OnResult = Callable[[TestResult], None]


def collect_tests(job: TestJob, link: JobLink, on_result: OnResult | None) -> TestReport | None:
    """Follow a test job to its end or its time limit; None when it could not be served at all."""
    collector = _Collector(on_result)
    started = time.monotonic()
    deadline = started + job.timeout_s
    timed_out = False
    while not link.finished:
        messages, chunks = link.poll(
            min(1.0, deadline - time.monotonic()) if not timed_out else 1.0
        )
        for message in messages:
            collector.take(message)
        for _index, data in chunks:
            collector.output.add(data)
        if not timed_out and not link.ended and time.monotonic() >= deadline:
            timed_out = True
            link.end()
    return collector.report(time.monotonic() - started, timed_out)


class _Collector:
    """The results so far, and the test that is running."""

    def __init__(self, on_result: OnResult | None) -> None:
        self._on_result = on_result
        self._results: list[TestResult] = []
        self._running = ""
        self._exit_code: int | None = None
        self._origins: dict[str, str] = {}
        self._lines_run: dict[str, tuple[str, ...]] = {}
        self.output = TextLog()

    def take(self, message: dict[str, Any]) -> None:
        """Take one message of the test process or of the warm parent."""
        match message["kind"]:
            case "test-started":
                self._running = message["nodeid"]
            case "test":
                self._running = ""
                self._add(_result(message))
            case "finished":
                self._origins = message["origins"]
            case "lines":
                self._lines_run[message["nodeid"]] = tuple(message["places"])
            case "refused":
                raise refusal(message)
            case "supervisor-ended":
                self._exit_code = message["exit_code"]

    def _add(self, result: TestResult) -> None:
        self._results.append(result)
        if self._on_result is not None:
            self._on_result(result)

    def report(self, duration_s: float, timed_out: bool) -> TestReport | None:
        """Return the report; the test that never ended counts as an error."""
        if self._exit_code is None and not timed_out:
            return None
        if self._exit_code == NO_PYTEST:
            raise RunError(
                _("The lab's interpreter has no pytest."),
                hint=_("Install pytest there, or remove `python` from lab.yaml to use ours."),
            )
        if self._running:
            reason = (
                _("was still running when the time limit struck")
                if timed_out
                else _("ended the test process")
            )
            self._add(TestResult(self._running, TestOutcome.ERROR, 0.0, reason, reason))
        return TestReport(
            results=tuple(self._results),
            exit_code=self._exit_code if self._exit_code is not None else -9,
            timed_out=timed_out,
            duration_s=duration_s,
            output=self.output.text(),
            origins=self._origins,
            lines_run=self._lines_run,
        )


def _result(message: dict[str, Any]) -> TestResult:
    return TestResult(
        nodeid=message["nodeid"],
        outcome=TestOutcome(message["outcome"]),
        duration_s=message["duration_s"],
        message=message.get("message", ""),
        reason=message.get("reason", ""),
    )
