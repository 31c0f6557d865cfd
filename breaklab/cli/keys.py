"""Single keys from a terminal, without waiting for Enter."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def single_keys() -> Iterator[None]:
    """Let the terminal give each key at once and unseen; put it back at the end."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def read_key(timeout_s: float) -> str:
    """Return the next key in lower case, ``""`` when none comes in time; "q" at the input's end."""
    descriptor = sys.stdin.fileno()
    ready, _writable, _failed = select.select([descriptor], [], [], timeout_s)
    if not ready:
        return ""
    data = os.read(descriptor, 64)
    if not data:
        return "q"
    # An arrow key sends several bytes, of which the first is no letter: it means nothing here.
    return data[:1].decode("ascii", errors="replace").lower()
