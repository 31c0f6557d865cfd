"""The proof that ranks are deadlocked, from what each of them waits for; nothing here does I/O.

API::

    prove_deadlock(before, now, quiet=False) -> Stall | None   # two looks at all ranks
    first_difference(snapshots) -> tuple[RankWait, ...]         # where the sequences part
    format_waits(waits) -> list[list[str]], wait_columns()      # a table, as plain data
    Detector(board, pids).look(left) -> Stall | None            # polls; in detector.py

A deadlock is proven when every rank that has not left waits, none moved between two looks, and no
wait can ever be satisfied. The last is a fixed point: a wait that could be satisfied by what the
others have issued already, or still can issue, frees its rank, which may free others; the ranks
that are never freed are deadlocked. A rank that computes or sleeps waits for nothing, so while
there is one there is no proof.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from breaklab.i18n import _
from breaklab.ranks.jobs import RankWait, Stall
from breaklab.ranks.ranges import format_ranks
from breaklab.ranks.records import RankSnapshot, Record
from breaklab.ranks.verdict_needs import (
    Need,
    Needs,
    State,
    family_of,
    needs_of,
    record_at,
)
from breaklab.ranks.verdict_reason import explain

LEFT = "left"  # the operation of a rank whose work is over

Snapshots = Sequence[RankSnapshot]


def prove_deadlock(before: Snapshots, now: Snapshots, *, quiet: bool = False) -> Stall | None:
    """Return the proof that no rank will ever move again, or None if there is none.

    Args:
        before: all ranks, by rank.
        now: the same, some time later.
        quiet: no process ran anything in between, so nothing can be on its way: a wait that is not
            satisfied by now, as after a size that does not match, never will be.
    """
    live = [snapshot for snapshot in now if not snapshot.left]
    if not live or _moved(before, now) or not all(snapshot.complete for snapshot in now):
        return None
    if any(not snapshot.waiting or snapshot.free_threads for snapshot in live):
        return None
    needs = {
        (snapshot.rank, record): needs_of(record, snapshot.rank, now)
        for snapshot in live
        for record in snapshot.waiting
    }
    if _freed(needs, quiet):
        return None
    unmet = [
        (rank, record, need) for (rank, record), wanted in needs.items() for need in _unmet(wanted)
    ]
    reason = explain(unmet, {snapshot.rank for snapshot in now if snapshot.left})
    return Stall("proven", 0.0, reason, tuple(waits_of(now)))


def _moved(before: Snapshots, now: Snapshots) -> bool:
    return [(one.moves, one.left) for one in before] != [(one.moves, one.left) for one in now]


def _freed(needs: dict[tuple[int, Record], Needs], quiet: bool) -> set[int]:
    """Ranks that can go on, given what all have issued; the rest is stuck for ever."""
    freed: set[int] = set()
    while True:
        more = {
            rank
            for (rank, _record), wanted in needs.items()
            if rank not in freed and _can_be_met(wanted, freed, quiet)
        }
        if not more:
            return freed
        freed |= more


def _can_be_met(needs: Needs, freed: set[int], quiet: bool) -> bool:
    def hopeful(need: Need) -> bool:
        if need.state is State.UNISSUED:
            return need.peer in freed
        return need.state is State.MET or (need.state is State.DOUBTFUL and not quiet)

    required = needs.hard + needs.soft if quiet else needs.hard
    if not all(hopeful(need) for need in required):
        return False
    return not needs.any_of or any(hopeful(need) for need in needs.any_of)


def _unmet(needs: Needs) -> list[Need]:
    wanted = dict.fromkeys(needs.hard + needs.soft + needs.any_of)
    return [need for need in wanted if need.state is not State.MET]


def waits_of(snapshots: Snapshots) -> Iterator[RankWait]:
    """What each rank waits in, by rank; a rank that has left is told as such."""
    for snapshot in snapshots:
        if snapshot.left:
            yield RankWait(snapshot.rank, LEFT)
        for record in () if snapshot.left else snapshot.waiting:
            yield wait_of(snapshot.rank, record, len(snapshots))
        if not snapshot.left and not snapshot.waiting:
            yield RankWait(snapshot.rank)


def wait_of(rank: int, record: Record, num_ranks: int) -> RankWait:
    """Describe a record of ``rank`` in a world of ``num_ranks``."""
    channel = record.channel
    whole_world = len(channel.members) == num_ranks
    return RankWait(
        rank=rank,
        operation=record.operation,
        sequence=record.sequence,
        group="" if whole_world else format_ranks(channel.members),
        shape=record.shape,
        dtype=record.dtype,
        peer=channel.peer if channel.peer >= 0 else None,
        place=record.place,
    )


def first_difference(snapshots: Snapshots) -> tuple[RankWait, ...]:
    """The first collective at which the ranks' sequences part, as far as records reach back.

    Returns:
        One entry for each member of the group, without an operation where a rank never issued one
        at that position; empty if the sequences agree as far as they go.
    """
    channels = {
        record.channel
        for snapshot in snapshots
        for record in snapshot.recent
        if record.channel.kind == "collective"
    }
    partings = []
    for channel in channels:
        members = [snapshots[member] for member in channel.members if member < len(snapshots)]
        known = [record for one in members for record in one.recent if record.channel == channel]
        for sequence in sorted({record.sequence for record in known}):
            row = [record_at(one, channel, sequence) for one in members]
            missing = [one.channels.get(channel, 0) < sequence for one in members]
            if any(missing) or len({_signature(record) for record in row if record}) > 1:
                entered = min(record.entered_ns for record in row if record)
                partings.append((entered, tuple(_row(members, row, len(snapshots)))))
                break
    return min(partings, key=lambda parting: parting[0])[1] if partings else ()


def _signature(record: Record) -> tuple[str, int, int]:
    return family_of(record), record.num_bytes, record.root


def _row(
    members: list[RankSnapshot], row: list[Record | None], num_ranks: int
) -> Iterator[RankWait]:
    for one, record in zip(members, row, strict=True):
        yield wait_of(one.rank, record, num_ranks) if record else RankWait(one.rank)


def wait_columns() -> list[str]:
    """Headings of the columns of :func:`format_waits`."""
    return [_("rank"), _("step"), _("waits in"), _("group"), _("tensor"), _("peer"), _("at")]


def format_waits(waits: Sequence[RankWait]) -> list[list[str]]:
    """One row of texts for each wait; a text is empty where nothing is known."""
    return [
        [
            str(wait.rank),
            "" if wait.step is None else str(wait.step),
            operation_text(wait),
            wait.group,
            f"{wait.dtype}{wait.shape}",
            "" if wait.peer is None else str(wait.peer),
            wait.place,
        ]
        for wait in waits
    ]


def operation_text(wait: RankWait) -> str:
    """``all_reduce #7``; or that the rank has left, or is in no operation that was recorded."""
    if wait.operation == LEFT:
        return _("(has left)")
    if not wait.operation:
        return _("(not in a torch call)")
    return wait.operation + ("" if wait.sequence is None else f" #{wait.sequence}")
