"""A spec is read whole, or every reason why not is told at once, with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from breaklab.errors import SpecError
from breaklab.model import Action, Outcome, RetiredSpec
from breaklab.spec.breaks import load_spec, place_of

SPEC = """\
format: 1
bug-id: 35-01
slug: short-shard
family: sharding
concept: {en: a concept, es: un concepto}
symptom: a symptom
hidden_cause: a cause
hints: [one, {en: two, es: dos}]
lesson: a lesson
sources: ["a/b#1"]
inject:
  file: src/a.py
  inside: f
  find: x = 1
  delete: true
fix_diff: |
  --- a
  +++ b
expect:
  red: [tests/test_a.py::test_b]
  runs:
    - {variant: stall, outcome: stall, args: [--steps, 3], at_step: 1}
"""


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "35-01.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def findings(write):
    """The findings of a spec, each as one line without its path, with its hint behind ``|``."""

    def findings(text):
        path = write(text)
        with pytest.raises(SpecError) as caught:
            load_spec(path)
        return [
            (str(f).removeprefix(f"{path}:") + (f" | {f.hint}" if f.hint else ""))
            for f in caught.value.findings
        ]

    return findings


def changed(old, new):
    assert SPEC.count(old) == 1, old
    return SPEC.replace(old, new)


def test_every_key_reaches_its_field(write):
    text = changed("family: sharding", "family: sharding\nlab: a-lab\ndifficulty: 3")
    text = text.replace("slug:", "waive: {R1: on purpose}\nprerequisites: [35-02]\nslug:")
    text = text.replace("at_step: 1", "at_step: 1, output: go, num_ranks: 4, fault: 'slow:rank=1'")
    spec = load_spec(write(text))
    assert (spec.bug_id, spec.slug, spec.family, spec.lab) == (
        "35-01",
        "short-shard",
        "sharding",
        "a-lab",
    )
    assert (spec.difficulty, spec.prerequisites, spec.waive) == (
        3,
        ("35-02",),
        {"R1": "on purpose"},
    )
    assert (spec.concept.get("es"), spec.symptom.get("es")) == ("un concepto", "a symptom")
    assert [hint.get("es") for hint in spec.hints] == ["one", "dos"]
    assert (spec.inject.file, spec.inject.inside, spec.inject.find) == ("src/a.py", "f", "x = 1")
    assert (spec.inject.action, spec.inject.code, spec.inject.line) == (Action.DELETE, "", 16)
    assert spec.fix_diff == "--- a\n+++ b\n"
    assert spec.red == ("tests/test_a.py::test_b",)
    (run,) = spec.runs
    assert (run.variant, run.outcome, run.args) == ("stall", Outcome.STALL, ("--steps", "3"))
    assert (run.at_step, run.output, run.num_ranks, run.fault) == (1, "go", 4, "slow:rank=1")


def test_numbered_hints_are_accepted_instead_of_the_list(write):
    spec = load_spec(write(changed("hints: [one, {en: two, es: dos}]", "hint_2: b\nhint_1: a")))
    assert [hint.get("en") for hint in spec.hints] == ["a", "b"]


def test_retired_id_needs_nothing_else(write):
    spec = load_spec(write("format: 1\nbug-id: 35-09\nretired: merged into 35-01\n"))
    assert spec == RetiredSpec(spec.path, "35-09", "merged into 35-01")


def test_place_of_a_value_is_where_it_stands_in_the_file(write):
    spec = load_spec(write(SPEC))
    place = place_of(spec, "expect.runs[0].outcome")
    assert (place.line, place.column) == (22, 33)
    assert place_of(spec, "hints[1].es").column == 28
    assert (place_of(spec, "no.such").line, place_of(spec, "no.such").column) == (1, 1)


WRONG = {
    "unknown key, near a known one": (
        ("slug:", "slugg:"),
        [
            "1:1: the key `slug` is missing [missing-key]",
            "3:1: unknown key `slugg` [unknown-key] | did you mean `slug`?",
        ],
    ),
    "unknown key far from all": (
        ("  inside: f", "  inside: f\n  qqqq: 1"),
        [
            "14:3: unknown key `qqqq` [unknown-key] | known keys: file, inside, find, "
            "replace_with, insert_before, insert_after, delete, move_before, move_after, codemod"
        ],
    ),
    "duplicate key": (
        ("family: sharding", "family: sharding\nslug: again"),
        ["5:1: the key `slug` was given already on line 3 [duplicate-key]"],
    ),
    "duplicate key deep inside": (
        ("{en: a concept, es: un concepto}", "{en: a, es: b, en: c}"),
        ["5:25: the key `en` was given already on line 5 [duplicate-key]"],
    ),
    "wrong type": (
        ("hints: [one, {en: two, es: dos}]", "hints: {one: 1}"),
        ["8:8: `hints` is a mapping; it must be a list [type]", "8:8: `hints` is empty [empty]"],
    ),
    "empty hint": (
        ("hints: [one, {en: two, es: dos}]", 'hints: [one, " "]'),
        ["8:14: `hints[1]` is empty [empty]"],
    ),
    "hint that is null": (
        ("hints: [one, {en: two, es: dos}]", "hints: [one, ]\nhint_3: ~"),
        [
            "9:9: give either `hints` or `hint_1`, `hint_2`, ..., not both [hints]",
        ],
    ),
    "no hints": (
        ("hints: [one, {en: two, es: dos}]\n", ""),
        ["1:1: the key `hints` is missing [missing-key]"],
    ),
    "hints with a gap": (
        ("hints: [one, {en: two, es: dos}]", "hint_1: a\nhint_3: b"),
        ["9:9: hint levels must be 1, 2, 3, ... without a gap [hints]"],
    ),
    "text in an unknown language": (
        ("{en: a concept, es: un concepto}", "{en: a concept, fr: un concept}"),
        ["5:26: unknown key `fr` [unknown-key] | known keys: en, es"],
    ),
    "bug-id of another form": (
        ("35-01", "break-1"),
        ["2:9: `bug-id` is `break-1`; it must look like 35-01 [bug-id]"],
    ),
    "unknown outcome": (
        ("outcome: stall", "outcome: hang"),
        [
            "22:33: `expect.runs[0].outcome` is `hang`; it must be one of healthy, stall, crash, "
            "diverged, wrong, slow [choice]"
        ],
    ),
    "unknown action": (
        ("  delete: true", "  remove: true"),
        [
            "12:3: `inject` needs `find` and exactly one action; it has find [inject] | "
            "actions: replace_with, insert_before, insert_after, delete, move_before, move_after",
            "15:3: unknown key `remove` [unknown-key] | known keys: file, inside, find, "
            "replace_with, insert_before, insert_after, delete, move_before, move_after, codemod",
        ],
    ),
    "two actions": (
        ("  delete: true", "  delete: true\n  replace_with: y"),
        [
            "12:3: `inject` needs `find` and exactly one action; it has find, delete, "
            "replace_with [inject] | actions: replace_with, insert_before, insert_after, delete, "
            "move_before, move_after"
        ],
    ),
    "no action": (
        ("  delete: true\n", ""),
        [
            "12:3: `inject` needs `find` and exactly one action; it has find [inject] | actions: "
            "replace_with, insert_before, insert_after, delete, move_before, move_after"
        ],
    ),
    "codemod and pattern": (
        ("  delete: true", "  delete: true\n  codemod: codemods/x.py:X"),
        ["12:3: give either `codemod` or `find` with an action [inject]"],
    ),
    "codemod of no known form": (
        ("  find: x = 1\n  delete: true", "  codemod: x.py"),
        ["14:12: `inject.codemod` is `x.py`; it must look like codemods/x.py:Class [codemod]"],
    ),
    "delete with a value": (
        ("delete: true", "delete: x = 1"),
        ["15:11: `inject.delete` is `x = 1`; it must be `true`: `find` says what goes [type]"],
    ),
    "path out of the lab": (
        ("src/a.py", "../a.py"),
        [
            "12:9: `inject.file` is `../a.py`; it must be relative to the lab and stay inside it "
            "[path]"
        ],
    ),
    "absolute path": (
        ("src/a.py", "/etc/passwd"),
        [
            "12:9: `inject.file` is `/etc/passwd`; it must be relative to the lab and stay inside "
            "it [path]"
        ],
    ),
    "two variants of one name": (
        (
            "at_step: 1}",
            "at_step: 1}\n    - {variant: stall, outcome: wrong}",
        ),
        ["22:5: two variants have the same name [variant]"],
    ),
    "waiver of a rule that always holds": (
        ("slug:", "waive: {R5: no}\nslug:"),
        ["3:9: unknown key `R5` [unknown-key] | known keys: R1, R2, R4, R6, R7, R8"],
    ),
    "difficulty out of range": (
        ("slug:", "difficulty: 6\nslug:"),
        ["3:13: `difficulty` is `6`; it must be a whole number from 1 to 5 [type]"],
    ),
    "newer format": (
        ("format: 1", "format: 2"),
        ["1:9: format 2 is newer than this breaklab knows (1) [format] | upgrade breaklab"],
    ),
    "no format": (
        ("format: 1\n", ""),
        ["1:1: the key `format` is missing [missing-key]"],
    ),
    "retired without a reason": (
        (SPEC, "format: 1\nbug-id: 35-01\nretired: ''\n"),
        ["3:10: `retired` is empty [empty]"],
    ),
    "no mapping": (
        (SPEC, "- a\n- b\n"),
        ["1:1: `the file` is a list; it must be a mapping with keys [type]"],
    ),
    "empty file": ((SPEC, "# nothing\n"), ["1:1: the file is empty [yaml]"]),
    "tag": (
        ("lesson: a lesson", "lesson: !!python/object/apply:os.system [ls]"),
        ["9:9: the tag tag:yaml.org,2002:python/object/apply:os.system is not allowed [tag]"],
    ),
    "alias": (
        ("lesson: a lesson", "lesson: &a a lesson\ndifficulty: *a"),
        ["9:9: aliases are not allowed; write the text again [alias]"],
    ),
    "plain scalar with a colon and a space": (
        ("lesson: a lesson", "lesson: remove the `if rank == 0: shards = shards[:-1]` tweak"),
        [
            "9:33: not valid YAML: a text that holds `: `, or begins with a special character, "
            "must be quoted [quote-it] | quote it; the repaired line:\n"
            "lesson: 'remove the `if rank == 0: shards = shards[:-1]` tweak'"
        ],
    ),
    "the same in a list, with an apostrophe": (
        ('sources: ["a/b#1"]', "sources:\n  - it's a bug: DDP: hangs"),
        [
            "11:20: not valid YAML: a text that holds `: `, or begins with a special character, "
            "must be quoted [quote-it] | quote it; the repaired line:\n"
            "  - 'it''s a bug: DDP: hangs'"
        ],
    ),
    "the same in the second line of a text": (
        ("lesson: a lesson", "lesson: a long lesson\n  that goes on: here"),
        [
            "10:15: not valid YAML: a text that holds `: `, or begins with a special character, "
            "must be quoted [quote-it] | write `>-` behind the key, and the text on the lines "
            "below it, indented"
        ],
    ),
    "the same in a hint": (
        ("hints: [one, {en: two, es: dos}]", "hints:\n  - en: count: how many?\n    es: x"),
        [
            "9:14: not valid YAML: a text that holds `: `, or begins with a special character, "
            "must be quoted [quote-it] | quote it; the repaired line:\n"
            "  - en: 'count: how many?'"
        ],
    ),
    "the same at the start of a text": (
        ("lesson: a lesson", "lesson: `grep` for it"),
        [
            "9:9: not valid YAML: a text that holds `: `, or begins with a special character, "
            "must be quoted [quote-it] | quote it; the repaired line:\nlesson: '`grep` for it'"
        ],
    ),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_wrong_spec_is_told_in_full(case, findings):
    (old, new), expected = case
    assert findings(changed(old, new)) == expected


def test_every_line_that_lacks_quotes_is_told(findings):
    text = changed("lesson: a lesson", "lesson: a: b").replace("symptom: a", "symptom: `x`: a")
    assert [line.split(":")[0] for line in findings(text)] == ["6", "9"]


def test_all_that_is_wrong_is_told_at_once_in_the_order_of_the_file(findings):
    text = changed("slug: short-shard", "slug: ''").replace("inside: f", "insid: f")
    text = text.replace("outcome: stall", "outcome: hang").replace("35-01", "35/01")
    assert [line.split(":")[0] for line in findings(text)] == ["2", "3", "13", "22"]


def test_newer_format_hides_what_only_an_older_reader_would_mind(findings):
    text = changed("format: 1", "format: 7").replace("slug:", "sluggish:")
    assert [line.partition(": ")[2] for line in findings(text)] == [
        "format 7 is newer than this breaklab knows (1) [format] | upgrade breaklab"
    ]


def test_file_that_is_missing_too_large_or_no_text_is_told(findings, write, tmp_path):
    with pytest.raises(SpecError, match=r"nowhere\.yaml: can't be read: No such file"):
        load_spec(tmp_path / "nowhere.yaml")
    with pytest.raises(SpecError, match="can't be read: Is a directory"):
        load_spec(tmp_path)
    (line,) = findings(SPEC + "# " + "x" * (1 << 20))
    assert line.endswith("is larger than 1048576 bytes [file]")
    assert findings(SPEC.encode() + b"\nx: \xff") == ["24: is not UTF-8 text [file]"]
    assert findings(SPEC + "\x00")[0].endswith("[yaml]")


def test_byte_order_mark_and_windows_newlines_are_read(write):
    spec = load_spec(write(("\ufeff" + SPEC.replace("\n", "\r\n")).encode()))
    assert (spec.bug_id, spec.fix_diff) == ("35-01", "--- a\n+++ b\n")


def test_alias_bomb_is_refused_in_little_time_and_memory(findings):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert {line.split("[")[-1] for line in findings("\n".join(lines))} == {"alias]"}


@pytest.mark.parametrize(
    "text", ["[" * 5000, "{a: " * 5000, "- " * 5000 + "x", "a: " + "- " * 3000, "? " * 3000]
)
def test_deep_nesting_is_refused_without_a_crash(findings, text):
    assert findings(text)


def test_numbers_and_words_are_taken_as_they_are_written(write):
    text = changed("[--steps, 3]", "[--lr, 1e-3, --flag, yes, 012, 2024-01-01]")
    (run,) = load_spec(write(text)).runs
    assert run.args == ("--lr", "1e-3", "--flag", "yes", "012", "2024-01-01")


def test_every_spec_of_this_repository_loads():
    for path in sorted((Path(__file__).parents[3] / "breaks").glob("*.yaml")):
        load_spec(path)


@pytest.mark.parametrize(
    "line",
    [
        "lesson: remove the `if rank == 0: shards = shards[:-1]` tweak",
        "lesson: it's: that",
        "lesson: @rank 0: that",
        "lesson: %d: that",
    ],
)
def test_repaired_line_loads_with_the_text_as_meant(line, findings, write):
    (finding,) = findings(changed("lesson: a lesson", line))
    repaired = finding.rpartition("\n")[2]
    spec = load_spec(write(changed("lesson: a lesson", repaired)))
    assert spec.lesson.get("en") == line.removeprefix("lesson: ")
