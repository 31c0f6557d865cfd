"""What each rank communicated, and when. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Collective:
    """One collective or point-to-point operation of one rank.

    Times are seconds of one clock, the same for all ranks of a run; ``left_s`` is None where the
    rank never returned from it.
    """

    rank: int
    operation: str  # ``all_reduce``, ``send``, ...
    entered_s: float
    left_s: float | None
    sequence: int | None = None  # counts a group's collectives, the same on all ranks
    group: str = ""
    shape: str = ""
    dtype: str = ""
    peer: int | None = None
    place: str = ""  # ``file:line``
    has_end: bool = True  # False: nobody waited for it, so ``left_s`` only repeats ``entered_s``


@dataclass(frozen=True)
class Timeline:
    """What the ranks of one run communicated, in seconds since the first of it."""

    name: str
    num_ranks: int
    collectives: tuple[Collective, ...]  # by rank, then by when it was entered
    until_s: float  # the last movement of any rank
    num_left_out: int = 0  # operations that were not recorded

    def of_rank(self, rank: int) -> tuple[Collective, ...]:
        """Return the operations of one rank in order."""
        return tuple(each for each in self.collectives if each.rank == rank)


def make_timeline(
    name: str, num_ranks: int, collectives: Sequence[Collective], num_left_out: int = 0
) -> Timeline:
    """Order the operations of a run and count time from the first one.

    A run that waits is cut soon after its last movement: ten seconds of nothing would leave no
    room for what came before.
    """
    start = min((each.entered_s for each in collectives), default=0.0)
    moved = _shifted(collectives, start)
    times = [time for each in moved for time in (each.entered_s, each.left_s) if time is not None]
    ordered = sorted(moved, key=lambda each: (each.rank, each.entered_s))
    return Timeline(name, num_ranks, tuple(ordered), max(times, default=0.0), num_left_out)


def _shifted(collectives: Sequence[Collective], start: float) -> list[Collective]:
    return [
        replace(
            each,
            entered_s=each.entered_s - start,
            left_s=None if each.left_s is None else each.left_s - start,
        )
        for each in collectives
    ]
