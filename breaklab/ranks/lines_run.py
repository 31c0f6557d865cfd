"""Which lines of a lab each test runs, in pytest's process and in the ranks forked from it.

A test that runs none of the lines which tell a change can't notice it (``inject.scope``), so a
proof needs to run only the tests that do. Lines are named ``file:line``, file relative to the
source.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import defaultdict
from pathlib import Path
from types import CodeType, FrameType
from typing import Any


class LinesRun:
    """Collects lines from now on; every process appends what it saw to one file.

    Args:
        source: the lab's source; lines of other code are not recorded.
        log: the file, opened for appending by each process; a record is written in one piece.
    """

    def __init__(self, source: Path, log: Path) -> None:
        self._prefix = f"{source}{os.sep}"
        self._log = log
        self._others: set[CodeType] = set()
        self._lines: dict[CodeType, set[int]] = {}
        self._nodeid = ""

    def start(self) -> None:
        """Record lines in this thread and in new ones, and after a fork in the child's."""
        threading.settrace(self._on_call)
        sys.settrace(self._on_call)

    def begin(self, nodeid: str) -> None:
        """Say which test the lines from now on belong to."""
        self._lines.clear()
        self._nodeid = nodeid

    def flush(self) -> None:
        """Append what this process saw for the present test; ranks call it when they leave."""
        places = {
            f"{self._file(code)}:{line}" for code, lines in self._lines.items() for line in lines
        }
        if not places:
            return
        record = json.dumps([self._nodeid, sorted(places)]) + "\n"
        fd = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(fd, record.encode())
        finally:
            os.close(fd)

    def read(self) -> dict[str, list[str]]:
        """Return the lines by node id, from every process that has left."""
        found: dict[str, set[str]] = defaultdict(set)
        if self._log.exists():
            for record in self._log.read_text(encoding="utf-8").splitlines():
                nodeid, places = json.loads(record)
                found[nodeid].update(places)
        return {nodeid: sorted(places) for nodeid, places in found.items()}

    def _file(self, code: CodeType) -> str:
        return code.co_filename[len(self._prefix) :].replace(os.sep, "/")

    def _on_call(self, frame: FrameType, event: str, arg: Any) -> Any:
        # Returning None leaves the lines of a function untraced, which is what costs.
        code = frame.f_code
        if code in self._others:
            return None
        if not code.co_filename.startswith(self._prefix):
            self._others.add(code)
            return None
        lines = self._lines.setdefault(code, set())

        def on_line(frame: FrameType, event: str, arg: Any) -> Any:
            lines.add(frame.f_lineno)
            return on_line

        return on_line


_current: LinesRun | None = None


def record_lines(lines_run: LinesRun) -> None:
    """Make ``lines_run`` the recorder of this process and of what it forks, and start it."""
    global _current
    _current = lines_run
    lines_run.start()


def flush_lines() -> None:
    """Flush this process's recorder, if it has one; called by whatever ends in ``os._exit``."""
    if _current is not None:
        _current.flush()
