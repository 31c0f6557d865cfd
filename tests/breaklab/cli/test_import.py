"""import: what a learner wrote down becomes a draft; a line that is no YAML gets its repair."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from breaklab.spec.breaks import load_spec
from breaklab.spec.entry import dump_entry

Breaklab = Callable[..., Any]
FIX = "remove the `if rank == 0: shards = shards[:-1]` post-split tweak"
RECORD = """\
# Breaks

- bug-id: 35-01
  concept: collective ops require matching contributions
  symptom: training step at iter 1 either hangs or loss diverges within 10 steps
  hidden_cause: dataloader.py drops one sample on rank 0
  hint_1: print len(batch) on each worker at iter 1; are they equal?
  hint_2: grep `array_split` in dataloader.py; what is the slice doing?
  fix_diff: {fix}
"""


@pytest.fixture
def notes(tiny_project: Path) -> Callable[[str], str]:
    """Write a learner's notes below the project; return their path relative to it."""

    def write(text: str) -> str:
        (tiny_project / "breaks.md").write_text(text)
        return "breaks.md"

    return write


def entry(bug_id: str, **fields: str) -> str:
    base = {"concept": "c", "symptom": "s", "hidden_cause": "h", "hint_1": "one", "fix_diff": FIX}
    return dump_entry({"bug-id": bug_id, **base, **fields})


def test_the_courses_own_record_gets_its_error_and_the_repaired_line(
    breaklab: Breaklab, notes: Callable[[str], str], tiny_project: Path
) -> None:
    before = sorted((tiny_project / "breaks").iterdir())
    err = breaklab("import", notes(RECORD.format(fix=FIX)), "--as", "35-40", code=2).err
    assert "breaks.md:9:37: " in err
    assert f"quote it; the repaired line:\n  fix_diff: '{FIX}'\n" in err
    assert sorted((tiny_project / "breaks").iterdir()) == before


def test_the_repaired_record_becomes_a_draft_in_the_language_of_the_notes(
    breaklab: Breaklab, notes: Callable[[str], str], tiny_project: Path
) -> None:
    path = notes(RECORD.format(fix=f"'{FIX}'"))
    out = breaklab("import", path, "--as", "35-40", "--in", "es").out
    spec = load_spec(tiny_project / "breaks" / "35-40.yaml")
    assert spec.symptom.by_language["es"].startswith("training step at iter 1")
    assert spec.symptom.by_language["en"] == "TODO"
    assert len(spec.hints) == 2
    assert "Written: breaks/35-40.yaml\n" in out
    assert "Its fix is in words, kept as a comment: the pattern is yours to write." in out
    assert "breaklab refresh --red 35-40" in out


def test_a_fix_that_is_a_diff_gives_the_pattern_and_the_draft_can_be_proven(
    breaklab: Breaklab, notes: Callable[[str], str], tiny_project: Path
) -> None:
    diff = load_spec(tiny_project / "breaks" / "35-02.yaml").fix_diff
    (draft,) = breaklab("import", notes(entry("35-40", fix_diff=diff)), "--json").json["drafts"]
    assert draft["has_pattern"] is True
    assert "concept.es" in draft["todo"]
    assert "concept.en" not in draft["todo"]
    breaklab("refresh", "35-40", "--red")
    spec = Path(draft["path"])
    text = spec.read_text().replace("slug: TODO", "slug: divisor")
    spec.write_text(text.replace("TODO", "one process knows better"))
    assert breaklab("lint").out == "3 specs, 0 findings\n"
    assert "35-40  proven" in breaklab("verify", "35-40").out


def test_a_break_whose_id_is_taken_does_not_keep_the_others_out(
    breaklab: Breaklab, notes: Callable[[str], str], tiny_project: Path
) -> None:
    ran = breaklab("import", notes(entry("35-01") + entry("35-40") + entry("35-40")), code=2)
    assert "breaks.md:1: the bug-id 35-01 is taken\n" in ran.err
    assert "--entry 35-01 --as ID" in ran.err
    assert ran.err.count("is taken") == 2  # the second 35-40, too
    assert (tiny_project / "breaks" / "35-40.yaml").exists()


def test_one_of_many_is_chosen_by_its_id(
    breaklab: Breaklab, notes: Callable[[str], str], tiny_project: Path
) -> None:
    path = notes(entry("35-01") + entry("35-41"))
    assert "--entry ID" in breaklab("import", path, "--as", "35-40", code=2).err
    breaklab("import", path, "--entry", "35-01", "--as", "35-40")
    assert sorted(file.name for file in (tiny_project / "breaks").iterdir())[-1] == "35-40.yaml"
    assert "it notes: 35-01, 35-41" in breaklab("import", path, "--entry", "35-9", code=2).err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nowhere.md",), "nowhere.md: can't be read: No such file"),
        (("README.md",), "README.md notes no break"),
        (("README.md", "--in", "fr"), "'fr' is not a language of breaklab"),
    ],
)
def test_a_file_that_notes_nothing_is_told(
    breaklab: Breaklab, tiny_project: Path, args: tuple[str, ...], message: str
) -> None:
    (tiny_project / "README.md").write_text("# Nothing\n")
    assert message in breaklab("import", *args, code=2).err
