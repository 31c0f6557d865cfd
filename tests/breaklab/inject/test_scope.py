from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from breaklab.inject.scope import can_notice, telling_lines

SOURCE = """\
import math

LIMIT = 3


def outer(x, y=1):
    def inner(z):
        return z + 1

    if x > 2:
        y = 5
    # a word
    for i in range(x):
        if i == 7:
            y += i
        y += 1
    try:
        y = inner(y)
    except ValueError:
        y = 0
    else:
        y = 1
    return y


class Pair:
    size = 2

    @property
    def total(self):
        "A sum."
        return self.a + self.b
"""


def lines_of(*texts: str) -> set[int]:
    numbers = [n for n, line in enumerate(SOURCE.split("\n"), 1) if line.strip() in texts]
    assert len(numbers) == len(texts)
    return set(numbers)


def told_by(old: str, new: str) -> set[int] | None:
    assert SOURCE.count(old) == 1
    lines = telling_lines(SOURCE.encode(), SOURCE.replace(old, new).encode())
    return None if lines is None else set(lines)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("y=1):", "y=2):"),
        ("    @property\n", ""),
        ("size = 2", "size = 3"),
        ("import math", "import cmath"),
        ("\n\nclass", "\n\ndef more():\n    pass\n\n\nclass"),
    ],
)
def test_a_change_that_runs_at_import_can_be_noticed_by_any_test(old, new):
    assert told_by(old, new) is None


@pytest.mark.parametrize(
    ("old", "new", "telling"),
    [
        ("z + 1", "z + 2", ["return z + 1"]),
        ("y = 5", "y = 6", ["y = 5"]),
        ("x > 2:", "x > 1:", ["if x > 2:", "y = 5"]),
        ("y += i\n", "y += i\n            y += 2\n", ["y += i"]),
        ("            y += i\n", "            if x:\n                y += i\n", ["y += i"]),
        ("        y = 5\n", "        y = 5\n    y = 6\n", ["if x > 2:", "y = 5"]),
        ("    # a word\n", "    # another\n", []),
        ("        y = 0\n", "        x = 1\n        y = 0\n", ["y = 0"]),
        ("        y = 0\n", "        pass\n", ["y = 0"]),
        ("    return y\n", "    return y + 1\n", ["return y"]),
        (
            "    for i in range(x):\n        if i == 7:\n            y += i\n        y += 1\n",
            "",
            ["for i in range(x):", "if i == 7:", "y += i", "y += 1"],
        ),
    ],
)
def test_lines_that_tell_a_change(old, new, telling):
    assert told_by(old, new) == lines_of(*telling)


def test_a_change_of_a_docstring_is_told_by_any_line_of_its_function():
    assert told_by("A sum.", "The sum.") == lines_of('"A sum."', "return self.a + self.b")


def test_an_unchanged_source_is_told_by_no_line():
    assert telling_lines(SOURCE.encode(), SOURCE.encode()) == frozenset()


STATEMENTS = [
    line
    for line in SOURCE.split("\n")[6:23]
    if line.strip() and not line.strip().startswith(("#", "else", "except", "try", "def"))
]


def _function(source: str, trace: set[int] | None = None) -> Callable[[int], object]:
    space: dict[str, Callable[[int], object]] = {}
    exec(compile(source, "traced", "exec"), space)

    def call(x: int) -> object:
        def on_event(frame, event, arg):
            if frame.f_code.co_filename != "traced":
                return None
            if event == "line" and trace is not None:
                trace.add(frame.f_lineno)
            return on_event

        before = sys.gettrace()
        sys.settrace(on_event)
        try:
            return space["outer"](x)
        except Exception as error:
            return repr(error)
        finally:
            sys.settrace(before)

    return call


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize(
    "new", ["{old}\n{indent}y += 100", "{indent}y += 100\n{old}", "{indent}y = 50"]
)
def test_a_call_that_runs_no_telling_line_gives_the_same_result_after_the_change(statement, new):
    """The promise itself, on each statement of a function, with calls that reach it or don't."""
    indent = statement[: len(statement) - len(statement.lstrip())]
    changed = SOURCE.replace(statement + "\n", new.format(old=statement, indent=indent) + "\n")
    try:
        lines = telling_lines(SOURCE.encode(), changed.encode())
    except SyntaxError:
        pytest.skip("a block has lost its header")
    assert lines is not None
    for x in (0, 1, 2, 3, 9):
        run: set[int] = set()
        before = _function(SOURCE, run)(x)
        if not run & lines:
            assert _function(changed)(x) == before


def test_only_lines_of_the_changed_file_count():
    assert can_notice(("a.py:3", "b.py:4"), "a.py", frozenset({3}))
    assert not can_notice(("a.py:3", "b.py:4"), "a.py", frozenset({4}))
    assert not can_notice((), "a.py", frozenset({4}))
