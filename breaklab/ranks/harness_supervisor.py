"""The process between pytest and the ranks: starts them, hears them, and lets none survive.

It is a fork of pytest (or of the clean host, where pytest can't be forked) and leads the process
group of the ranks. It ends them when it has its report, when its caller is gone (the socket closes
or the parent's pid changes), and whatever they forked: on Linux, orphans of the ranks become its
own children, also those that left the process group.
"""

from __future__ import annotations

import contextlib
import gc
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from breaklab.i18n import _
from breaklab.ranks.detector import Detector
from breaklab.ranks.harness_member import Member, forward_to
from breaklab.ranks.harness_rank import RankSetup, leave, send_frame
from breaklab.ranks.harness_report import TeamReport
from breaklab.ranks.jobs import RankWait, Stall
from breaklab.ranks.process import adopt_orphans, kill_descendants, kill_group
from breaklab.ranks.records import Board

_TICK_S = 0.05
_GRACE_S = 1.0  # for the others, after the first failure or return
_START_LIMIT_S = 60.0  # for imports and the rendezvous, before timeout_s begins to count
_STACK_LIMIT_S = 0.5


@dataclass(frozen=True)
class TeamJob:
    """How many ranks to start, and for how long at most."""

    world_size: int
    timeout_s: float
    records: bool = True  # needed to prove a deadlock


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
        gc.freeze()  # ranks that collected what they share would copy every page of it
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
        self._selector = selectors.PollSelector()  # holds no descriptor that ranks would inherit
        self._began_at = time.monotonic()
        self._started_at: float | None = None
        self._caller_gone = False
        self._leaving = False
        self._stall: Stall | None = None
        self._board = Board.create(job.world_size) if job.records else None
        self._detector: Detector | None = None
        self._no_proof = "" if job.records else _("communication was not recorded")
        self._members: list[Member] = []
        self._selector.register(control, selectors.EVENT_READ, None)

    def run(self) -> TeamReport:
        """Start the ranks, watch them until all have ended or must be ended, and report."""
        with _store() as store_path:
            for rank in range(self._job.world_size):
                self._start(rank, store_path)
            while not self._caller_gone and not self._finished():
                self._look()
        return TeamReport(
            ranks=[member.report for member in self._members],
            started_at=self._started_at or self._began_at,
            stall=self._stall,
        )

    def _start(self, rank: int, store_path: str) -> None:
        setup = RankSetup(
            rank=rank,
            world_size=self._job.world_size,
            store_path=store_path,
            # Longer than our own limit, which says more than gloo's.
            group_timeout_s=self._job.timeout_s + _START_LIMIT_S,
            page=self._board.page(rank) if self._board else None,
        )
        ours = self._control.fileno()
        member = Member(setup, self._call, [ours], forward_to(ours))
        self._members.append(member)
        for fd in (member.channels.frames, member.channels.output):
            self._selector.register(fd, selectors.EVENT_READ, member)

    def _look(self) -> None:
        """Wait a moment for news, and act on it."""
        for key, _events in self._selector.select(_TICK_S):
            if key.data is None:
                self._caller_gone = not self._control.recv(1)
            elif not key.data.read(key.fd):
                self._selector.unregister(key.fd)
        if os.getppid() != self._parent:
            self._caller_gone = True
        for member in self._members:
            member.reap()
        if self._started_at is None and all(member.ready for member in self._members):
            self._begin()
        if not self._leaving and self._may_leave():
            self._leaving = True
            self._step()

    def _begin(self) -> None:
        """Let the ranks call the function, now that all have joined the group."""
        self._started_at = time.monotonic()
        self._no_proof = self._no_proof or self._members[0].no_proof
        if self._board and not self._no_proof:
            self._detector = Detector(self._board, [member.pid for member in self._members])
        self._step()

    def _step(self) -> None:
        for member in self._members:
            member.step()

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
        failed_at = [member.failed_at for member in self._members if member.failed_at is not None]
        if failed_at:
            return now - min(failed_at) > _GRACE_S
        limit = _START_LIMIT_S if self._started_at is None else self._job.timeout_s
        if now - (self._started_at or self._began_at) > limit:
            obstacle = self._no_proof or (self._detector.obstacle if self._detector else "")
            self._stall = Stall("timed", limit, obstacle, self._stacks())
        elif self._detector:
            left = (member.report.rank for member in self._members if member.settled)
            self._stall = self._detector.look(frozenset(left))
        return self._stall is not None

    def _stacks(self) -> tuple[RankWait, ...]:
        """Where every rank is that has not settled, from its Python stack."""
        asked = [member for member in self._members if not member.settled]
        for member in asked:
            member.ask_for_stack()
        deadline = time.monotonic() + _STACK_LIMIT_S
        while time.monotonic() < deadline and not all(member.has_stack for member in asked):
            time.sleep(0.01)
        return tuple(member.wait_from_stack() for member in asked)


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
