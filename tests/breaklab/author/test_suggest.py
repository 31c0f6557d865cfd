"""Candidates of a lab: which are wanted, and results that a later call need not find again."""

from __future__ import annotations

from pathlib import Path

import pytest

from breaklab.author.change import Change, derivation
from breaklab.author.suggest import Choice, Record, mine, record_at
from breaklab.errors import ProjectError
from breaklab.inject.edit import inject
from breaklab.model import Lab, Project
from breaklab.spec.project import find_project, load_labs

FILE = "src/tiny/data.py"


@pytest.fixture
def lab(tiny_project: Path) -> tuple[Project, Lab]:
    project = find_project(tiny_project)
    return project, load_labs(project)[0]


def keys(lab: tuple[Project, Lab], choice: Choice = Choice()) -> list[str]:  # noqa: B008
    return [candidate.key for candidate in mine(*lab, choice, {})]


def test_candidates_come_by_file_and_line_each_once(lab: tuple[Project, Lab]) -> None:
    found = mine(*lab, Choice(), {})
    places = [(candidate.file, candidate.line) for candidate in found]
    assert places == sorted(places)
    assert len({candidate.broken for candidate in found}) == len(found) > 5


def test_files_operators_and_keys_choose(lab: tuple[Project, Lab]) -> None:
    found = mine(*lab, Choice(files=["data.py"], operators=["off-by-one", "no-stride"]), {})
    assert {candidate.file for candidate in found} == {FILE}
    assert {candidate.operator for candidate in found} == {"off-by-one", "no-stride"}
    wanted = [found[2].key, found[0].key]
    assert keys(lab, Choice(keys=wanted)) == wanted


def test_a_lab_says_what_its_collectives_are_called(tiny_project: Path) -> None:
    manifest = tiny_project / "lab/lab.yaml"
    source = tiny_project / "lab" / FILE
    source.write_text(source.read_text().replace("return mine", "share_all(mine)\n    return mine"))
    project = find_project(tiny_project)
    drop = Choice(files=["data.py"], operators=["drop-collective"])
    named = Choice(drop.files, drop.operators, collectives=["share_*"])
    assert keys((project, load_labs(project)[0]), drop) == []
    (wanted,) = keys((project, load_labs(project)[0]), named)
    manifest.write_text(manifest.read_text() + "collectives: [share_*]\n")
    assert keys((project, load_labs(project)[0]), drop) == [wanted]


def test_a_draw_is_the_same_for_the_same_seed(lab: tuple[Project, Lab]) -> None:
    everything = keys(lab)
    drawn = [keys(lab, Choice(limit=4, seed=seed)) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0] == [key for key in everything if key in drawn[0]]
    assert keys(lab, Choice(limit=1000)) == everything


@pytest.mark.parametrize(
    ("choice", "message", "hint"),
    [
        (Choice(files=["date.py"]), "no file date.py", "data.py"),
        (Choice(operators=["no-strides"]), "no operator no-strides", "no-stride"),
        (Choice(keys=["zzz"]), "no candidate zzz", ""),
    ],
)
def test_what_is_not_there_is_told(
    lab: tuple[Project, Lab], choice: Choice, message: str, hint: str
) -> None:
    with pytest.raises(ProjectError) as caught:
        mine(*lab, choice, {})
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_candidates_are_of_the_pristine_source_while_a_break_is_applied(
    lab: tuple[Project, Lab], tiny_project: Path
) -> None:
    before = keys(lab)
    source = tiny_project / "lab" / FILE
    pristine = source.read_bytes()
    source.write_bytes(pristine.replace(b"[rank::world_size]", b""))
    assert keys(lab) != before
    overlay = {f"lab/{FILE}": pristine}
    assert [candidate.key for candidate in mine(*lab, Choice(), overlay)] == before


def test_tests_and_hidden_folders_inside_the_source_are_no_source(tiny_project: Path) -> None:
    manifest = tiny_project / "lab/lab.yaml"
    text = manifest.read_text().replace("source: src", "source: .").replace("../tests", "tests")
    manifest.write_text(text)
    (tiny_project / "tests").rename(tiny_project / "lab/tests")
    (tiny_project / "lab/.venv").mkdir()
    (tiny_project / "lab/.venv/other.py").write_text("def f(x):\n    return x[1:]\n")
    (tiny_project / "lab/tests/helper.py").write_text("def f(x):\n    return x[1:]\n")
    project = find_project(tiny_project)
    found = mine(project, load_labs(project)[0], Choice(), {})
    assert {candidate.file for candidate in found} == {FILE, "src/tiny/train.py"}


def test_a_pattern_can_say_every_candidate(lab: tuple[Project, Lab]) -> None:
    for candidate in mine(*lab, Choice(), {}):
        path = lab[1].root / candidate.file
        change = Change(lab[1], path, candidate.pristine, candidate.broken)
        injection = derivation(change).derived.injection
        assert inject(candidate.pristine, injection).source == candidate.broken


def test_a_record_gives_back_what_was_found_with_the_same_tests(
    lab: tuple[Project, Lab], tiny_project: Path, tmp_path: Path
) -> None:
    path = tmp_path / "tried.jsonl"
    record = record_at(path, *lab, first_red=True)
    assert record.read() == {}
    row = {"key": "a", "fate": "caught", "red": ["tests/test_é.py::test"]}
    record.add(row)
    record.add({"key": "b", "fate": "survived", "red": []})
    assert record.read()["a"] == row
    assert set(record.read()) == {"a", "b"}
    assert record_at(path, *lab, first_red=False).read() == {}
    (tiny_project / "tests/test_more.py").write_text("def test_more(): pass\n")
    assert record_at(path, *lab, first_red=True).read() == {}


@pytest.mark.parametrize("text", ["no json", "[]", '{"row": {}}', '"text"'])
def test_another_file_is_no_record(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other"
    path.write_text(text)
    with pytest.raises(ProjectError, match="is no record of"):
        Record(path, "x", first_red=False).read()
