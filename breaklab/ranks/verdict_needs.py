"""What a waiting operation needs from the other ranks, under gloo's rules.

Collectives of a group pair by their order; a send and a receive pair by group, ranks and tag, again
by order, and a send waits until its receive is there (all of this is tested on real ranks). Where
it depends on gloo's algorithm which ranks an operation waits for, the need is *soft*: it is not
held against a rank unless all processes are known to be quiet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from breaklab.ranks.records import Channel, RankSnapshot, Record

# Operations that meet on the wire, by the name of the one that gloo carries them out with.
FAMILIES = {
    "all_reduce_coalesced": "all_reduce",
    "reduce_scatter": "all_reduce",
    "reduce_scatter_single": "all_reduce",
    "reduce_scatter_coalesced": "all_reduce",
    "all_gather_single": "all_gather",
    "all_gather_coalesced": "all_gather",
    "all_to_all_single": "all_to_all",
}


class State(Enum):
    """How far a peer is with its part of an operation."""

    MET = "met"  # it has issued it
    UNISSUED = "unissued"  # it has not issued it yet
    DIFFERENT = "different"  # it has issued something else in its place, and so never will
    DOUBTFUL = "doubtful"  # it has issued it with another size or root; anything may happen


@dataclass(frozen=True)
class Need:
    """One rank's wait for one peer."""

    peer: int
    state: State
    theirs: Record | None = None  # what the peer issued, where that matters


@dataclass(frozen=True)
class Needs:
    """What one waiting record needs: all of ``hard``, and one of ``any_of`` if there are some."""

    hard: tuple[Need, ...] = ()
    soft: tuple[Need, ...] = ()
    any_of: tuple[Need, ...] = field(default=())


def family_of(record: Record) -> str:
    """The name under which the operation pairs on the wire."""
    return record.family or FAMILIES.get(record.operation, record.operation)


def needs_of(record: Record, rank: int, snapshots: Sequence[RankSnapshot]) -> Needs:
    """Return what ``record``, which ``rank`` waits for, needs from the others."""
    if record.channel.kind == "collective":
        return _collective(record, rank, snapshots)
    if record.channel.kind == "send":
        return Needs(hard=(_send(record, rank, snapshots),))
    if record.channel.kind == "recv":
        return Needs(hard=(_recv(record, rank, snapshots),))
    return Needs(any_of=tuple(_recv_any(record, rank, snapshots)))


def _collective(record: Record, rank: int, snapshots: Sequence[RankSnapshot]) -> Needs:
    needs = tuple(
        _position(record, snapshots[member])
        for member in record.channel.members
        if member != rank and member < len(snapshots)
    )
    family = family_of(record)
    root = record.channel.members[0] if family == "monitored_barrier" else record.root
    from_root = tuple(need for need in needs if need.peer == root)
    if family == "all_to_all":  # ranks between which nothing is exchanged may not need each other
        return Needs(soft=needs)
    if family == "broadcast":
        return Needs(soft=needs, any_of=needs) if rank == root else Needs(from_root, needs)
    if family == "reduce":
        return Needs(hard=needs) if rank == root else Needs(soft=needs, any_of=needs)
    if family in ("gather", "scatter", "monitored_barrier"):
        return Needs(hard=needs) if rank == root else Needs(from_root, needs)
    return Needs(hard=needs)


def _position(record: Record, peer: RankSnapshot) -> Need:
    """How far ``peer`` is with the collective at the position of ``record``."""
    if peer.channels.get(record.channel, 0) < record.sequence:
        return Need(peer.rank, State.UNISSUED)
    theirs = record_at(peer, record.channel, record.sequence)
    if theirs is None:  # so long ago that its record is gone
        return Need(peer.rank, State.MET)
    if family_of(theirs) != family_of(record):
        return Need(peer.rank, State.DIFFERENT, theirs)
    sizes = {record.num_bytes, theirs.num_bytes} - {-1}
    roots = {record.root, theirs.root} - {-1}
    if len(sizes) > 1 or len(roots) > 1:
        return Need(peer.rank, State.DOUBTFUL, theirs)
    return Need(peer.rank, State.MET, theirs)


def record_at(snapshot: RankSnapshot, channel: Channel, sequence: int) -> Record | None:
    """The rank's record at a position of a channel, if it is still there."""
    for record in reversed(snapshot.recent):
        if record.sequence == sequence and record.channel == channel:
            return record
    return None


def _count(snapshot: RankSnapshot, like: Channel, kind: str, peer: int) -> int:
    channel = Channel(kind, like.group, like.members, peer, like.tag)
    return snapshot.channels.get(channel, 0)


def _send(record: Record, rank: int, snapshots: Sequence[RankSnapshot]) -> Need:
    channel = record.channel
    receiver = snapshots[channel.peer]
    received = _count(receiver, channel, "recv", rank) + _count(receiver, channel, "recv_any", -1)
    state = State.MET if received >= record.sequence else State.UNISSUED
    return Need(channel.peer, state)


def _recv(record: Record, rank: int, snapshots: Sequence[RankSnapshot]) -> Need:
    sent = _count(snapshots[record.channel.peer], record.channel, "send", rank)
    state = State.MET if sent >= record.sequence else State.UNISSUED
    return Need(record.channel.peer, state)


def _recv_any(record: Record, rank: int, snapshots: Sequence[RankSnapshot]) -> Iterator[Need]:
    """One of these suffices: a message that no other receive has claimed, from whichever rank."""
    channel = record.channel
    others = [member for member in channel.members if member != rank]
    sent = sum(_count(snapshots[other], channel, "send", rank) for other in others)
    me = snapshots[rank]
    claimed = sum(_count(me, channel, "recv", other) for other in others)
    state = State.MET if sent >= claimed + record.sequence else State.UNISSUED
    return (Need(other, state) for other in others)
