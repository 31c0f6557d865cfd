"""What a learner did with each break, counted from the events alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from breaklab.learn.hints import HINT_SHOWN
from breaklab.learn.progress import REVEALED, State, state_of
from breaklab.tree.events import APPLIED, REVERTED, SOLVED, Event

MYSTERY = ""  # stands for the id of a break whose name is still hidden
MAX_GAP_S = 30 * 60.0  # a longer pause between two events was no work on the break
_DIAGNOSES = ("diagnosed", "compare")


@dataclass(frozen=True)
class Tally:
    """One break as a learner met it."""

    bug_id: str  # MYSTERY for all breaks whose name is hidden
    state: State
    active_s: float  # at work on it, pauses over MAX_GAP_S counted as that; until it was solved
    runs: int
    tests: int
    checks: int
    hints: tuple[int, ...]  # levels shown
    diagnoses: int  # diagnoses and comparisons that were looked at
    applied_at: str = ""  # ISO 8601, UTC
    solved_at: str = ""


def hide_mysteries(events: Iterable[Event]) -> list[Event]:
    """Return the events with the id of a mystery replaced, unless it was solved or revealed.

    What happened to the same break outside the mystery keeps its name.
    """
    shown: list[Event] = []
    hidden: dict[str, list[int]] = {}  # bug id -> places of the mystery's events, while it lasts
    for event in events:
        if event.kind == APPLIED and event.data.get("hidden"):
            hidden[event.bug_id] = []
        if event.bug_id in hidden and event.kind in (SOLVED, REVEALED):
            for place in hidden.pop(event.bug_id):
                shown[place] = replace(shown[place], bug_id=event.bug_id)
        if event.bug_id not in hidden:
            shown.append(event)
            continue
        hidden[event.bug_id].append(len(shown))
        shown.append(replace(event, bug_id=MYSTERY))
        if event.kind == REVERTED:
            del hidden[event.bug_id]
    return shown


def tally_all(
    events: Sequence[Event], bug_ids: Iterable[str], active: str | None = None
) -> list[Tally]:
    """Return a tally for each of ``bug_ids``, and one for mysteries if there were any.

    Args:
        events: of the project, oldest first; see :func:`hide_mysteries`.
        bug_ids: the breaks to count.
        active: the bug id that is applied now, :data:`MYSTERY` for one whose name is hidden.
    """
    tallies = [tally(events, bug_id, active) for bug_id in bug_ids]
    if any(event.bug_id == MYSTERY for event in events):
        tallies.append(tally(events, MYSTERY, active))
    return tallies


def tally(events: Iterable[Event], bug_id: str, active: str | None = None) -> Tally:
    """Return what happened with one break; see :func:`tally_all`."""
    mine = [event for event in events if event.bug_id == bug_id]
    kinds = [event.kind for event in mine]
    levels = {event.data.get("level") for event in mine if event.kind == HINT_SHOWN}
    return Tally(
        bug_id=bug_id,
        state=state_of(mine, bug_id, active),
        active_s=_active_s(mine),
        runs=kinds.count("run"),
        tests=kinds.count("test"),
        checks=kinds.count("checked"),
        hints=tuple(sorted(level for level in levels if type(level) is int)),
        diagnoses=sum(
            kind in _DIAGNOSES or (kind == "run" and bool(event.data.get("diagnosed")))
            for kind, event in zip(kinds, mine, strict=True)
        ),
        applied_at=_time_of_first(mine, APPLIED),
        solved_at=_time_of_first(mine, SOLVED),
    )


def _time_of_first(events: Iterable[Event], kind: str) -> str:
    return next((event.time for event in events if event.kind == kind), "")


def _active_s(events: Iterable[Event]) -> float:
    """Return the seconds between the events while the break was applied and not solved."""
    total = 0.0
    before: datetime | None = None
    for event in events:
        at = _parse_time(event.time)
        if at is None:
            continue
        if before is not None:
            total += min(max((at - before).total_seconds(), 0.0), MAX_GAP_S)
        if event.kind == APPLIED or before is not None:
            before = None if event.kind in (SOLVED, REVERTED, REVEALED) else at
    return total


def _parse_time(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else None
