"""From what the ranks recorded of their communication to a timeline. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from breaklab.compare.comparison import Comparison
from breaklab.compare.timeline import Collective, Timeline, make_timeline
from breaklab.i18n import _
from breaklab.ranks.history import History
from breaklab.ranks.records import Record

_SECONDS = 1e-9


def timelines_of(comparison: Comparison) -> list[Timeline]:
    """Return the timelines of the healthy and the broken run; none where nothing was recorded."""
    num_ranks = comparison.subject.num_ranks
    timelines = [
        recorded_timeline(name, num_ranks, side.report.histories)
        for name, side in (
            (_("Healthy run"), comparison.healthy),
            (_("Broken run"), comparison.broken),
        )
    ]
    return timelines if any(each.collectives for each in timelines) else []


def recorded_timeline(name: str, num_ranks: int, histories: Sequence[History]) -> Timeline:
    """Return the timeline of one run."""
    collectives = [
        _collective(history, record) for history in histories for record in history.records
    ]
    num_left_out = sum(history.num_left_out for history in histories)
    return make_timeline(name, num_ranks, collectives, num_left_out)


def _collective(history: History, record: Record) -> Collective:
    is_stuck = record.number in history.waiting
    has_end = bool(record.left_ns)
    entered_s = record.entered_ns * _SECONDS
    # An operation that nobody waited for has no end that its rank could have seen.
    left_s = record.left_ns * _SECONDS if has_end else None if is_stuck else entered_s
    return Collective(
        rank=history.rank,
        operation=record.operation,
        entered_s=entered_s,
        left_s=left_s,
        has_end=has_end or is_stuck,
        sequence=record.sequence,
        group=record.channel.group,
        shape=record.shape,
        dtype=record.dtype,
        peer=record.channel.peer if record.channel.peer >= 0 else None,
        place=record.place,
    )
