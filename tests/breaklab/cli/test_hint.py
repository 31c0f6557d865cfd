from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Breaklab = Callable[..., Any]

FIRST, SECOND, THIRD = (
    "print how much each rank owns before the collective",
    "compare what two ranks own",
    "which function decides who owns what?",
)


def recorded_levels(root: Path) -> list[int]:
    lines = (root / ".breaklab" / "events.jsonl").read_text().splitlines()
    return [json.loads(line)["data"]["level"] for line in lines]


def test_hints_come_one_level_at_a_time_and_are_recorded(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    for level, text in enumerate((FIRST, SECOND, THIRD), 1):
        out = breaklab("hint", "35-01").out
        assert out.startswith(f"Hint {level} of 3 for 35-01\n  {text}\n")
        assert [each for each in (FIRST, SECOND, THIRD) if each in out] == [text]
    assert recorded_levels(tiny_project) == [1, 2, 3]


def test_after_the_last_hint_it_stays_and_says_how_to_give_up(breaklab: Breaklab) -> None:
    for _ in range(3):
        breaklab("hint", "35-01")
    out = breaklab("hint", "35-01").out
    assert THIRD in out
    assert "That was every hint." in out
    assert "breaklab reveal" in out


def test_a_level_asked_for_is_shown_exactly(breaklab: Breaklab) -> None:
    assert SECOND in breaklab("hint", "35-01", "--level", "2").out
    # Level 1 was never seen, so it comes next.
    assert FIRST in breaklab("hint", "35-01").out


def test_a_level_that_does_not_exist_names_those_that_do_and_is_not_recorded(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    ran = breaklab("hint", "35-01", "--level", "9", code=2)
    assert ran.err.startswith("Error: 35-01 has no hint of level 9; its levels are 1, 2, 3\n")
    assert not (tiny_project / ".breaklab" / "events.jsonl").exists()


def test_without_an_id_and_with_nothing_applied_it_says_what_to_do(breaklab: Breaklab) -> None:
    assert breaklab("hint", code=2).err == (
        "Error: no break is applied here\n"
        "name one, or apply one first: breaklab list;  breaklab apply ID\n"
    )


def test_hint_json_has_the_documented_keys(breaklab: Breaklab) -> None:
    assert breaklab("hint", "35-01", "--json").json == {
        "bug_id": "35-01",
        "level": 1,
        "levels": 3,
        "text": FIRST,
        "seen_before": False,
    }


def test_a_hint_comes_in_spanish(breaklab: Breaklab) -> None:
    out = breaklab("hint", "35-01", "--lang=es").out
    assert "imprime cuánto tiene cada rango" in out


def test_an_id_that_does_not_exist_suggests_the_nearest(breaklab: Breaklab) -> None:
    assert breaklab("hint", "35-1", code=2).err == (
        "Error: there is no break 35-1\ndid you mean 35-01? all breaks: breaklab list\n"
    )
