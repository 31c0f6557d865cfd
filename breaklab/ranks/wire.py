"""How breaklab and the processes it started talk: JSON lines one way, one pickled job the other.

What a supervisor sends back is parsed as JSON and never unpickled, because the code it runs is the
learner's or a stranger's. Only breaklab itself ever writes a pickle.
"""

from __future__ import annotations

import contextlib
import json
import pickle
import selectors
import signal
import socket
import struct
from collections.abc import Sequence
from typing import Any

MARKER = "BREAKLAB_WARM_PARENT"  # environment variable that every descendant of a host carries
MAX_MESSAGE_BYTES = 4 * 1024 * 1024
_FDS_PER_MESSAGE = 64  # the kernel takes at most 253


def send_job(channel: socket.socket, job: object, fds: Sequence[int]) -> None:
    """Send a picklable ``job`` and the file descriptors that its processes write to."""
    blob = pickle.dumps(job)
    channel.sendall(struct.pack("!II", len(blob), len(fds)))
    channel.sendall(blob)
    for first in range(0, len(fds), _FDS_PER_MESSAGE):
        socket.send_fds(channel, [b"F"], list(fds[first : first + _FDS_PER_MESSAGE]))


def receive_job(channel: socket.socket) -> tuple[Any, list[int]]:
    """Return the job and the file descriptors of :func:`send_job`.

    Raises:
        EOFError: the sender went away.
    """
    length, num_fds = struct.unpack("!II", _receive_exactly(channel, 8))
    job = pickle.loads(_receive_exactly(channel, length))
    fds: list[int] = []
    while len(fds) < num_fds:
        data, some, _, _ = socket.recv_fds(channel, 1, _FDS_PER_MESSAGE)
        if not data:
            raise EOFError
        fds.extend(some)
    return job, fds


def _receive_exactly(channel: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = channel.recv(count - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def send_message(channel: socket.socket, kind: str, **fields: Any) -> None:
    """Send one JSON line; a receiver that went away is no error, its job is being ended."""
    with contextlib.suppress(OSError):
        channel.sendall(json.dumps({"kind": kind, **fields}).encode() + b"\n")


class Messages:
    """Cuts what a channel delivers into JSON messages; drops what is none, or is too long."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Return the messages that ``data`` completes."""
        self._pending += data
        *lines, rest = self._pending.split(b"\n")
        self._pending = rest if len(rest) <= MAX_MESSAGE_BYTES else bytearray()
        parsed = (_parse(bytes(line)) for line in lines)
        return [message for message in parsed if message is not None]


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) and "kind" in message else None


class ChildSignals:
    """Makes SIGCHLD readable, so that one selector waits for children and channels alike.

    The Python handler does nothing; the interpreter's C handler writes to :attr:`reader` in
    whatever thread the signal arrives.
    """

    def __init__(self, *signals: signal.Signals) -> None:
        self.reader, self._writer = socket.socketpair()
        self.reader.setblocking(False)
        self._writer.setblocking(False)
        self._signals = (signal.SIGCHLD, *signals)
        for number in self._signals:
            signal.signal(number, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)

    def drain(self) -> set[int]:
        """Return the signal numbers that arrived since the last call."""
        arrived: set[int] = set()
        with contextlib.suppress(BlockingIOError):
            while data := self.reader.recv(4096):
                arrived.update(data)
        return arrived

    def close(self) -> None:
        """Give the signals back to their defaults; call in a forked child as well."""
        signal.set_wakeup_fd(-1)
        for number in self._signals:
            signal.signal(number, signal.SIG_DFL)
        self.reader.close()
        self._writer.close()


def readable(*channels: socket.socket, timeout_s: float | None = None) -> list[socket.socket]:
    """Return those of ``channels`` that can be read (or are closed) within ``timeout_s``."""
    with selectors.DefaultSelector() as selector:
        for channel in channels:
            selector.register(channel, selectors.EVENT_READ)
        return [key.fileobj for key, _ in selector.select(timeout_s)]  # type: ignore[misc]
