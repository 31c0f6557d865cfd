"""A fix_diff is what git itself can apply, for every kind of file."""

from __future__ import annotations

import codecs
import os
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from breaklab.inject.diff import changed_lines, fix_diff

LINES = [f"line {number}" for number in range(1, 31)]


def text_of(lines, newline="\n", *, last=True):
    return newline.join(lines) + (newline if last else "")


def with_line(index, line):
    return [*LINES[:index], line, *LINES[index + 1 :]]


NEAR_END = with_line(28, "changed")
FILES = {  # what 4.3 of the style study found to fail elsewhere
    "near the end": (text_of(NEAR_END), text_of(LINES)),
    "first line": (text_of(with_line(0, "changed")), text_of(LINES)),
    "no newline at the end": (text_of(NEAR_END, last=False), text_of(LINES, last=False)),
    "last line without newline": (
        text_of(with_line(29, "changed"), last=False),
        text_of(LINES, last=False),
    ),
    "newline at the end lost": (text_of(LINES, last=False), text_of(LINES)),
    "newline at the end won": (text_of(LINES), text_of(LINES, last=False)),
    "CRLF": (text_of(NEAR_END, "\r\n"), text_of(LINES, "\r\n")),
    "CRLF without the last": (
        text_of(NEAR_END, "\r\n", last=False),
        text_of(LINES, "\r\n", last=False),
    ),
    "mixed newlines": (
        text_of(NEAR_END[:20], "\r\n") + text_of(NEAR_END[20:]),
        text_of(LINES[:20], "\r\n") + text_of(LINES[20:]),
    ),
    "form feed": (text_of(["\f", *NEAR_END, "a\fb"]), text_of(["\f", *LINES, "a\fb"])),
    "line separator": (
        text_of([*NEAR_END, "s = '\N{LINE SEPARATOR}'"]),
        text_of([*LINES, "s = '\N{LINE SEPARATOR}'"]),
    ),
    "lone carriage return": (text_of([*NEAR_END, "a\rb"]), text_of([*LINES, "a\rb"])),
    "byte order mark": ("\ufeff" + text_of(NEAR_END), "\ufeff" + text_of(LINES)),
    "tabs and spaces at the end": (
        text_of([*NEAR_END, "\tx  ", " "]),
        text_of([*LINES, "\tx  ", " "]),
    ),
    "lines removed": (text_of(LINES), text_of(LINES[:10] + LINES[13:])),
    "lines added": (text_of(LINES[:10] + LINES[13:]), text_of(LINES)),
    "moved": (text_of([LINES[9], *LINES[:9], *LINES[10:]]), text_of(LINES)),
    "all of it": ("", text_of(LINES)),
    "blank lines around": (text_of(["", "", "x", "", ""]), text_of(["", "", "y", "", ""])),
}


def applied_by_git(folder, diff, path, broken):
    """The file's bytes after git applied ``diff`` to ``broken``, in a folder that is no clone."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(broken)
    done = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"],
        cwd=folder,
        input=diff.encode(),
        capture_output=True,
        check=False,
        env={"PATH": os.environ["PATH"], "GIT_CEILING_DIRECTORIES": str(folder.parent)},
    )
    assert done.returncode == 0, done.stderr.decode()
    return file.read_bytes()


@pytest.mark.parametrize("case", FILES.values(), ids=FILES)
def test_git_turns_the_broken_file_into_the_pristine_one(case, tmp_path):
    broken, pristine = (text.encode() for text in case)
    diff = fix_diff(broken, pristine, "src/a.py")
    assert applied_by_git(tmp_path, diff, "src/a.py", broken) == pristine


@pytest.mark.parametrize("path", ["src/with space.py", "src/ünïcode.py", "a.py"])
def test_git_finds_the_file_by_its_name(path, tmp_path):
    broken, pristine = (text.encode() for text in FILES["near the end"])
    diff = fix_diff(broken, pristine, path)
    assert applied_by_git(tmp_path, diff, path, broken) == pristine


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    lines=st.lists(st.text(alphabet="ab \t\r\f\x0b\N{LINE SEPARATOR}é", max_size=3), max_size=8),
    at=st.integers(0, 8),
    new=st.lists(st.text(alphabet="ab \t\r", min_size=1, max_size=3), max_size=2),
    last=st.booleans(),
)
def test_git_applies_the_diff_of_any_small_change(lines, at, new, last, tmp_path):
    pristine = text_of(lines, last=last).encode()
    broken = text_of([*lines[:at], *new, *lines[at + 1 :]], last=last).encode()
    diff = fix_diff(broken, pristine, "a.py")
    if broken == pristine:
        assert diff == ""
    else:
        assert applied_by_git(tmp_path, diff, "a.py", broken) == pristine


def test_byte_order_mark_stays_out_of_a_later_hunk():
    broken, pristine = (text.encode() for text in FILES["byte order mark"])
    assert broken.startswith(codecs.BOM_UTF8)
    assert "\ufeff" not in fix_diff(broken, pristine, "a.py")


def test_file_that_is_no_utf8_has_no_diff_in_a_spec():
    with pytest.raises(UnicodeDecodeError):
        fix_diff(b"\xe9 = 1\n", b"\xe9 = 2\n", "a.py")


def test_lines_of_only_one_side_are_told_apart():
    assert changed_lines(b"a\nb\nc\n", b"a\nx\ny\nc") == ([b"b\n", b"c\n"], [b"x\n", b"y\n", b"c"])
