from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from breaklab.errors import BreaklabError
from breaklab.learn.journal import append_entry, entry_for, has_entry, journal_path
from breaklab.learn.who import as_folder_name
from breaklab.model import BreakSpec, Entrypoint, Lab, Project, Text
from breaklab.spec.breaks import load_spec

TINY = Path(__file__).parents[1] / "fixtures" / "tiny_project"


@pytest.fixture
def spec() -> BreakSpec:
    loaded = load_spec(TINY / "breaks" / "35-01.yaml")
    assert isinstance(loaded, BreakSpec)
    return loaded


def read_back(markdown: str) -> list[dict[str, str]]:
    """The entries of a journal, as a YAML reader sees them."""
    blocks = re.findall(r"^(`{3,})yaml\n(.*?)^\1$", markdown, re.MULTILINE | re.DOTALL)
    return [entry for _fence, block in blocks for entry in yaml.safe_load(block)]


@pytest.mark.parametrize(
    "cause",
    [
        "rank 0 dropped one",
        "colon: and `backticks`, 'quotes' and \"more\"",
        "two\n\nparagraphs\n",
        "- looks like a list\n```\nand a fence",
        "# no comment",
        "\u00a1ca\u00f1\u00f3n! \u2264",
        "yes",
        "8",
    ],
)
def test_an_entry_is_yaml_that_reads_back_as_it_was(spec: BreakSpec, cause: str) -> None:
    (entry,) = read_back(entry_for(spec, cause, "en"))
    assert list(entry) == [
        *("bug-id", "concept", "symptom", "hidden_cause", "hint_1", "hint_2", "hint_3", "fix_diff"),
    ]
    assert entry["hidden_cause"] == cause.strip()
    assert entry["bug-id"] == "35-01"
    assert entry["symptom"] == spec.symptom.get("en")
    assert entry["fix_diff"] == spec.fix_diff


def test_texts_are_in_the_language_asked_for(spec: BreakSpec) -> None:
    (entry,) = read_back(entry_for(spec, "x", "es"))
    assert entry["hint_2"] == "compara lo que tienen dos rangos"


@pytest.mark.parametrize("before", [b"", b"# mine\n", b"no newline at the end", b"\xff\xfe\r\n\r"])
def test_what_is_in_the_journal_keeps_every_byte(
    tmp_path: Path, spec: BreakSpec, before: bytes
) -> None:
    path = tmp_path / "learners" / "ada" / "breaks.md"
    path.parent.mkdir(parents=True)
    path.write_bytes(before)
    append_entry(path, entry_for(spec, "first", "en"))
    once = path.read_bytes()
    assert once.startswith(before)
    append_entry(path, entry_for(spec, "second", "en"))
    assert path.read_bytes().startswith(once)
    entries = read_back(path.read_bytes()[len(before) :].decode())
    assert [entry["hidden_cause"] for entry in entries] == ["first", "second"]


def test_a_new_journal_gets_its_folders_and_a_title(tmp_path: Path, spec: BreakSpec) -> None:
    path = tmp_path / "a" / "b" / "breaks.md"
    assert not has_entry(path, "35-01")
    append_entry(path, entry_for(spec, "x", "en"))
    assert path.read_text().startswith("# Breaks\n\n```yaml\n- bug-id: ")
    assert has_entry(path, "35-01")
    assert not has_entry(path, "35-0")


def test_a_journal_that_cannot_be_written_is_a_clear_error(tmp_path: Path, spec: BreakSpec) -> None:
    (tmp_path / "learners").write_text("a file in the way")
    with pytest.raises(BreaklabError, match="can't be used"):
        append_entry(tmp_path / "learners" / "breaks.md", "x")


def lab_with_journal(root: Path, journal: str) -> Lab:
    return Lab(root, "tiny", Text({}), root, root, Entrypoint("m"), step_line="", journal=journal)


def test_the_manifest_says_where_the_journal_lies(tmp_path: Path) -> None:
    project = Project(tmp_path, (), ())
    lab = lab_with_journal(tmp_path, "learners/{learner}/phase-35/notes/breaks.md")
    expected = tmp_path / "learners" / "ada" / "phase-35" / "notes" / "breaks.md"
    assert journal_path(project, lab, "ada") == expected


def test_a_journal_outside_the_project_is_refused(tmp_path: Path) -> None:
    lab = lab_with_journal(tmp_path, "../{learner}.md")
    with pytest.raises(BreaklabError, match="outside the project"):
        journal_path(Project(tmp_path / "project", (), ()), lab, "ada")


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("Ada Lovelace", "ada-lovelace"),
        ("../../etc", "etc"),
        (" .hidden ", "hidden"),
        ("a/b\\c", "a-b-c"),
        ("Jos\u00e9", "jos\u00e9"),
        ("..", ""),
    ],
)
def test_a_learners_name_becomes_one_safe_folder(name: str, folder: str) -> None:
    assert as_folder_name(name) == folder
