"""Wakes one thread of another process.

A thread that looks for work many times a second takes Python's lock each time, and on a busy
machine the main thread then waits until it is scheduled. One that waits for a signal costs nothing.
The signal goes to that thread alone, which has it blocked but while it waits for it, so it can
never end the process or interrupt another thread.
"""

from __future__ import annotations

import ctypes
import signal
import sys

_libc = ctypes.CDLL(None) if sys.platform == "linux" else None
_SIGNAL = getattr(signal, "SIGRTMAX", 0) - 1

CAN_WAKE = _libc is not None and hasattr(_libc, "tgkill")


def prepare_to_wait() -> None:
    """Make the calling thread one that can be woken; before anybody learns its number."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {_SIGNAL})


def wait_to_be_woken() -> None:
    """Wait; returns at once if a :func:`wake` came since the last time."""
    signal.sigwait({_SIGNAL})


def wake(pid: int, thread: int) -> None:
    """Wake thread ``thread`` (its native number) of process ``pid``; a dead one is no error."""
    if _libc is not None and CAN_WAKE:
        _libc.tgkill(pid, thread, _SIGNAL)
