"""Puts what torch's Flight Recorder saw in the place of what the wrappers saw.

The recorder also counts the collectives that C++ issued, so its positions are the true ones; the
wrappers know sends, receives, roots and what a thread waits for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from breaklab.ranks.records import Channel, RankSnapshot, Record
from breaklab.ranks.records_trace import Trace, TracedCollective


def with_traces(
    snapshots: Sequence[RankSnapshot], traces: Mapping[int, Trace], asleep: frozenset[int]
) -> tuple[RankSnapshot, ...] | None:
    """Return ``snapshots`` with collectives as the Flight Recorder has them.

    Args:
        snapshots: all ranks.
        traces: the answer of each rank that has not left.
        asleep: ranks whose processes run nothing. One of these that is inside torch with an
            unfinished collective waits for that, though no wrapper saw it do so.

    Returns:
        None if the two views can't be put together.
    """
    if any(not snapshot.left and not _usable(traces.get(snapshot.rank)) for snapshot in snapshots):
        return None
    if any("'" in channel.group for snapshot in snapshots for channel in snapshot.channels):
        return None  # groups were made anew under the same names, which the recorder can't tell
    merged = []
    for snapshot in snapshots:
        trace = traces.get(snapshot.rank)
        one = snapshot if trace is None else _merge(snapshot, trace, snapshot.rank in asleep)
        if one is None:
            return None
        merged.append(one)
    return tuple(merged)


def _usable(trace: Trace | None) -> bool:
    return trace is not None and trace.available


def _merge(snapshot: RankSnapshot, trace: Trace, asleep: bool) -> RankSnapshot | None:
    channels = {
        channel: count
        for channel, count in snapshot.channels.items()
        if channel.kind != "collective"
    }
    own = {}  # the wrappers' records, by position in the recorder's count
    recent = []
    for record in snapshot.recent:
        if record.channel.kind != "collective":
            recent.append(record)
        elif (entry := _entry_of(record, trace)) is not None:
            placed = replace(record, sequence=entry.sequence, family=entry.operation)
            own[entry.group, entry.sequence] = placed
    for entry in trace.collectives:
        made = own.get((entry.group, entry.sequence)) or _record(entry, trace)
        if made is None:
            return None
        channels[made.channel] = max(channels.get(made.channel, 0), made.sequence)
        recent.append(made)
    by_number = {record.number: record for record in recent if record.number >= 0}
    waiting = [by_number[one.number] for one in snapshot.waiting if one.number in by_number]
    if len(waiting) < len(snapshot.waiting):
        return None
    if not waiting and asleep and trace.in_torch:
        unfinished = [entry for entry in trace.collectives if not entry.retired]
        inferred = _record(unfinished[0], trace) if unfinished else None
        waiting += [replace(inferred, place=trace.place)] if inferred else []
    return replace(snapshot, channels=channels, recent=tuple(recent), waiting=tuple(waiting))


def _entry_of(record: Record, trace: Trace) -> TracedCollective | None:
    """The recorder's entry for a record: the first of its group that was made after it."""
    for entry in trace.collectives:
        if entry.group == record.channel.group and entry.created_ns >= record.entered_ns:
            return entry
    return None


def _record(entry: TracedCollective, trace: Trace) -> Record | None:
    members = trace.groups.get(entry.group)
    if members is None:
        return None
    return Record(
        number=-1,
        channel=Channel("collective", entry.group, members),
        sequence=entry.sequence,
        operation=entry.operation,
        family=entry.operation,
        shape=entry.shape,
        dtype=entry.dtype,
        num_bytes=entry.num_bytes,
        entered_ns=entry.created_ns,
    )
