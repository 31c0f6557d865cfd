"""Which functions of a lab each test runs, in pytest's process and in the ranks forked from it.

A change inside one function can't affect a test that never calls it, so a proof needs to run only
the tests that do. Functions are named ``file:qualname``, file relative to the source.
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


class TouchedFunctions:
    """Collects calls from now on; every process appends what it saw to one file.

    Args:
        source: the lab's source; calls of other code are not recorded.
        log: the file, opened for appending by each process; a line is written in one piece.
    """

    def __init__(self, source: Path, log: Path) -> None:
        self._prefix = f"{source}{os.sep}"
        self._log = log
        self._seen: set[CodeType] = set()
        self._names: set[str] = set()
        self._nodeid = ""

    def start(self) -> None:
        """Record calls in this thread and in new ones, and after a fork in the child's."""
        threading.settrace(self._on_call)
        sys.settrace(self._on_call)

    def begin(self, nodeid: str) -> None:
        """Say which test the calls from now on belong to."""
        self._seen.clear()
        self._names.clear()
        self._nodeid = nodeid

    def flush(self) -> None:
        """Append what this process saw for the present test; ranks call it when they leave."""
        if not self._names:
            return
        line = json.dumps([self._nodeid, sorted(self._names)]) + "\n"
        fd = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(fd, line.encode())
        finally:
            os.close(fd)

    def read(self) -> dict[str, list[str]]:
        """Return the functions by node id, from every process that has left."""
        touched: dict[str, set[str]] = defaultdict(set)
        if self._log.exists():
            for line in self._log.read_text(encoding="utf-8").splitlines():
                nodeid, names = json.loads(line)
                touched[nodeid].update(names)
        return {nodeid: sorted(names) for nodeid, names in touched.items()}

    def _on_call(self, frame: FrameType, event: str, arg: Any) -> None:
        # Returning None leaves the lines of the function untraced, which is what costs.
        code = frame.f_code
        if code not in self._seen:
            self._seen.add(code)
            if code.co_filename.startswith(self._prefix):
                file = code.co_filename[len(self._prefix) :].replace(os.sep, "/")
                self._names.add(f"{file}:{code.co_qualname}")


_current: TouchedFunctions | None = None


def record_touched(touched: TouchedFunctions) -> None:
    """Make ``touched`` the recorder of this process and of what it forks, and start it."""
    global _current
    _current = touched
    touched.start()


def flush_touched() -> None:
    """Flush this process's recorder, if it has one; called by whatever ends in ``os._exit``."""
    if _current is not None:
        _current.flush()
