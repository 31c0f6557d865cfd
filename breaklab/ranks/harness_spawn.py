"""Has a clean process start the ranks, where this one must not be forked."""

from __future__ import annotations

import atexit
import os
import pickle
import socket
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from breaklab.i18n import _
from breaklab.ranks.harness_host import start_host
from breaklab.ranks.harness_rank import Call


@dataclass
class _Host:
    """The clean host of process ``owner``."""

    owner: int
    process: subprocess.Popen[bytes]
    control: socket.socket

    @property
    def usable(self) -> bool:
        """Whether it is this process's and alive."""
        return self.owner == os.getpid() and self.process.poll() is None


_hosts: list[_Host] = []  # at most one


def hand_over(channel: socket.socket) -> None:
    """Give our end of a new supervisor's socket to the clean host; starts one if there is none."""
    if not _hosts or not _hosts[0].usable:
        _hosts[:] = [_Host(os.getpid(), *start_host())]
        atexit.register(close_host)
    socket.send_fds(_hosts[0].control, [b"c"], [channel.fileno()])


def close_host() -> None:
    """End the clean host, if this process started one."""
    while _hosts:
        host = _hosts.pop()
        if host.owner == os.getpid():
            host.control.close()
            host.process.wait()


def reference(bound: partial[Any], reason: str) -> Call:
    """Describe a call for a process that is no fork of this one.

    Args:
        bound: the function with its arguments.
        reason: why it is to run there, for the error.

    Raises:
        TypeError: the function or an argument can't be pickled.
    """
    fn = bound.func
    try:
        payload = pickle.dumps((fn, bound.args, bound.keywords))
    except Exception as error:
        raise TypeError(
            _(
                "ranks are started by spawn here, because {reason}. So the function must be one"
                " that a module defines at its top level, and its arguments must be picklable;"
                " {function} is not: {error}"
            ).format(reason=reason, function=getattr(fn, "__qualname__", repr(fn)), error=error)
        ) from None
    module = getattr(fn, "__module__", "") or ""
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return Call(payload, module, file, tuple(sys.path), str(Path.cwd()), dict(os.environ))
