"""How far each rank is, and when it last moved: by what it prints and by what it communicates."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterable
from dataclasses import replace

from breaklab.ranks.jobs import RankWait
from breaklab.ranks.records import Board
from breaklab.ranks.verdict import waits_of


class Progress:
    """The steps and movements of the ranks of one run; times are of the monotonic clock.

    Args:
        num_ranks: how many ranks there are.
        step_line: regular expression with a group ``step``, or ``""``.
        board: what the ranks record, where they do.
    """

    def __init__(self, num_ranks: int, step_line: str, board: Board | None) -> None:
        self._board = board
        self._step_line = re.compile(step_line) if step_line else None
        self._steps: dict[int, int] = {}
        self._heads: list[int] = [0] * num_ranks
        self._moved_at = [time.monotonic()] * num_ranks
        self.last_step: int | None = None  # the highest that any rank printed

    def start(self, at: float) -> None:
        """Take ``at`` for the moment in which all ranks started."""
        self._moved_at = [at] * len(self._moved_at)

    def note_movement(self, rank: int) -> None:
        """Note that ``rank`` printed something or ended, now."""
        self._moved_at[rank] = time.monotonic()

    def note_line(self, rank: int, text: str) -> None:
        """Read the step from a line of ``rank``, if it has one."""
        found = self._step_line.search(text) if self._step_line else None
        if found is not None:
            with contextlib.suppress(ValueError, TypeError, IndexError):
                self._steps[rank] = int(found["step"])
                self.last_step = max(self._steps[rank], self.last_step or 0)

    def silent_s(self, now: float) -> float:
        """Seconds since any rank printed, ended, or began or finished a collective."""
        for page in self._board.pages if self._board else ():
            moves = page.head()[0]
            if moves != self._heads[page.rank]:
                self._heads[page.rank] = moves
                self._moved_at[page.rank] = now
        return now - max(self._moved_at)

    def still_s(self, now: float) -> tuple[float, ...]:
        """For each rank, seconds since it last moved, as of the last :meth:`silent_s`."""
        return tuple(now - at for at in self._moved_at)

    def waits(self, left: frozenset[int]) -> tuple[RankWait, ...]:
        """Where each rank waits, as far as its records tell; ``left`` are those that have ended."""
        snapshots = self._board.snapshot(left) if self._board else None
        return self.with_steps(waits_of(snapshots)) if snapshots else ()

    def with_steps(self, waits: Iterable[RankWait]) -> tuple[RankWait, ...]:
        """Add to each wait the last step that its rank printed."""
        return tuple(replace(wait, step=self._steps.get(wait.rank)) for wait in waits)
