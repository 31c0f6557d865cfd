from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from breaklab.model import Project
from breaklab.tree.events import append_event

Breaklab = Callable[..., Any]


def happened(root: Path, kind: str, bug_id: str) -> None:
    append_event(Project(root, (), ()), kind, bug_id)


def test_list_shows_each_break_on_one_line(breaklab: Breaklab) -> None:
    lines = breaklab("list").out.splitlines()
    assert lines[0].split() == ["ID", "FAMILY", "LEVEL", "STATE", "SYMPTOM"]
    assert lines[1].startswith("35-01  sharding   1      open   training stands still at step 1")
    assert lines[2].startswith("35-02  reduction  2      open   the loss is larger")


def test_list_names_neither_cause_nor_slug_nor_file(breaklab: Breaklab) -> None:
    out = breaklab("list").out + breaklab("list", "--json").out
    for secret in ("short-shard", "drops the last", "data.py", "must own as much"):
        assert secret not in out


def test_list_json_has_the_documented_keys(breaklab: Breaklab) -> None:
    listed = breaklab("list", "--json").json
    assert listed["broken"] == []
    assert listed["breaks"][1] == {
        "bug_id": "35-02",
        "family": "reduction",
        "difficulty": 2,
        "symptom": "the loss is larger than it should be, on every rank",
        "state": "open",
    }


def test_list_shows_what_was_solved_and_what_given_up(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    happened(tiny_project, "solved", "35-01")
    happened(tiny_project, "revealed", "35-02")
    states = [each["state"] for each in breaklab("list", "--json").json["breaks"]]
    assert states == ["solved", "given up"]
    assert "given up" in breaklab("list").out


def test_list_works_from_a_folder_inside_the_project(
    breaklab: Breaklab, tiny_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny_project / "lab" / "src")
    assert "35-01" in breaklab("list").out


def test_a_spec_that_cannot_be_used_is_named_and_the_others_listed(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    (tiny_project / "breaks" / "35-03.yaml").write_text("format: 1\nbug-id: 35-03\nslgu: x\n")
    ran = breaklab("list")
    assert "35-01" in ran.out
    assert ran.err == (
        "breaks/35-03.yaml can't be used; see why: breaklab lint breaks/35-03.yaml\n"
    )
    (broken,) = breaklab("list", "--json").json["broken"]
    assert broken["path"].endswith("35-03.yaml")
    assert "35-03.yaml:3:1: unknown key `slgu`" in broken["message"]


def test_a_project_without_breaks_says_so(breaklab: Breaklab, tiny_project: Path) -> None:
    for path in (tiny_project / "breaks").iterdir():
        path.unlink()
    assert breaklab("list").out == "This project has no breaks yet.\n"


def test_symptoms_come_in_the_language_asked_for(breaklab: Breaklab) -> None:
    out = breaklab("list", "--json", "--lang", "es").json
    assert out["breaks"][0]["symptom"].startswith("el entrenamiento se detiene")
