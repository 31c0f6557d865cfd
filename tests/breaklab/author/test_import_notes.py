from __future__ import annotations

import pytest

from breaklab.author.import_notes import draft_from_note
from breaklab.author.lint import lint
from breaklab.errors import SpecError
from breaklab.spec.breaks import load_spec
from breaklab.spec.catalogue import load_catalogue
from breaklab.spec.entry import dump_entry
from breaklab.spec.notes import load_notes
from breaklab.spec.project import find_project

# As the course's page has it: its last line is no YAML.
SEED = """\
# Breaks

What I met in phase 35.

- bug-id: 35-01
  concept: collective ops require matching contributions
  symptom: training step at iter 1 either hangs (no progress, no logs after "starting all-reduce")
    or loss diverges within 10 steps with a wrong gradient magnitude on worker 0
  hidden_cause: dataloader.py drops one sample on rank 0; effective batch differs across workers
  hint_1: print len(batch) on each worker at iter 1; are they equal?
  hint_2: compare loss on worker 0 and worker 1 for the same global step
  hint_3: grep `array_split` in dataloader.py; what is the slice doing?
  fix_diff: remove the `if rank == 0: shards = shards[:-1]` post-split tweak

Then I went on.
"""
REPAIRED = "  fix_diff: 'remove the `if rank == 0: shards = shards[:-1]` post-split tweak'"


@pytest.fixture
def notes(tmp_path):
    def notes(text):
        path = tmp_path / "breaks.md"
        path.write_text(text)
        return load_notes(path)

    return notes


def test_seeds_own_record_gets_the_repaired_line(notes, tmp_path):
    with pytest.raises(SpecError) as caught:
        notes(SEED)
    (finding,) = caught.value.findings
    assert str(finding.location) == f"{tmp_path}/breaks.md:13:37"
    assert finding.rule == "quote-it"
    assert finding.hint == f"quote it; the repaired line:\n{REPAIRED}"


def repaired(text=SEED):
    lines = text.split("\n")
    index = next(n for n, line in enumerate(lines) if line.startswith("  fix_diff: remove"))
    return "\n".join([*lines[:index], REPAIRED, *lines[index + 1 :]])


def test_repaired_record_is_read_whole(notes):
    (note,) = notes(repaired())
    assert (note.bug_id, note.line) == ("35-01", 5)
    assert note.symptom.endswith("wrong gradient magnitude on worker 0")
    assert len(note.hints) == 3
    assert note.fix.startswith("remove the `if rank == 0: shards")


def test_lists_in_fences_and_between_paragraphs_are_found(notes):
    one = repaired().split("\n\n")[2]
    text = f"# A\n\n```yaml\n{one}\n\n{one}\n```\n\n- a point\n- another: point\n\n{one}\n"
    with pytest.raises(SpecError, match=r"breaks\.md:26:3: the key `bug-id` is missing"):
        notes(text)
    text = text.replace("- another: point\n", "")
    assert [note.line for note in notes(text)] == [4, 14, 27]


def test_diff_that_names_a_file_outside_the_lab_is_never_followed(notes, tiny_project):
    project = find_project(tiny_project)
    files = sorted(tiny_project.rglob("*"))
    for name in ("../tiny/lab/src/tiny/data.py", "/etc/hostname", "../../../etc/hostname"):
        fix = f"--- a/x\n+++ b/{name}\n@@ -1 +1 @@\n-a\n+b\n"
        entry = {"bug-id": "35-40", "concept": "c", "symptom": "s", "hidden_cause": "h"}
        (note,) = notes(dump_entry({**entry, "hint_1": "one", "fix_diff": fix}))
        assert "# --- a/x\n" in draft_from_note(project, note, language="en")
    assert sorted(tiny_project.rglob("*")) == files


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  concept:", "  concepts:", ":6:3: unknown key `concepts` [unknown-key]"),
        ("35-01", "thirty-five", ":5:11: `bug-id` is `thirty-five`; it must look like 35-01"),
        ("  hint_1:", "  hint_9:", ":5:3: the key `hint_1` is missing [missing-key]"),
    ],
)
def test_record_that_lacks_something_is_told_with_its_place(notes, old, new, message):
    with pytest.raises(SpecError) as caught:
        notes(repaired().replace(old, new))
    assert any(message in str(finding) for finding in caught.value.findings)


def test_file_without_a_break_has_no_notes(notes):
    assert notes("# Breaks\n\nNothing yet.\n\n- a list\n") == []


def test_note_becomes_a_draft_with_its_words_in_place(notes, tiny_project):
    (note,) = notes(repaired())
    project = find_project(tiny_project)
    text = draft_from_note(project, note, language="es", bug_id="35-40")
    path = tiny_project / "breaks/35-40.yaml"
    path.write_text(text)
    spec = load_spec(path)
    assert (spec.bug_id, spec.concept.by_language["es"]) == ("35-40", note.concept)
    assert [hint.by_language["es"] for hint in spec.hints] == list(note.hints)
    assert spec.concept.by_language["en"] == "TODO"
    assert "# remove the `if rank == 0: shards = shards[:-1]` post-split tweak\ninject:" in text


def test_note_with_a_diff_becomes_a_draft_with_its_pattern(notes, tiny_project):
    project = find_project(tiny_project)
    known = load_catalogue(project).find("35-01")
    entry = {
        "bug-id": "35-40",
        "concept": "c",
        "symptom": "s",
        "hidden_cause": "h",
        "hint_1": "one",
        "fix_diff": known.fix_diff,
    }
    (note,) = notes("# Breaks\n\n" + dump_entry(entry))
    path = tiny_project / "breaks/35-40.yaml"
    path.write_text(draft_from_note(project, note, language="en"))
    spec = load_spec(path)
    assert spec.inject.find == "mine = numbers[rank::world_size]"
    assert spec.fix_diff == known.fix_diff
    assert len(spec.hints) == 1
    rules = {f.rule for f in lint(project) if f.location.path == str(path)}
    assert rules == {"todo", "R3"}


def test_diff_that_does_not_fit_the_lab_stays_words(notes, tiny_project):
    project = find_project(tiny_project)
    fix = load_catalogue(project).find("35-01").fix_diff.replace("rank == 0", "rank == 9")
    fix = fix.replace("numbers[rank", "other[rank")
    entry = {"bug-id": "35-40", "concept": "c", "symptom": "s", "hidden_cause": "h"}
    (note,) = notes(dump_entry({**entry, "hint_1": "one", "fix_diff": fix}))
    text = draft_from_note(project, note, language="en")
    assert "# --- a/src/tiny/data.py\n" in text
