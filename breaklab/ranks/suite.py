"""pytest inside a fork of the warm parent: settings of ours only, one message for each test."""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
from pathlib import Path
from typing import Any

from breaklab.ranks.jobs import TestJob, TestOutcome
from breaklab.ranks.lines_run import LinesRun, flush_lines, record_lines
from breaklab.ranks.source import origins, run_from
from breaklab.ranks.wire import send_message

MAX_TEXT = 20_000  # characters of one failure's representation
NO_PYTEST = 71  # exit code: the interpreter has no pytest
_PLUGIN = "breaklab.pytest_plugin"


def run_pytest(job: TestJob, channel: socket.socket, output_fd: int, folder: Path) -> int:
    """Run pytest as ``job`` says, in this process; return its exit code.

    The project's own pytest settings, plugins and environment variables do not count: a proof must
    mean the same on every machine.
    """
    for fd in (1, 2):
        os.dup2(output_fd, fd)
    os.close(output_fd)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.chdir(job.root)
    run_from(job.source)
    try:
        import pytest
    except ImportError:
        return NO_PYTEST
    arguments = _arguments(job, folder)
    sys.argv = ["pytest", *arguments]
    send_message(channel, "started", pids=[os.getpid()])
    lines_run = LinesRun(job.source.resolve(), folder / "lines.jsonl")
    if job.trace_lines:
        record_lines(lines_run)
    code = int(pytest.main(arguments, plugins=[_Recorder(channel, lines_run)]))
    for nodeid, places in lines_run.read().items():
        send_message(channel, "lines", nodeid=nodeid, places=places)
    send_message(channel, "finished", exit_code=code, origins=origins(job.source))
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _arguments(job: TestJob, folder: Path) -> list[str]:
    root = str(job.root)
    plugin = ["-p", _PLUGIN] if importlib.util.find_spec(_PLUGIN) else []
    return [
        *("-c", os.devnull),
        *("--rootdir", root),
        *("--confcutdir", root),
        *("--basetemp", str(folder / "tmp")),
        *("-p", "no:cacheprovider"),
        *plugin,
        "--import-mode=importlib",
        "--color=no",
        *job.pytest_args,
        *job.targets,
    ]


class _Recorder:
    """Sends a message when a test begins, and its result when it has ended."""

    def __init__(self, channel: socket.socket, lines_run: LinesRun) -> None:
        self._channel = channel
        self._lines_run = lines_run
        self._result: dict[str, Any] = {}

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Say which test runs, so that a time limit or a crash can name it."""
        self._result = {"outcome": TestOutcome.PASSED, "duration_s": 0.0}
        self._lines_run.begin(nodeid)
        send_message(self._channel, "test-started", nodeid=nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Fold the report of one phase (set-up, call, tear-down) into the test's result."""
        self._result["duration_s"] += report.duration
        if report.failed:
            outcome = TestOutcome.FAILED if report.when == "call" else TestOutcome.ERROR
            if self._result["outcome"] != TestOutcome.FAILED:
                self._result.update(outcome=outcome, **_texts(report))
        elif report.skipped:
            self._result.update(outcome=TestOutcome.SKIPPED, **_texts(report))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Send the result of one test."""
        flush_lines()
        send_message(self._channel, "test", nodeid=nodeid, **self._result)

    def pytest_collectreport(self, report: Any) -> None:
        """Send a file that can't be collected as a test with an error."""
        if report.failed:
            send_message(
                self._channel,
                "test",
                nodeid=report.nodeid,
                outcome=TestOutcome.ERROR,
                duration_s=0.0,
                **_texts(report),
            )


def _texts(report: Any) -> dict[str, str]:
    text = str(report.longreprtext)
    if len(text) > MAX_TEXT:
        text = f"{text[: MAX_TEXT // 2]}\n...\n{text[-MAX_TEXT // 2 :]}"
    return {"message": text, "reason": _reason(report)}


def _reason(report: Any) -> str:
    """Return the exception's own message on one line, or why a test was skipped."""
    longrepr = report.longrepr
    if isinstance(longrepr, tuple):
        return str(longrepr[2])
    crash = getattr(longrepr, "reprcrash", None)
    message = str(crash.message if crash is not None else longrepr)
    return next((line.strip() for line in message.splitlines() if line.strip()), "")
