"""Where a learner stands with each break, from the events alone."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from breaklab.i18n import _
from breaklab.tree.events import APPLIED, SOLVED, Event

REVEALED = "revealed"


class State(StrEnum):
    """Where a learner stands with one break."""

    OPEN = "open"
    APPLIED = "applied"  # in the learner's tree right now
    SOLVED = "solved"
    GIVEN_UP = "given up"  # revealed before it was solved


def state_label(state: State) -> str:
    """Return the word for ``state`` in the language in force."""
    labels = {
        State.OPEN: _("open"),
        State.APPLIED: _("applied"),
        State.SOLVED: _("solved"),
        State.GIVEN_UP: _("given up"),
    }
    return labels[state]


def state_of(events: Iterable[Event], bug_id: str, active: str | None = None) -> State:
    """Return the state of ``bug_id``; ``active`` is the bug id applied at present, if any.

    A break that was revealed stays given up, also when it is solved later; one that was solved
    first stays solved.
    """
    if bug_id == active:
        return State.APPLIED
    for event in events:
        if event.bug_id == bug_id and event.kind == SOLVED:
            return State.SOLVED
        if event.bug_id == bug_id and event.kind == REVEALED:
            return State.GIVEN_UP
    return State.OPEN


def was_revealed_since_applied(events: Iterable[Event], bug_id: str) -> bool:
    """Return whether the answer to ``bug_id`` was shown after it was last applied."""
    revealed = False
    for event in events:
        if event.bug_id == bug_id and event.kind in (APPLIED, REVEALED):
            revealed = event.kind == REVEALED
    return revealed
