"""One command at a time changes the learner's tree; the lock dies with its process."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from breaklab.errors import TreeError
from breaklab.i18n import _
from breaklab.model import Project
from breaklab.tree.atomic import step


class BusyError(TreeError):
    """Another process is changing the tree."""


# Most commands hold the lock for milliseconds. A killed one may have been about to start git: then
# that process holds the lock until it has started.
_WAIT_S = 1.0
_MAX_COMMAND = 80  # characters of the holder's command in the message


@contextlib.contextmanager
def tree_lock(project: Project) -> Iterator[None]:
    """Hold the project's lock; the state folder exists.

    Raises:
        BusyError: another process still holds it after a second; the message names its pid and
            command.
        OSError: the lock file can't be created.
    """
    from filelock import FileLock, Timeout  # here, because reading the state needs no lock

    lock = FileLock(project.state_dir / "lock")
    try:
        lock.acquire(timeout=_WAIT_S, poll_interval=0.01)
    except Timeout:
        raise _busy(project) from None
    holder = project.state_dir / "holder.json"
    try:
        step("lock: taken")
        holder.write_text(json.dumps({"pid": os.getpid(), "command": _command()}))
        step("lock: holder named")
        yield
    finally:
        with contextlib.suppress(OSError):
            holder.unlink()
        lock.release()


def _command() -> str:
    name = Path(sys.argv[0]).name if sys.argv else ""
    words = ["breaklab" if name in ("", "__main__.py") else name, *sys.argv[1:]]
    text = "".join(char if char.isprintable() else "?" for char in " ".join(words))
    return text if len(text) <= _MAX_COMMAND else text[: _MAX_COMMAND - 3] + "..."


def _busy(project: Project) -> BusyError:
    hint = _("wait until it has ended, then run the command again")
    try:
        holder = json.loads((project.state_dir / "holder.json").read_bytes())
        pid, command = int(holder["pid"]), str(holder["command"])
    except (OSError, ValueError, TypeError, KeyError):
        # It holds the lock but hasn't said who it is yet.
        return BusyError(_("another breaklab is changing this project right now"), hint=hint)
    message = _("another breaklab is changing this project right now: {command} (pid {pid})")
    return BusyError(message.format(command=command, pid=pid), hint=hint)
