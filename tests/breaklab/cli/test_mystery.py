"""A mystery break keeps its name to itself until it is solved or given up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Breaklab = Callable[..., Any]
# All that tells 35-02 from other breaks, its family and symptom among it.
SECRETS = ("35-02", "short-mean", "larger than it should be", "divides by", "data.py", "NUM_NUMB")


@pytest.fixture
def source(tiny_project: Path) -> Path:
    return tiny_project / "lab" / "src" / "tiny" / "data.py"


def test_no_command_names_the_mystery_before_it_is_solved(breaklab: Breaklab) -> None:
    outputs = [
        breaklab("apply", "--random", "--family", "reduction"),
        breaklab("status"),
        breaklab("status", "--json"),
        breaklab("run", code=5),
        breaklab("run", "--json", code=5),
        breaklab("test", code=1),
        breaklab("hint"),
        breaklab("hint", "--json"),
        breaklab("hint", "--level", "9", code=2),
        breaklab("check", code=1),
        breaklab("check", "--json", code=1),
        breaklab("apply", "35-01", code=2),
        breaklab("run", "--variant", "loud", code=2),
        breaklab("reveal", code=2),
        breaklab("verify"),
        breaklab("verify", "--json"),
    ]
    for ran in outputs:
        assert not [secret for secret in SECRETS if secret in ran.out + ran.err], ran


def test_the_row_of_a_mystery_looks_like_any_other(breaklab: Breaklab) -> None:
    before = breaklab("list").out
    breaklab("apply", "--random")
    assert breaklab("list").out == before


def test_once_solved_the_name_and_the_lesson_are_told(breaklab: Breaklab, source: Path) -> None:
    pristine = source.read_bytes()
    breaklab("apply", "--random", "--family", "reduction")
    source.write_bytes(pristine)
    out = breaklab("check").out
    assert "Solved: 35-02 short-mean." in out
    assert "Divide by the global count, once." in out
    assert breaklab("status", "--json").json["applied"]["bug_id"] == "35-02"


def test_once_revealed_the_name_is_told(breaklab: Breaklab) -> None:
    breaklab("apply", "--random", "--family", "reduction")
    assert "35-02 short-mean" in breaklab("reveal", "--yes").out
    assert breaklab("status", "--json").json["applied"]["bug_id"] == "35-02"


def test_a_mystery_that_is_reverted_unsolved_keeps_its_name(breaklab: Breaklab) -> None:
    breaklab("apply", "--random", "--family", "reduction")
    out = breaklab("revert").out
    assert out.startswith("The mystery break is out.\n")
    assert "35-02" not in out


def test_only_breaks_that_are_open_and_fit_are_chosen(breaklab: Breaklab) -> None:
    for _ in range(4):
        breaklab("apply", "--random", "--max-difficulty", "1")
        breaklab("revert")
    breaklab("reveal", "35-01", "--yes")
    err = breaklab("apply", "--random", "--max-difficulty", "1", code=2).err
    assert "no break that fits is open any more" in err


def test_an_unknown_family_names_those_there_are(breaklab: Breaklab) -> None:
    err = breaklab("apply", "--random", "--family", "rings", code=2).err
    assert "families: reduction, sharding" in err


@pytest.mark.parametrize("args", [[], ["35-01", "--random"], ["35-01", "--family", "sharding"]])
def test_apply_needs_a_name_or_random_and_not_both(breaklab: Breaklab, args: list[str]) -> None:
    assert "name one break, or let --random choose one" in breaklab("apply", *args, code=2).err
