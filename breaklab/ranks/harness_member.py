"""One rank as its supervisor sees it: the process, its pipes, and what became of it."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from breaklab.ranks.harness_rank import STACK_SIGNAL, RankSetup, run_rank, send_frame, take_frames
from breaklab.ranks.harness_report import RankReport
from breaklab.ranks.jobs import RankWait
from breaklab.ranks.places import wait_from_stack
from breaklab.ranks.process import die_with_parent

_TAIL = 8000  # characters of a rank's output kept for the report


@dataclass(frozen=True)
class Channels:
    """The supervisor's ends of the pipes to a rank."""

    frames: int  # read: its news
    command: int  # write: one byte for each of its next steps
    output: int  # read: its stdout and stderr


class Member:
    """A rank; forks it when made.

    Args:
        setup: what the rank needs to know; its pipes are made here.
        call: what it does.
        inherited: file descriptors of the supervisor's that the rank must not keep open.
        on_output: gets what the rank prints.
    """

    def __init__(
        self,
        setup: RankSetup,
        call: Callable[[], Any],
        inherited: list[int],
        on_output: Callable[[int, str], None],
    ) -> None:
        self.report = RankReport(setup.rank)
        self.ready = False
        self.no_proof = ""  # why its communication can't be recorded
        self.told_at: float | None = None  # when its value or failure arrived
        self._on_output = on_output
        self._buffer = bytearray()
        self._stack_file = tempfile.TemporaryFile()  # noqa: SIM115
        self.channels, self.pid = self._fork(setup, call, inherited)

    def _fork(
        self, setup: RankSetup, call: Callable[[], Any], inherited: list[int]
    ) -> tuple[Channels, int]:
        frames, frames_in = os.pipe()
        command_out, command = os.pipe()
        output, output_in = os.pipe()
        supervisor = os.getpid()
        pid = os.fork()
        if pid == 0:
            die_with_parent(supervisor)
            for fd in (frames, command, output, *inherited):
                os.close(fd)
            setup = replace(
                setup,
                frames_fd=frames_in,
                command_fd=command_out,
                output_fd=output_in,
                stack_fd=self._stack_file.fileno(),
            )
            run_rank(setup, call)
        for fd in (frames_in, command_out, output_in):
            os.close(fd)
        for fd in (frames, output):
            os.set_blocking(fd, False)
        return Channels(frames, command, output), pid

    @property
    def settled(self) -> bool:
        """Whether its function returned or failed, or its process ended."""
        return self.told_at is not None or self.report.exit_code is not None

    @property
    def failed_at(self) -> float | None:
        """When it failed or ended without a value; None if it did not."""
        if self.report.failure is not None:
            return self.told_at
        if self.report.value is None and self.report.exit_code is not None:
            return self.report.ended_at
        return None

    def read(self, fd: int) -> bool:
        """Take what one of its pipes has to tell; return False when that pipe is closed."""
        try:
            data = os.read(fd, 1 << 20)
        except BlockingIOError:
            return True
        if fd == self.channels.output and data:
            text = data.decode(errors="replace")
            self.report.output = (self.report.output + text)[-_TAIL:]
            self._on_output(self.report.rank, text)
        elif data:
            self._buffer += data
            for kind, payload in take_frames(self._buffer):
                self._note(kind, payload)
        return bool(data)

    def _note(self, kind: bytes, payload: bytes) -> None:
        if kind == b"r":
            self.ready = True
            self.no_proof = payload.decode()
            return
        self.told_at = time.monotonic()
        if kind == b"v":
            self.report.value = payload
        else:
            self.report.failure = pickle.loads(payload)

    def reap(self) -> None:
        """Note whether the process has ended, after reading all that it left in its pipes."""
        if self.report.exit_code is not None:
            return
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            for fd in (self.channels.frames, self.channels.output):
                # Not until the pipe is closed: something the rank forked may hold it open.
                while select.select([fd], [], [], 0)[0] and self.read(fd):
                    pass
            self.report.exit_code = os.waitstatus_to_exitcode(status)
            self.report.ended_at = time.monotonic()

    def step(self) -> None:
        """Let the rank take its next step: begin, later leave."""
        with contextlib.suppress(OSError):
            os.write(self.channels.command, b"g")

    def ask_for_stack(self) -> None:
        """Make the rank write its Python stack."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, STACK_SIGNAL)

    @property
    def has_stack(self) -> bool:
        """Whether the stack that was asked for is there as a whole."""
        return "in run_rank\n" in self._stack()

    def wait_from_stack(self) -> RankWait:
        """Where the rank is, from the stack."""
        return wait_from_stack(self.report.rank, self._stack())

    def _stack(self) -> str:
        self._stack_file.seek(0)
        return self._stack_file.read().decode(errors="replace")


def forward_to(fd: int) -> Callable[[int, str], None]:
    """Return what passes a rank's output on to the caller at ``fd``."""

    def forward(rank: int, text: str) -> None:
        with contextlib.suppress(OSError):
            send_frame(fd, b"o", pickle.dumps((rank, text)))

    return forward
