"""Watches the ranks of one run: their lines, their ends, a stall, the limit on the total time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from breaklab.i18n import _
from breaklab.ranks.detector import Detector
from breaklab.ranks.ends import explain_end
from breaklab.ranks.history import Histories
from breaklab.ranks.jobs import Line, RankEnd, RankWait, RunEvent, RunJob, RunReport, Stall
from breaklab.ranks.link import JobLink
from breaklab.ranks.metrics import read_metrics
from breaklab.ranks.process import process_state
from breaklab.ranks.progress import Progress
from breaklab.ranks.records import Board
from breaklab.ranks.startup import refusal
from breaklab.ranks.stream import LineCutter, LineLog

OnLine = Callable[[Line], None]
OnEvent = Callable[[RunEvent], None]

PEER_GRACE_S = 5.0  # for the others to fail as well, after the first rank failed
_LOOK_S = 0.05  # how often limits and deadlocks are looked at
_TELL_S = 0.25  # how often a live display is told what the ranks do
_ERROR_LINES = 400  # of stderr, kept for each rank to find its traceback


def watch_run(
    job: RunJob,
    link: JobLink,
    board: Board | None,
    on_line: OnLine | None,
    on_event: OnEvent | None,
) -> RunReport | None:
    """Follow ``job`` to its end; None when it could not be served at all.

    ``board`` holds what its ranks record, where they do.
    """
    watch = _Watch(job, link, board, on_line or _ignore, on_event or _ignore)
    return watch.follow()


def _ignore(_anything: object) -> None:
    """Take a line or an event that nobody asked for."""


class _Watch:
    """The state of one run as it goes on; times are of the monotonic clock."""

    def __init__(
        self,
        job: RunJob,
        link: JobLink,
        board: Board | None,
        on_line: OnLine,
        on_event: OnEvent,
    ) -> None:
        self._job = job
        self._link = link
        self._board = board
        self._histories = Histories(board.pages if board and job.history else ())
        self._detector: Detector | None = None
        self._looked = self._told = 0.0
        self._on_line = on_line
        self._on_event = on_event
        self._cutters = [LineCutter() for _index in range(2 * job.num_ranks)]
        self._errors: list[list[str]] = [[] for _rank in range(job.num_ranks)]
        self._log = LineLog()
        self._progress = Progress(job.num_ranks, job.step_line, board)
        self._started = time.monotonic()
        self._pids: list[int] = []
        self._exits: dict[int, tuple[int, float]] = {}  # rank -> exit code, when
        self._failed_at: float | None = None
        self._stopped_at: float | None = None
        self._stall: Stall | None = None
        self._over_time = False
        self._interrupted = False
        self._served = False

    def follow(self) -> RunReport | None:
        """Read until no process is left."""
        while not self._link.finished:
            try:
                self._step()
            except KeyboardInterrupt:
                if self._interrupted:
                    raise
                self._interrupted = True
                self._stop()
        served = self._pids and self._served
        return self._report() if served or self._interrupted else None

    def _step(self) -> None:
        messages, chunks = self._link.poll(_LOOK_S)
        for message in messages:
            self._take(message)
        for index, data in chunks:
            self._print(index, data)
        self._histories.look(time.monotonic())
        if self._pids and self._stopped_at is None and not self._link.ended:
            self._check_limits(time.monotonic())

    def _take(self, message: dict[str, Any]) -> None:
        match message["kind"]:
            case "started":
                self._pids = message["pids"]
                self._started = message["at"]
                self._progress.start(self._started)
                self._detector = Detector(self._board, self._pids) if self._board else None
                self._on_event(RunEvent("started", pids=tuple(self._pids)))
            case "ended":
                self._end(message["rank"], message["exit_code"], message["at"])
            case "refused":
                raise refusal(message)
            case "supervisor-ended":
                self._served = True

    def _end(self, rank: int, exit_code: int, at: float) -> None:
        if self._stopped_at is not None:
            return  # we killed it
        self._exits[rank] = (exit_code, at)
        self._progress.note_movement(rank)
        if exit_code != 0 and self._failed_at is None:
            self._failed_at = at
        seconds = at - self._started
        self._on_event(RunEvent("ended", rank=rank, seconds=seconds, exit_code=exit_code))

    def _print(self, index: int, data: bytes) -> None:
        rank, is_error = divmod(index, 2)
        cutter = self._cutters[index]
        now = time.monotonic()
        for text in cutter.feed(data) if data else cutter.flush():
            line = Line(rank, now - self._started, text)
            self._log.add(line)
            if is_error:
                self._errors[rank].append(text)
                del self._errors[rank][:-_ERROR_LINES]
            self._progress.note_line(rank, text)
            self._on_line(line)
        if data and self._stopped_at is None:
            # Not before: a caller that takes long to print a line is no rank's silence.
            self._progress.note_movement(rank)

    def _check_limits(self, now: float) -> None:
        silent_s = self._progress.silent_s(now)
        limit_s = self._job.total_timeout_s
        if self._failed_at is not None:
            # Ranks that wait for a dead peer fail at once; one that goes on alone proves nothing.
            if now - self._failed_at > PEER_GRACE_S:
                self._stop()
        elif limit_s is not None and now - self._started > limit_s:
            self._over_time = True
            self._stop()
        elif silent_s >= self._job.hang_timeout_s:
            self._stall = Stall("timed", silent_s, self._stopped_ranks(), self._waits())
            self._stop()
        elif now - self._looked >= _LOOK_S:
            self._looked = now
            self._look_for_deadlock()
        if self._on_event is not _ignore and now - self._told >= _TELL_S:
            self._told = now
            still_s = self._progress.still_s(now)
            seconds = now - self._started
            self._on_event(
                RunEvent("looked", seconds=seconds, waits=self._waits(), still_s=still_s)
            )

    def _look_for_deadlock(self) -> None:
        proof = self._detector.look(frozenset(self._exits)) if self._detector else None
        if proof is not None:
            self._stall = replace(proof, waits=self._progress.with_steps(proof.waits))
            self._stop()

    def _stopped_ranks(self) -> str:
        """Say which ranks did not even run: a sick machine and no bug of theirs."""
        slow = {
            fault.rank for fault in self._job.faults if fault.kind == "slow"
        }  # stopped in turns
        stopped = [rank for rank in self._alive() - slow if process_state(self._pids[rank]) == "T"]
        if not stopped:
            return ""
        return _("the process of rank {ranks} is stopped by a signal, it does not run").format(
            ranks=", ".join(map(str, sorted(stopped)))
        )

    def _waits(self) -> tuple[RankWait, ...]:
        return self._progress.waits(frozenset(self._exits))

    def _alive(self) -> set[int]:
        return set(range(self._job.num_ranks)) - self._exits.keys()

    def _stop(self) -> None:
        self._stopped_at = time.monotonic()
        self._link.end()

    def _report(self) -> RunReport:
        self._histories.collect()
        return RunReport(
            ends=tuple(self._rank_end(rank) for rank in range(self._job.num_ranks)),
            lines=self._log.lines(),
            duration_s=(self._stopped_at or time.monotonic()) - self._started,
            stall=self._stall,
            over_time=self._over_time,
            interrupted=self._interrupted,
            last_step=self._progress.last_step,
            metrics=read_metrics(self._job.metrics_dir, self._job.num_ranks),
            lines_left_out=self._log.left_out,
            histories=self._histories.get(),
        )

    def _rank_end(self, rank: int) -> RankEnd:
        now = self._stopped_at or time.monotonic()
        exit_code, at = self._exits.get(rank, (None, now))
        return explain_end(rank, exit_code, at - self._started, self._errors[rank])
