"""Gathers what ranks communicated over a whole run, from boards that hold the latest 256 records.

For timelines after a run. A watcher calls :meth:`Histories.look` all the time; a rank that
issues more than 256 operations between two looks leaves a gap, which is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from breaklab.ranks.records import NUM_SLOTS, Page, Record

MAX_RECORDS = 50_000  # of one rank; then the oldest go
_LOOK_S = 0.05  # reading costs about a millisecond for each rank


@dataclass(frozen=True)
class History:
    """What one rank communicated, oldest first."""

    rank: int
    records: tuple[Record, ...] = ()
    waiting: frozenset[int] = frozenset()  # numbers of what it waited for when it was last seen
    num_left_out: int = 0  # records that were written over unseen, or too many to keep


class Histories:
    """The histories of all ranks of one run, as they grow."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self._pages = pages
        self._looked = 0.0
        self._seen: list[dict[int, Record]] = [{} for _page in pages]
        self._waiting: list[frozenset[int]] = [frozenset() for _page in pages]

    def look(self, now: float) -> None:
        """Collect if that was last done a while before ``now``, of the monotonic clock."""
        if self._pages and now - self._looked > _LOOK_S:
            self._looked = now
            self.collect()

    def collect(self) -> None:
        """Read what is new or has ended since the last time."""
        for index, page in enumerate(self._pages):
            seen = self._seen[index]
            latest = max(seen, default=-1)
            unfinished = (
                number for number in range(max(0, latest - NUM_SLOTS), latest + 1)
                if number in seen and not seen[number].left_ns
            )  # fmt: skip
            snapshot = page.snapshot(after=min(unfinished, default=latest + 1) - 1)
            if snapshot is None:
                continue
            seen.update((record.number, record) for record in snapshot.recent)
            self._waiting[index] = frozenset(record.number for record in snapshot.waiting)
            for number in list(seen)[: max(0, len(seen) - MAX_RECORDS)]:
                del seen[number]

    def get(self) -> tuple[History, ...]:
        """Return the history of each rank."""
        return tuple(self._history(index, page.rank) for index, page in enumerate(self._pages))

    def _history(self, index: int, rank: int) -> History:
        seen = self._seen[index]
        records = tuple(seen[number] for number in sorted(seen))
        num_issued = records[-1].number + 1 if records else 0
        return History(rank, records, self._waiting[index], num_issued - len(records))
