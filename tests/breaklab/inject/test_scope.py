from __future__ import annotations

import pytest

from breaklab.inject.scope import affected, changed_functions

SOURCE = b"""\
import math

LIMIT = 3


def outer(x, y=1):
    def inner(z):
        return z + 1

    return inner(x) + y


class Pair:
    size = 2

    @property
    def total(self):
        return self.a + self.b
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (b"z + 1", b"z + 2", {"outer"}),
        (b"inner(x) + y", b"inner(x) - y", {"outer"}),
        (b"self.a + self.b", b"self.a", {"Pair.total"}),
        (b"LIMIT = 3", b"LIMIT = 4", None),
        (b"y=1", b"y=2", None),
        (b"@property\n    ", b"", None),
        (b"size = 2", b"size = 3", None),
        (b"import math", b"import cmath", None),
        (
            b"    return inner(x) + y\n",
            b"    if x:\n        y = 2\n    return inner(x) + y\n",
            {"outer"},
        ),
    ],
)
def test_the_outermost_function_around_every_changed_line_is_named(old, new, expected):
    assert SOURCE.count(old) == 1
    changed = changed_functions(SOURCE, SOURCE.replace(old, new))
    assert changed == (None if expected is None else frozenset(expected))


def test_an_unchanged_source_names_no_function():
    assert changed_functions(SOURCE, SOURCE) == frozenset()


def test_a_call_of_a_nested_function_counts_as_a_call_of_the_outer_one():
    touched = ("a.py:outer.<locals>.inner", "b.py:Pair.total")
    assert affected(touched, "a.py", frozenset({"outer"}))
    assert affected(touched, "b.py", frozenset({"Pair.total"}))
    assert not affected(touched, "b.py", frozenset({"outer"}))
    assert not affected(touched, "a.py", frozenset({"inner"}))
