from __future__ import annotations

import pytest

from breaklab.learn.progress import State, state_label, state_of
from breaklab.tree.events import Event


def events(*kinds: str, bug_id: str = "35-01") -> list[Event]:
    return [Event(kind, bug_id) for kind in kinds]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ((), State.OPEN),
        (("applied", "hint", "reverted"), State.OPEN),
        (("applied", "checked", "solved", "reverted"), State.SOLVED),
        (("applied", "revealed", "solved"), State.GIVEN_UP),
        (("solved", "revealed"), State.SOLVED),
    ],
)
def test_state_follows_from_what_came_first(kinds: tuple[str, ...], expected: State) -> None:
    assert state_of(events(*kinds), "35-01") is expected


def test_the_break_in_the_tree_is_applied_whatever_was_before() -> None:
    assert state_of(events("solved"), "35-01", active="35-01") is State.APPLIED


def test_events_of_another_break_do_not_count() -> None:
    assert state_of(events("solved", bug_id="35-02"), "35-01") is State.OPEN


def test_every_state_has_a_word() -> None:
    assert len({state_label(state) for state in State}) == len(State)
