"""Values change, comments and everything else in the file do not."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from breaklab.errors import SpecError
from breaklab.spec.rewrite import rewritten

TEXT = """\
# yaml-language-server: $schema=schema.json
format: 1
lesson: {en: more, es: más}   # a comment
inject:
  # what changes
  file: src/a.py
  find: x = 1  # plain
  insert_after: |
    if rank == 0:
        x = 2

fix_diff: |
  --- a
  +++ b
   context
   \n\
expect:
  red:   # all of them
    - tests/a.py::test_a
    - tests/a.py::test_b
  runs:
  - {variant: a, args: [x], outcome: stall}
"""
PATH = Path("35-01.yaml")


def rewrite(changes, text=TEXT):
    return rewritten(text, changes, PATH)


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("inject.find", "y = 2", "find: x = 1  # plain", "find: y = 2  # plain"),
        ("inject.find", "d = {'a': 1}", "find: x = 1", "find: 'd = {''a'': 1}'"),
        ("inject.find", "# x", "find: x = 1", "find: '# x'"),
        ("inject.find", "12", "find: x = 1", "find: '12'"),
        (
            "inject.insert_after",
            "if rank == 1:\n    x = 3\n",
            "    if rank == 0:\n        x = 2\n",
            "    if rank == 1:\n        x = 3\n",
        ),
        (
            "inject.insert_after",
            "x = 3",
            "insert_after: |\n    if rank == 0:\n        x = 2\n",
            "insert_after: x = 3\n",
        ),
        ("fix_diff", "--- c\n \n", "  --- a\n  +++ b\n   context\n   \n", "  --- c\n   \n"),
        ("fix_diff", " x\n", "|\n  --- a\n  +++ b\n   context\n   \n", "|2\n   x\n"),
        (
            "expect.red",
            ["t.py::test[a-1]", "b: c"],
            "   # all of them\n    - tests/a.py::test_a\n    - tests/a.py::test_b\n",
            "\n    - t.py::test[a-1]\n    - 'b: c'\n",
        ),
        ("expect.runs[0].variant", "b c", "variant: a", "variant: b c"),
        ("lesson.es", "menos", "es: más", "es: menos"),
        ("lesson.es", "a, b", "es: más", "es: 'a, b'"),
        ("inject.inside", "f", "        x = 2\n\n", "        x = 2\n  inside: f\n\n"),
    ],
)
def test_one_value_changes_and_no_other_character(key, value, old, new):
    assert TEXT.count(old) == 1
    assert rewrite({key: value}) == TEXT.replace(old, new)


def test_plain_value_becomes_a_block():
    text = rewrite({"inject.file": "a\nb\n"})
    assert text == TEXT.replace("file: src/a.py\n", "file: |\n    a\n    b\n")


def test_several_values_change_in_one_go():
    changes = {"inject.find": "a: b", "fix_diff": "x\n", "expect.red": [], "added": "z"}
    document = yaml.safe_load(rewrite(changes))
    assert document["inject"]["find"] == "a: b"
    assert (document["fix_diff"], document["expect"]["red"], document["added"]) == ("x\n", [], "z")


def test_windows_newlines_stay():
    text = rewrite({"fix_diff": "a\nb\n"}, TEXT.replace("\n", "\r\n"))
    assert "fix_diff: |\r\n  a\r\n  b\r\nexpect:" in text
    assert "\n" not in text.replace("\r\n", "")


def test_file_without_a_last_newline_takes_a_new_key():
    text = rewrite({"b": "2 x"}, "a: 1")
    assert yaml.safe_load(text) == {"a": 1, "b": "2 x"}


def test_what_can_not_be_rewritten_is_told():
    for changes in ({"nowhere.find": "x"}, {"lesson.fr": "x"}, {"inject.find": "a\nb  \n"}):
        with pytest.raises(SpecError, match=r"35-01\.yaml: "):
            rewrite(changes)


TEXTS = st.text(
    alphabet=st.sampled_from(
        list("ab :#-'\"\\{}[],&*!|>%@`~?\n\t\r\f é\N{LINE SEPARATOR}\x85\x07")
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=300, deadline=None)
@given(
    key=st.sampled_from(["fix_diff", "inject.file", "lesson.en", "inject.insert_after", "new"]),
    value=TEXTS,
)
def test_any_text_reads_back_as_it_was_or_is_refused(key, value):
    try:
        text = rewrite({key: value})
    except SpecError:
        return
    before, after = yaml.safe_load(TEXT), yaml.safe_load(text)
    keys = key.split(".")
    holder = after
    for part in keys[:-1]:
        holder = holder[part]
    assert str(holder.pop(keys[-1])) == value
    holder = before
    for part in keys[:-1]:
        holder = holder[part]
    holder.pop(keys[-1], None)
    assert after == before


@settings(max_examples=200, deadline=None)
@given(value=TEXTS)
def test_any_diff_can_be_written(value):
    assert yaml.safe_load(rewrite({"fix_diff": "--- a\n" + value}))["fix_diff"] == "--- a\n" + value


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a:\n  b: x\nc: y\n", "a:\n  b: x\n  d: new\n  e: |\n    1\n    2\nc: y\n"),
        ("a:\n  b: x  # why\nc: y\n", "a:\n  b: x  # why\n  d: new\n  e: |\n    1\n    2\nc: y\n"),
        ("a:\n  b: x", "a:\n  b: x\n  d: new\n  e: |\n    1\n    2\n"),
        ("a:\r\n  b: x\r\n", "a:\r\n  b: x\r\n  d: new\r\n  e: |\r\n    1\r\n    2\r\n"),
    ],
)
def test_new_keys_stand_below_the_others_without_a_gap(text, wanted):
    assert rewritten(text, {"a.d": "new", "a.e": "1\n2\n"}, PATH) == wanted
