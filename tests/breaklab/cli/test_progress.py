"""progress and journal, seen from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Breaklab = Callable[..., Any]


@pytest.fixture(autouse=True)
def _ada(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BREAKLAB_LEARNER", "Ada")


@pytest.fixture
def solved(breaklab: Breaklab, tiny_project: Path) -> Path:
    """The project after 35-02 was solved with one hint."""
    source = tiny_project / "lab" / "src" / "tiny" / "data.py"
    pristine = source.read_bytes()
    breaklab("apply", "35-02")
    breaklab("hint")
    source.write_bytes(pristine)
    breaklab("check")
    return tiny_project


def test_progress_before_anything_was_done_is_one_sentence(breaklab: Breaklab) -> None:
    assert breaklab("progress").out == "0 of 2 breaks solved, 0 given up\n"


def test_progress_shows_what_was_met(breaklab: Breaklab, solved: Path) -> None:
    lines = breaklab("progress").out.splitlines()
    assert lines[0].split() == ["ID", "STATE", "MINUTES", "RUNS", "HINTS", "DIAGNOSES"]
    assert lines[1].split() == ["35-02", "solved", "0", "0", "1", "0"]
    assert lines[-1] == "1 of 2 breaks solved, 0 given up"


def test_progress_json_has_the_documented_keys(breaklab: Breaklab, solved: Path) -> None:
    answer = breaklab("progress", "--json").json
    assert answer["learner"] == "ada"
    assert set(answer["breaks"][1]) == {
        *("bug_id", "state", "minutes", "runs", "tests", "checks", "hints", "diagnoses"),
        *("applied_at", "solved_at"),
    }


def test_progress_does_not_name_a_mystery(breaklab: Breaklab) -> None:
    breaklab("apply", "--random", "--family", "reduction")
    breaklab("hint")
    lines = breaklab("progress").out.splitlines()
    assert lines[1].split()[:2] == ["mystery", "applied"]
    assert "35-02" not in "\n".join(lines)
    states = {
        each["bug_id"]: each["state"] for each in breaklab("progress", "--json").json["breaks"]
    }
    assert states == {"35-01": "open", "35-02": "open", None: "applied"}


def test_progress_of_a_class_shows_first_where_it_gets_stuck(
    breaklab: Breaklab, solved: Path, tmp_path: Path
) -> None:
    breaklab("reveal", "35-01", "--yes")
    ada = breaklab("progress", "--json").out
    (tmp_path / "ada.json").write_text(ada)
    grace = json.loads(ada)
    grace["learner"] = "grace"
    grace["breaks"][0].update(state="open", applied_at="", hints=[])
    grace["breaks"][1].update(state="given up", hints=[1, 2])
    (tmp_path / "grace.json").write_text(json.dumps(grace))
    files = [str(tmp_path / "ada.json"), str(tmp_path / "grace.json")]
    rows = breaklab("progress", "--merge", *files, "--json").json["breaks"]
    assert [row["bug_id"] for row in rows] == ["35-01", "35-02"]
    assert rows[0] == {
        **{"bug_id": "35-01", "learners": 1, "solved": 0, "given_up": 1},
        **{"median_minutes": None, "median_hints": 0},
    }
    assert (rows[1]["learners"], rows[1]["solved"], rows[1]["median_hints"]) == (2, 1, 1.5)
    assert "2 learners" in breaklab("progress", "--merge", *files).out


@pytest.mark.parametrize("content", ["", "[]", '{"breaks": [{"bug_id": 7}]}', '{"breaks": 3}'])
def test_a_file_that_is_no_progress_is_named(
    breaklab: Breaklab, tmp_path: Path, content: str
) -> None:
    (tmp_path / "x.json").write_text(content)
    err = breaklab("progress", "--merge", str(tmp_path / "x.json"), code=2).err
    assert "x.json is not what breaklab progress --json prints" in err


def test_journal_writes_the_solved_break_down_and_does_not_write_it_twice(
    breaklab: Breaklab, solved: Path
) -> None:
    path = solved / "learners" / "ada" / "tiny" / "notes" / "breaks.md"
    assert breaklab("journal", "--cause", "wrong count").out == f"Written to {path}\n"
    once = path.read_bytes()
    assert b"hidden_cause: wrong count\n" in once
    assert "in the journal already" in breaklab("journal", "--cause", "x", code=2).err
    assert path.read_bytes() == once
    breaklab("journal", "--cause", "again", "--again")
    assert path.read_bytes().startswith(once)


def test_journal_after_the_revert_takes_the_break_solved_last(
    breaklab: Breaklab, solved: Path
) -> None:
    breaklab("revert")
    assert breaklab("journal", "--cause", "x", "--json").json["bug_id"] == "35-02"


def test_journal_of_an_open_break_is_refused(breaklab: Breaklab) -> None:
    breaklab("apply", "35-01")
    assert "35-01 is still open" in breaklab("journal", "--cause", "x", code=2).err


def test_journal_without_a_terminal_needs_the_cause(breaklab: Breaklab, solved: Path) -> None:
    assert '--cause "..."' in breaklab("journal", code=2).err
