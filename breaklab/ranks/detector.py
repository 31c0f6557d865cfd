"""Watches a board and says when its ranks are deadlocked; the proof itself is in verdict.py.

Two looks with nothing moved are enough where it is certain what each rank waits for. Where it is
not, idle processes are the evidence: while no thread of any rank does anything, nothing can be on
its way. A rank that waits in C++, unseen by the wrappers, is asked for its trace first.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import replace

from breaklab.i18n import _
from breaklab.ranks.idleness import Activity
from breaklab.ranks.jobs import Stall
from breaklab.ranks.records import ANSWERER, PID, Board, RankSnapshot
from breaklab.ranks.records_trace import Trace, parse_trace
from breaklab.ranks.verdict import prove_deadlock
from breaklab.ranks.verdict_traces import with_traces

_QUIET_S = 0.3  # for which processes must be idle to count as evidence
_ANSWER_LIMIT_S = 0.5


class Detector:
    """Looks at the ranks of a board; call :meth:`look` every 50 to 100 ms.

    Args:
        board: where the ranks record what they do.
        pids: process of each rank, by rank; default: what the ranks wrote in the board. The
            processes must be on this machine.

    Attributes:
        obstacle: why a rank's wait could not be seen when it mattered; empty if nothing hid it.
    """

    def __init__(self, board: Board, pids: Sequence[int] = ()) -> None:
        self._board = board
        self._pids = tuple(pids)
        self.obstacle = ""
        self._heads: object = None
        self._moved_at = self._active_at = 0.0
        self._activity: dict[int, Activity] = {}
        self._before: tuple[RankSnapshot, ...] | None = None
        self._requests: dict[int, int] = {}
        self._requested_at = 0.0

    def look(self, left: frozenset[int] = frozenset()) -> Stall | None:
        """Return the proof that the ranks are deadlocked, as soon as there is one.

        Args:
            left: ranks whose process has ended or whose function returned.
        """
        now = time.monotonic()
        heads = [page.head() for page in self._board.pages]
        if (heads, left) != self._heads:
            self._heads = (heads, left)
            self._start_over(now)
            return None
        live = [rank for rank, (_m, _w, over) in enumerate(heads) if not over and rank not in left]
        self._watch_activity(live, now)
        unseen = frozenset(rank for rank in live if not heads[rank][1])  # waits seen by no wrapper
        if not live or (unseen and now - self._active_at < _QUIET_S):
            return None
        snapshot = self._board.snapshot(left)
        before, self._before = self._before, snapshot
        stall = before and self._prove(before, snapshot, live, unseen, now)
        return replace(stall, seconds=round(now - self._moved_at, 2)) if stall else None

    def _start_over(self, now: float) -> None:
        """Forget what was seen before the ranks moved."""
        self._moved_at = self._active_at = now
        self._activity = {}
        self._before = None
        self._requests = {}

    def _prove(
        self,
        before: tuple[RankSnapshot, ...],
        now: tuple[RankSnapshot, ...],
        live: list[int],
        unseen: frozenset[int],
        at: float,
    ) -> Stall | None:
        quiet = at - self._active_at >= _QUIET_S
        seen = None if unseen else prove_deadlock(before, now, quiet=quiet)
        if seen is None and not unseen and not quiet:
            return None
        # Without a wrapper's word a trace counts only if nothing ran since it was asked for.
        stale = seen is None and self._requested_at < self._active_at
        if not self._requests or stale:
            self._requests = {rank: self._board.page(rank).request_trace() for rank in live}
            self._requested_at = at
            return None
        traces = self._traces()
        if len(traces) < len(live) and at - self._requested_at < _ANSWER_LIMIT_S:
            return None
        merged = with_traces(now, traces, asleep=unseen)
        if merged is None:
            self._note_obstacle(traces, unseen)
            return seen
        return prove_deadlock(merged, merged, quiet=quiet)

    def _note_obstacle(self, traces: dict[int, Trace], unseen: frozenset[int]) -> None:
        if unseen and any(trace.in_torch and not trace.available for trace in traces.values()):
            self.obstacle = _(
                "this torch's Flight Recorder tells nothing, so what a rank waits for inside torch"
                " is not known"
            )

    def _traces(self) -> dict[int, Trace]:
        """The answers that have come."""
        traces = {}
        for rank, request in self._requests.items():
            answer = self._board.page(rank).trace(request)
            if answer is not None:
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    traces[rank] = parse_trace(answer)
        return traces

    def _watch_activity(self, live: list[int], now: float) -> None:
        """Note since when the processes of the live ranks are idle."""
        seconds = now - self._active_at
        if self._activity and seconds < _QUIET_S:
            return
        activity = {rank: self._activity_of(rank) for rank in live}
        if not self._activity or not all(
            self._activity[rank].idle_until(activity[rank], seconds) for rank in live
        ):
            self._activity = activity
            self._active_at = now

    def _activity_of(self, rank: int) -> Activity:
        words = self._board.page(rank).words
        pid = self._pids[rank] if self._pids else words[PID]
        return Activity.of(pid, ignore=words[ANSWERER])  # that thread only serves us
