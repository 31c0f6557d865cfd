"""What ranks print: cut into lines, kept within bounds, whatever they print."""

from __future__ import annotations

from collections import deque

from breaklab.i18n import _
from breaklab.ranks.jobs import Line

MAX_LINE_BYTES = 16 * 1024


class LineCutter:
    """Cuts bytes into lines. A carriage return ends a line too, as progress bars use it.

    Of a line longer than ``limit`` bytes the first ``limit`` are kept, and how many were not.
    """

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self._limit = limit
        self._pending = bytearray()
        self._dropped = 0
        self._after_return = False  # the last byte was a carriage return: a newline adds nothing

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that ``data`` completes, without their ends."""
        if self._after_return and data:
            data = data.removeprefix(b"\n")
            self._after_return = False
        self._after_return |= data.endswith(b"\r")
        *ended, rest = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        lines = []
        for part in ended:
            self._keep(part)
            lines.append(self._take())
        self._keep(rest)
        return lines

    def flush(self) -> list[str]:
        """Return what was printed without a line's end so far, if anything."""
        return [self._take()] if self._pending else []

    def _keep(self, part: bytes) -> None:
        room = self._limit - len(self._pending)
        self._pending += part[:room]
        self._dropped += max(0, len(part) - room)

    def _take(self) -> str:
        text = self._pending.decode("utf-8", errors="replace")
        if self._dropped:
            text += _(" [... {count} more bytes]").format(count=self._dropped)
        self._pending.clear()
        self._dropped = 0
        return text


class LineLog:
    """Keeps the first and the last lines, each within a number of characters."""

    def __init__(self, head_chars: int = 500_000, tail_chars: int = 2_000_000) -> None:
        self._head: list[Line] = []
        self._tail: deque[Line] = deque()
        self._head_room = head_chars
        self._tail_room = tail_chars
        self.left_out = 0

    def add(self, line: Line) -> None:
        """Keep ``line``; where it does not fit, leave out the oldest lines after the first ones."""
        cost = _cost(line)
        if not self._tail and cost <= self._head_room:
            self._head.append(line)
            self._head_room -= cost
            return
        self._tail.append(line)
        self._tail_room -= cost
        while self._tail_room < 0:
            self._tail_room += _cost(self._tail.popleft())
            self.left_out += 1

    def lines(self) -> tuple[Line, ...]:
        """Return what was kept, in order."""
        return (*self._head, *self._tail)


def _cost(line: Line) -> int:
    return len(line.text) + 100  # the object itself costs, too: endless empty lines must be bounded


class TextLog:
    """Keeps the beginning and the end of a text, for what pytest printed."""

    def __init__(self, head_bytes: int = 64_000, tail_bytes: int = 256_000) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self._dropped = 0

    def add(self, data: bytes) -> None:
        """Append ``data``."""
        room = self._head_bytes - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        excess = len(self._tail) - self._tail_bytes
        if excess > 0:
            del self._tail[:excess]
            self._dropped += excess

    def text(self) -> str:
        """Return what was kept, with a note where something is missing."""
        head, tail = (part.decode("utf-8", errors="replace") for part in (self._head, self._tail))
        if self._dropped:
            gap = _("[... {count} bytes left out ...]").format(count=self._dropped)
            return f"{head}\n{gap}\n{tail}"
        return head + tail
