"""Says in one sentence why a deadlock is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from breaklab.i18n import _
from breaklab.ranks.records import Record
from breaklab.ranks.verdict_needs import Need, State

Unmet = tuple[int, Record, Need]  # the rank that waits, in what, and for whom


def explain(unmet: Sequence[Unmet], left: set[int]) -> str:
    """Return the reason that explains most: a call that does not fit comes before a cycle."""
    for state, sentence in ((State.DIFFERENT, _different), (State.DOUBTFUL, _doubtful)):
        found = [one for one in unmet if one[2].state is state]
        if found:
            return sentence(min(found, key=_when))
    gone = [one for one in unmet if one[2].peer in left]
    if gone:
        return _left(min(gone, key=_when))
    return _cycle(unmet)


def _when(one: Unmet) -> tuple[int, int, int]:
    rank, record, need = one
    return record.sequence, rank, need.peer


def _name(record: Record) -> str:
    return f"{record.operation} #{record.sequence}"


def _different(one: Unmet) -> str:
    rank, record, need = one
    theirs = need.theirs
    assert theirs is not None
    return _(
        "different collectives at the same position: rank {rank} waits in {operation},"
        " where rank {peer} called {theirs}"
    ).format(rank=rank, operation=_name(record), peer=need.peer, theirs=_name(theirs))


def _doubtful(one: Unmet) -> str:
    rank, record, need = one
    theirs = need.theirs
    assert theirs is not None
    if len({theirs.root, record.root} - {-1}) > 1:
        text = _(
            "the root differs: rank {rank} waits in {operation} with root {root}, rank {peer}"
            " called it with root {other}"
        )
        return text.format(
            rank=rank,
            operation=_name(record),
            root=record.root,
            peer=need.peer,
            other=theirs.root,
        )
    text = _(
        "sizes differ: rank {rank} waits in {operation} with {dtype}{shape}, rank {peer} called it"
        " with {other_dtype}{other_shape}"
    )
    return text.format(
        rank=rank,
        operation=_name(record),
        dtype=record.dtype,
        shape=record.shape,
        peer=need.peer,
        other_dtype=theirs.dtype,
        other_shape=theirs.shape,
    )


def _left(one: Unmet) -> str:
    rank, record, need = one
    return _("rank {rank} waits in {operation} for rank {peer}, which has left").format(
        rank=rank, operation=_name(record), peer=need.peer
    )


def _cycle(unmet: Sequence[Unmet]) -> str:
    """Describe a cycle of waits; there is one, for every rank waits and none for one that left."""
    next_of: dict[int, Unmet] = {}
    for one in unmet:
        next_of.setdefault(one[0], one)
    rank = unmet[0][0]
    path: list[int] = []
    while rank not in path:
        path.append(rank)
        rank = next_of[rank][2].peer
    links = [next_of[member] for member in path[path.index(rank) :]]
    tags = {record.channel.tag for _rank, record, _need in links}
    if len(links) == 2 and len(tags) == 2:
        return _tags(links)
    chain = ", ".join(
        _("rank {rank} waits in {operation} for rank {peer}").format(
            rank=member, operation=_name(record), peer=need.peer
        )
        for member, record, need in links
    )
    return _kind([record.channel.kind for _rank, record, _need in links])(chain)


def _tags(links: list[Unmet]) -> str:
    (rank, record, _need), (peer, theirs, _their_need) = links
    return _(
        "tags differ: rank {rank} waits in {operation} with tag {tag}, rank {peer} in {theirs} with"
        " tag {other}"
    ).format(
        rank=rank,
        operation=_name(record),
        tag=record.channel.tag,
        peer=peer,
        theirs=_name(theirs),
        other=theirs.channel.tag,
    )


def _kind(kinds: list[str]) -> Callable[[str], str]:
    if set(kinds) == {"send"}:
        text = _("blocking sends wait for each other: {chain}")
    elif "collective" not in kinds:
        text = _("sends and receives wait in a circle: {chain}")
    elif set(kinds) == {"collective"}:
        text = _("collectives wait in a circle: {chain}")
    else:
        text = _("waits form a circle: {chain}")
    return lambda chain: text.format(chain=chain)
