"""Children that never outlive their parent, and process groups that die as one.

Linux kills a child when its parent dies (``PR_SET_PDEATHSIG``), also when the parent was killed
with SIGKILL and could not clean up. The signal is not inherited by grandchildren, so whoever
forks must call :func:`die_with_parent` in each child.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
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


def kill_group(pgid: int, sig: int = signal.SIGKILL) -> None:
    """Send ``sig`` to every process of a group; a group that is gone already is fine."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pgid, sig)


def group_members(pgid: int) -> list[int]:
    """Return the pids of live, non-zombie processes in group ``pgid`` (Linux; else empty)."""
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[2]) == pgid and fields[0] != "Z":
                members.append(int(stat.parent.name))
    return members


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
