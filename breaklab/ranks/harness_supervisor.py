"""The process between pytest and the ranks: starts them, hears them, and lets none survive.

It is a fork of pytest (or of the clean host, where pytest can't be forked) and leads the process
group of the ranks. It ends them when it has its report, when its caller is gone (the socket closes
or the parent's pid changes), and whatever they forked: on Linux, orphans of the ranks become its
own children, also those that left the process group.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import selectors
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NoReturn

from breaklab.i18n import _
from breaklab.ranks.detector import Detector
from breaklab.ranks.harness_rank import (
    STACK_SIGNAL,
    RankSetup,
    leave,
    run_rank,
    send_frame,
    take_frames,
)
from breaklab.ranks.harness_report import RankReport, TeamReport
from breaklab.ranks.jobs import RankWait, Stall
from breaklab.ranks.places import wait_from_stack
from breaklab.ranks.process import adopt_orphans, die_with_parent, kill_descendants, kill_group
from breaklab.ranks.records import Board

_TICK_S = 0.05
_GRACE_S = 1.0  # for the others, after the first failure or return
_START_LIMIT_S = 60.0  # for imports and the rendezvous, before timeout_s begins to count
_TAIL = 8000  # bytes of a rank's output kept for the report


@dataclass(frozen=True)
class TeamJob:
    """How many ranks to start, and for how long at most."""

    world_size: int
    timeout_s: float
    records: bool = True  # needed to prove a deadlock


@dataclass
class _Member:
    """One rank, as its supervisor sees it."""

    report: RankReport
    pid: int
    frames_fd: int
    command_fd: int
    output_fd: int
    stack_file: IO[bytes]
    frames: bytearray = field(default_factory=bytearray)
    ready: bool = False
    told_at: float | None = None  # when its value or failure arrived

    @property
    def settled(self) -> bool:
        """Whether nothing more is to be heard of it."""
        return self.told_at is not None or self.report.exit_code is not None


def supervise(
    control: socket.socket, job: TeamJob, call: Callable[[], Any], *, parent: int
) -> NoReturn:
    """Run ``call`` on ``job.world_size`` ranks, report over ``control``, end everything, exit.

    Never returns: it is the whole life of a process freshly forked by ``parent`` (a pid).
    """
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        adopt_orphans()
        report = _Team(control, job, call, parent).run()
    except BaseException:
        report = TeamReport(ranks=[], broken=traceback.format_exc())
    with contextlib.suppress(BaseException):
        kill_descendants(os.getpid())
        send_frame(control.fileno(), b"e", pickle.dumps(report))
    if sys.platform != "linux":
        kill_group(os.getpid())  # there the descendants can't be listed; ends this process as well
    leave(0)


class _Team:
    """The ranks of one call while they run."""

    def __init__(
        self, control: socket.socket, job: TeamJob, call: Callable[[], Any], parent: int
    ) -> None:
        self._control = control
        self._job = job
        self._call = call
        self._parent = parent
        self._selector = selectors.DefaultSelector()
        self._began_at = time.monotonic()
        self._started_at: float | None = None
        self._caller_gone = False
        self._leaving = False
        self._stall: Stall | None = None
        self._board = Board.create(job.world_size) if job.records else None
        self._detector: Detector | None = None
        self._no_proof = "" if job.records else _("communication was not recorded")
        self._members: list[_Member] = []
        self._selector.register(control, selectors.EVENT_READ, None)

    def run(self) -> TeamReport:
        """Start the ranks, watch them until all have ended or must be ended, and report."""
        with _store() as store_path:
            for rank in range(self._job.world_size):
                self._members.append(self._start(rank, store_path))
            while not self._caller_gone and not self._finished():
                self._look()
        return TeamReport(
            ranks=[member.report for member in self._members],
            started_at=self._started_at or self._began_at,
            stall=self._stall,
        )

    def _start(self, rank: int, store_path: str) -> _Member:
        frames, frames_in = os.pipe()
        command_out, command = os.pipe()
        output, output_in = os.pipe()
        stack_file = tempfile.TemporaryFile()  # noqa: SIM115
        setup = RankSetup(
            rank=rank,
            world_size=self._job.world_size,
            store_path=store_path,
            # Longer than our own limit, which says more than gloo's.
            group_timeout_s=self._job.timeout_s + _START_LIMIT_S,
            frames_fd=frames_in,
            command_fd=command_out,
            output_fd=output_in,
            stack_fd=stack_file.fileno(),
            page=self._board.page(rank) if self._board else None,
        )
        supervisor = os.getpid()
        pid = os.fork()
        if pid == 0:
            die_with_parent(supervisor)
            # Copies of these would keep a channel open after its owner is gone.
            for fd in (frames, command, output, self._control.fileno()):
                os.close(fd)
            self._selector.close()
            run_rank(setup, self._call)
        for fd in (frames_in, command_out, output_in):
            os.close(fd)
        member = _Member(RankReport(rank), pid, frames, command, output, stack_file)
        for fd in (frames, output):
            os.set_blocking(fd, False)
            self._selector.register(fd, selectors.EVENT_READ, member)
        return member

    def _look(self) -> None:
        """Wait a moment for news, and act on it."""
        for key, _events in self._selector.select(_TICK_S):
            if key.data is None:
                self._caller_gone = not self._control.recv(1)
            else:
                self._read(key.fd, key.data)
        if os.getppid() != self._parent:
            self._caller_gone = True
        self._reap()
        if self._started_at is None and all(member.ready for member in self._members):
            self._started_at = time.monotonic()
            if self._board and not self._no_proof:
                self._detector = Detector(self._board, [member.pid for member in self._members])
            self._command()
        if not self._leaving and self._may_leave():
            self._leaving = True
            self._command()

    def _read(self, fd: int, member: _Member) -> None:
        try:
            data = os.read(fd, 1 << 20)
        except BlockingIOError:
            return
        if not data:
            self._selector.unregister(fd)
        elif fd == member.output_fd:
            self._forward(member, data)
        else:
            member.frames += data
            for kind, payload in take_frames(member.frames):
                self._note(member, kind, payload)

    def _forward(self, member: _Member, data: bytes) -> None:
        text = data.decode(errors="replace")
        member.report.output = (member.report.output + text)[-_TAIL:]
        with contextlib.suppress(OSError):
            send_frame(self._control.fileno(), b"o", pickle.dumps((member.report.rank, text)))

    def _note(self, member: _Member, kind: bytes, payload: bytes) -> None:
        if kind == b"r":
            member.ready = True
            self._no_proof = self._no_proof or payload.decode()
            return
        member.told_at = time.monotonic()
        if kind == b"v":
            member.report.value = payload
        else:
            member.report.failure = pickle.loads(payload)

    def _reap(self) -> None:
        for member in self._members:
            if member.report.exit_code is not None:
                continue
            pid, status = os.waitpid(member.pid, os.WNOHANG)
            if pid:
                for fd in (member.frames_fd, member.output_fd):
                    self._drain(fd, member)
                member.report.exit_code = os.waitstatus_to_exitcode(status)
                member.report.ended_at = time.monotonic()

    def _drain(self, fd: int, member: _Member) -> None:
        """Read what a dead rank left in a pipe; something it forked may hold the pipe open."""
        with contextlib.suppress(KeyError, ValueError):
            while select_one(fd) and fd in self._selector.get_map():
                self._read(fd, member)

    def _command(self) -> None:
        """Let the ranks take their next step: begin, later leave."""
        for member in self._members:
            with contextlib.suppress(OSError):
                os.write(member.command_fd, b"g")

    def _may_leave(self) -> bool:
        """Whether ranks that returned may go: all have settled, or the rest takes too long."""
        told = [member.told_at for member in self._members if member.told_at is not None]
        if all(member.settled for member in self._members):
            return True
        return bool(told) and time.monotonic() - min(told) > _GRACE_S

    def _finished(self) -> bool:
        if all(member.report.exit_code is not None for member in self._members):
            return True
        now = time.monotonic()
        failed_at = [at for at in map(_failed_at, self._members) if at is not None]
        if failed_at and now - min(failed_at) > _GRACE_S:
            return True
        limit = _START_LIMIT_S if self._started_at is None else self._job.timeout_s
        if now - (self._started_at or self._began_at) > limit:
            obstacle = self._no_proof or (self._detector.obstacle if self._detector else "")
            self._stall = Stall("timed", limit, obstacle, self._stacks())
            return True
        if self._detector and not failed_at:
            left = (member.report.rank for member in self._members if member.settled)
            self._stall = self._detector.look(frozenset(left))
        return self._stall is not None

    def _stacks(self) -> tuple[RankWait, ...]:
        """Ask every rank that has not settled for its Python stack."""
        asked = [member for member in self._members if not member.settled]
        for member in asked:
            with contextlib.suppress(ProcessLookupError):
                os.kill(member.pid, STACK_SIGNAL)
        deadline = time.monotonic() + 0.5
        while time.monotonic() < deadline and not all(map(_stack_is_whole, asked)):
            time.sleep(0.01)
        return tuple(wait_from_stack(member.report.rank, _stack(member)) for member in asked)


def select_one(fd: int) -> bool:
    """Whether ``fd`` can be read without waiting."""
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        return bool(selector.select(0))


def _failed_at(member: _Member) -> float | None:
    if member.report.failure is not None:
        return member.told_at
    if member.report.value is None and member.report.exit_code is not None:
        return member.report.ended_at
    return None


def _stack_is_whole(member: _Member) -> bool:
    return "in run_rank\n" in _stack(member)


def _stack(member: _Member) -> str:
    member.stack_file.seek(0)
    return member.stack_file.read().decode(errors="replace")


@contextlib.contextmanager
def _store() -> Iterator[str]:
    """A path for the group's FileStore: no port, and on Linux no file that could be left over."""
    if sys.platform == "linux":
        fd = os.memfd_create("breaklab-store", 0)
        try:
            yield f"/proc/self/fd/{fd}"
        finally:
            os.close(fd)
    else:
        with tempfile.TemporaryDirectory(prefix="breaklab-") as folder:
            yield str(Path(folder) / "store")
