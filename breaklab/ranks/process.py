"""Children that never outlive their parent, and process groups that die as one.

Linux kills a child when its parent dies (``PR_SET_PDEATHSIG``), also when the parent was killed
with SIGKILL and could not clean up. The signal is not inherited by grandchildren, so whoever
forks must call :func:`die_with_parent` in each child. What leaves its group with ``setsid`` is
still found: orphans go to the nearest ancestor that called :func:`adopt_orphans`, and every
process that descends from a warm parent carries a marker in its environment.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with_parent(parent_pid: int) -> None:
    """Make the kernel kill this process when ``parent_pid`` dies; call first thing after fork.

    Elsewhere than on Linux this does nothing, and the caller's own clean-up is all there is.
    """
    if _libc is None:
        return
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The parent may have died between fork and prctl; then nobody would send the signal.
    if os.getppid() != parent_pid:
        os._exit(128 + signal.SIGKILL)


def adopt_orphans() -> None:
    """Make orphaned descendants children of this process instead of init's (Linux)."""
    if _libc is not None:
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill_group(pgid: int, sig: int = signal.SIGKILL) -> None:
    """Send ``sig`` to every process of a group; a group that is gone already is fine."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pgid, sig)


def group_members(pgid: int) -> list[int]:
    """Return the pids of live, non-zombie processes in group ``pgid`` (Linux; else empty)."""
    return [entry.pid for entry in _process_table() if entry.pgid == pgid and entry.state != "Z"]


@dataclass(frozen=True)
class _Process:
    """One row of the process table."""

    pid: int
    ppid: int
    pgid: int
    state: str


def process_state(pid: int) -> str:
    """Return the kernel's letter for what ``pid`` does (R, S, T, Z, ...), ``""`` if unknown."""
    return next((entry.state for entry in _process_table(f"{pid}/stat")), "")


def _process_table(entries: str = "[0-9]*/stat") -> list[_Process]:
    """Read /proc; processes that end meanwhile are left out. Empty where there is no /proc."""
    table = []
    for stat in Path("/proc").glob(entries):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The command's name, in brackets, may itself hold brackets and spaces.
            state, ppid, pgid = stat.read_text().rpartition(")")[2].split()[:3]
            table.append(_Process(int(stat.parent.name), int(ppid), int(pgid), state))
    return table


def descendants(pid: int) -> list[int]:
    """Return the pids of all live, non-zombie descendants of ``pid``, whatever their group."""
    table = _process_table()
    family = {pid}
    grown = True
    while grown:
        found = {entry.pid for entry in table if entry.ppid in family} - family
        family |= found
        grown = bool(found)
    return [entry.pid for entry in table if entry.pid in family - {pid} and entry.state != "Z"]


def children(pid: int) -> list[int]:
    """Return the pids of live, non-zombie children of ``pid``."""
    return [entry.pid for entry in _process_table() if entry.ppid == pid and entry.state != "Z"]


def kill_descendants(pid: int) -> None:
    """SIGKILL every descendant of ``pid`` until none is left or 5 s have passed."""
    _kill_until_none(lambda: descendants(pid))


def kill_children(pid: int, *, spare: frozenset[int] = frozenset()) -> None:
    """SIGKILL the children of ``pid`` but ``spare``, and what is adopted from them meanwhile."""
    _kill_until_none(lambda: [child for child in children(pid) if child not in spare])


def _kill_until_none(find: Callable[[], list[int]]) -> None:
    deadline = time.monotonic() + 5.0
    while (alive := find()) and time.monotonic() < deadline:
        for pid in alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)


def marked(variable: str, value: str) -> list[int]:
    """Return pids of other live processes that started with ``variable=value`` (Linux)."""
    needle = f"{variable}={value}".encode()
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            pid = int(environ.parent.name)
            if pid != os.getpid() and needle in environ.read_bytes().split(b"\0"):
                found.append(pid)
    return found


def reap(pid: int, timeout_s: float) -> int | None:
    """Wait up to ``timeout_s`` for child ``pid``; return its exit code (negative: signal) or None.

    Polls, because a blocking wait has no time limit; the first polls come quickly.
    """
    deadline = time.monotonic() + timeout_s
    pause = 0.001
    while True:
        waited, status = os.waitpid(pid, os.WNOHANG)
        if waited == pid:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= deadline:
            return None
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
