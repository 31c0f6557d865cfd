"""One job in progress, as breaklab sees it: messages, output, and the line that keeps it alive."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

from breaklab.ranks.wire import Messages, send_job

_READ_BYTES = 65_536
_DRAIN_S = 1.0


class JobLink:
    """Reads what a job's processes send and print; ending it ends all of them.

    The warm parent kills the job's whole family when the lifeline closes (or breaklab dies), and
    closes the channel only when none of them is left: the end of the channel is that promise.
    """

    def __init__(self, channel: socket.socket, lifeline: int, outputs: Sequence[int]) -> None:
        self._channel = channel
        self._lifeline = lifeline
        self._messages = Messages()
        self._selector = selectors.DefaultSelector()
        self._selector.register(channel, selectors.EVENT_READ)
        self._open_outputs = set(outputs)
        for index, fd in enumerate(outputs):
            self._selector.register(fd, selectors.EVENT_READ, index)
        self._ended_at: float | None = None

    @property
    def ended(self) -> bool:
        """Whether the warm parent closed the channel: no process is left, or it is dead itself."""
        return self._ended_at is not None

    @property
    def finished(self) -> bool:
        """Whether the job has ended and all that its processes printed was read.

        A process that escaped, where the warm parent was killed or orphans can't be adopted, may
        hold an output open for ever; what it still prints is not waited for.
        """
        if self._ended_at is None:
            return False
        return not self._open_outputs or time.monotonic() > self._ended_at + _DRAIN_S

    def poll(self, timeout_s: float) -> tuple[list[dict[str, Any]], list[tuple[int, bytes]]]:
        """Wait up to ``timeout_s``; return messages, and (index of the output, bytes) pairs.

        Empty bytes mean that this output has ended.
        """
        messages: list[dict[str, Any]] = []
        chunks: list[tuple[int, bytes]] = []
        for key, _ in self._selector.select(max(0.0, timeout_s)):
            if key.fileobj is self._channel:
                messages.extend(self._receive())
            else:
                data = os.read(key.fd, _READ_BYTES)
                chunks.append((key.data, data))
                if not data:
                    self._close_output(key.fd)
        return messages, chunks

    def _receive(self) -> list[dict[str, Any]]:
        try:
            data = self._channel.recv(_READ_BYTES)
        except ConnectionError:
            data = b""
        if not data:
            self._selector.unregister(self._channel)
            self._ended_at = time.monotonic()
        return self._messages.feed(data)

    def _close_output(self, fd: int) -> None:
        self._selector.unregister(fd)
        self._open_outputs.discard(fd)
        os.close(fd)

    def end(self) -> None:
        """Ask for the end of every process of the job; poll on until :attr:`finished`."""
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    def close(self) -> None:
        """End the job and let go of it, finished or not."""
        self.end()
        for fd in list(self._open_outputs):
            with contextlib.suppress(OSError):
                self._close_output(fd)
        self._selector.close()
        self._channel.close()


def open_job(
    job: object, num_outputs: int, fds: Sequence[int], pass_on: Callable[[Sequence[int]], None]
) -> JobLink:
    """Start a job: new channel, lifeline and output pipes, the other ends of them sent off.

    Args:
        job: what the supervisor is to do; picklable.
        num_outputs: number of pipes that the job's processes write to.
        fds: further descriptors for them; they stay the caller's.
        pass_on: sends two descriptors to the warm parent, which forks a supervisor for them.

    Raises:
        OSError: the warm parent is gone.
    """
    ours, theirs = socket.socketpair()
    alive, lifeline = os.pipe()
    pipes = [os.pipe() for _number in range(num_outputs)]
    writers = [writer for _reader, writer in pipes]
    link = JobLink(ours, lifeline, [reader for reader, _writer in pipes])
    try:
        pass_on([theirs.fileno(), alive])
        send_job(ours, job, [*writers, *fds])
    except BaseException:
        link.close()
        raise
    finally:
        theirs.close()
        for fd in (alive, *writers):
            os.close(fd)
    return link


def shared_memory() -> int:
    """Return a descriptor of memory without a name, so that nothing of it can stay behind."""
    if sys.platform == "linux":
        return os.memfd_create("breaklab")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
