"""test, check and reveal: what a learner reads about their tests, their fix and the answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Breaklab = Callable[..., Any]
LESSON = "Who loads data takes part in every collective that follows."


@pytest.fixture
def source(tiny_project: Path) -> Path:
    return tiny_project / "lab" / "src" / "tiny" / "data.py"


def other_fix(source: Path) -> None:
    """Take the break out in another way than the original code is written."""
    text = source.read_text().replace("    if rank == 0:\n        mine = mine[:-1]\n", "")
    source.write_text(text.replace("numbers[rank::world_size]", "numbers[rank:: world_size]"))


def test_a_healthy_tree_is_green_and_exits_0(breaklab: Breaklab) -> None:
    assert breaklab("test").out.startswith("GREEN  3 passed in ")


def test_red_tests_show_the_first_useful_line_each_and_exit_1(breaklab: Breaklab) -> None:
    breaklab("apply", "35-01")
    lines = breaklab("test", code=1).out.splitlines()
    assert lines[0] == "RED    tests/test_shards.py::test_every_number_is_seen_once"
    assert lines[2] == "RED    tests/test_shards.py::test_ranks_own_equally_many"
    assert lines[3] == "       AssertionError: rank 0 and rank 1 differ"
    assert lines[4].startswith("RED    2 failed, 1 passed in ")


def test_test_json_has_the_documented_keys(breaklab: Breaklab) -> None:
    breaklab("apply", "35-01")
    answer = breaklab("test", "--json", code=1).json
    assert (answer["green"], answer["timed_out"], len(answer["tests"])) == (False, False, 3)
    assert set(answer["tests"][0]) == {"nodeid", "outcome", "duration_s", "reason"}


def test_arguments_after_the_dashes_go_to_pytest(breaklab: Breaklab) -> None:
    assert breaklab("test", "--", "-k", "mean").out.startswith("GREEN  1 passed")
    one = "tests/test_shards.py::test_mean_of_shards_is_mean_of_all"
    assert breaklab("test", "--", one).out.startswith("GREEN  1 passed")


def test_a_lab_that_cannot_be_imported_shows_the_reason(breaklab: Breaklab, source: Path) -> None:
    source.write_text("def shard(:\n")
    out = breaklab("test", code=1).out
    assert "SyntaxError" in out


def test_no_test_at_all_is_not_green_and_shows_what_pytest_said(breaklab: Breaklab) -> None:
    out = breaklab("test", "--", "-k", "no_such_test", code=1).out
    assert "No test was run. pytest said:" in out
    assert "deselected" in out


def test_check_without_a_break_says_what_to_do(breaklab: Breaklab) -> None:
    assert "no break is applied here" in breaklab("check", code=2).err


def test_check_of_an_untouched_break_is_not_solved(breaklab: Breaklab) -> None:
    breaklab("apply", "35-01")
    out = breaklab("check", code=1).out
    assert "Not solved: the source is still exactly as apply left it." in out
    assert LESSON not in out


def test_check_of_the_original_code_is_solved_and_shows_the_lesson(
    breaklab: Breaklab, source: Path
) -> None:
    pristine = source.read_bytes()
    breaklab("apply", "35-01")
    source.write_bytes(pristine)
    out = breaklab("check").out
    assert "Solved: 35-01 short-shard. Your fix is the original code, byte for byte." in out
    assert LESSON in out
    assert "pytorch/pytorch#1 an example" in out
    assert breaklab("list", "--json").json["breaks"][0]["state"] == "solved"


def test_check_accepts_another_fix_and_says_so(breaklab: Breaklab, source: Path) -> None:
    breaklab("apply", "35-01")
    other_fix(source)
    answer = breaklab("check", "--json").json
    assert (answer["solved"], answer["equals_original"]) == (True, False)
    assert "another one than the original" in breaklab("check").out


def test_check_with_a_changed_test_is_not_solved(
    breaklab: Breaklab, source: Path, tiny_project: Path
) -> None:
    breaklab("apply", "35-01")
    tests = tiny_project / "tests" / "test_shards.py"
    tests.write_text("def test_nothing():\n    pass\n")
    source.write_text(source.read_text() + "# an edit\n")
    out = breaklab("check", code=1).out
    assert "Not solved: these tests were changed since apply: tests/test_shards.py" in out


def test_a_wrong_fix_is_not_solved(breaklab: Breaklab, source: Path) -> None:
    breaklab("apply", "35-01")
    source.write_text(source.read_text().replace("rank == 0", "rank == 1"))
    out = breaklab("check", code=1).out
    assert "Not solved: tests are red." in out
    assert breaklab("list", "--json").json["breaks"][0]["state"] == "applied"


def test_solving_twice_is_recorded_once(
    breaklab: Breaklab, source: Path, tiny_project: Path
) -> None:
    breaklab("apply", "35-01")
    other_fix(source)
    breaklab("check")
    breaklab("check")
    events = (tiny_project / ".breaklab" / "events.jsonl").read_text()
    assert events.count('"kind": "solved"') == 1


def test_after_solving_the_next_break_can_be_applied_without_a_revert(
    breaklab: Breaklab, source: Path
) -> None:
    breaklab("apply", "35-01")
    other_fix(source)
    breaklab("check")
    breaklab("apply", "35-02")
    assert breaklab("status", "--json").json["applied"]["bug_id"] == "35-02"


def test_reveal_without_a_terminal_needs_yes_and_records_nothing_before(
    breaklab: Breaklab,
) -> None:
    err = breaklab("reveal", "35-01", code=2).err
    assert "add --yes" in err
    assert breaklab("list", "--json").json["breaks"][0]["state"] == "open"


def test_reveal_shows_cause_fix_lesson_and_sources_and_counts_as_given_up(
    breaklab: Breaklab,
) -> None:
    out = breaklab("reveal", "35-01", "--yes").out
    for text in ("rank 0 drops the last number", "    -    if rank == 0:\n", LESSON, "an example"):
        assert text in out
    assert breaklab("list", "--json").json["breaks"][0]["state"] == "given up"


def test_reveal_json_has_the_documented_keys(breaklab: Breaklab) -> None:
    answer = breaklab("reveal", "35-02", "--yes", "--json").json
    assert set(answer) == {"bug_id", "concept", "cause", "fix_diff", "lesson", "sources"}


def test_reveal_after_solving_asks_nothing_and_stays_solved(
    breaklab: Breaklab, source: Path
) -> None:
    breaklab("apply", "35-01")
    other_fix(source)
    breaklab("check")
    assert LESSON in breaklab("reveal").out
    assert breaklab("list", "--json").json["breaks"][0]["state"] == "solved"
