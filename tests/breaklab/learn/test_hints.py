from __future__ import annotations

from pathlib import Path

import pytest

from breaklab.errors import BreaklabError
from breaklab.learn.hints import choose_hint, shown_levels
from breaklab.model import BreakSpec, Injection, Text
from breaklab.tree.events import Event


def spec_with(num_hints: int) -> BreakSpec:
    text = Text({"en": "x"})
    return BreakSpec(
        path=Path("35-01.yaml"),
        bug_id="35-01",
        slug="s",
        family="f",
        concept=text,
        symptom=text,
        hidden_cause=text,
        hints=(text,) * num_hints,
        lesson=text,
        sources=(),
        inject=Injection(file="src/m.py"),
        fix_diff="",
        red=(),
        runs=(),
    )


def shown(level: object, bug_id: str = "35-01") -> Event:
    return Event("hint", bug_id, data={"level": level})


@pytest.mark.parametrize(
    ("seen", "expected_level", "seen_before"),
    [
        (set(), 1, False),
        ({1}, 2, False),
        ({2}, 1, False),
        ({1, 3}, 2, False),
        ({1, 2, 3}, 3, True),
    ],
)
def test_next_hint_is_the_lowest_unseen_level_then_the_last(
    seen: set[int], expected_level: int, seen_before: bool
) -> None:
    chosen = choose_hint(spec_with(3), frozenset(seen))
    assert (chosen.level, chosen.seen_before) == (expected_level, seen_before)


def test_a_level_asked_for_is_given_whatever_was_seen() -> None:
    assert choose_hint(spec_with(3), frozenset(), 3).level == 3
    assert choose_hint(spec_with(3), frozenset({1, 2}), 1).seen_before


@pytest.mark.parametrize("level", [9, 0, -1])
def test_a_level_that_does_not_exist_names_those_that_do(level: int) -> None:
    with pytest.raises(BreaklabError) as caught:
        choose_hint(spec_with(3), frozenset(), level)
    assert caught.value.message == f"35-01 has no hint of level {level}; its levels are 1, 2, 3"
    assert "--level" in caught.value.hint


def test_a_spec_with_one_hint_says_so_in_the_singular() -> None:
    with pytest.raises(BreaklabError, match="its only level is 1"):
        choose_hint(spec_with(1), frozenset(), 2)


def test_only_hints_of_this_break_count_as_shown_and_torn_events_do_not_matter() -> None:
    events = [
        shown(1),
        shown(2, "35-02"),
        Event("run", "35-01", data={"level": 3}),
        Event("hint", "35-01"),
        shown("two"),
        shown(True),
    ]
    assert shown_levels(events, "35-01") == {1}
