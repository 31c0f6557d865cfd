"""Looking only at what differs finds what looking at everything finds."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import libcst as cst
import pytest

from breaklab.inject.differing import differing, parsed
from breaklab.inject.forbidden import _modules, _uses, new_forbidden_uses
from breaklab.inject.standing import stands_alone
from breaklab.inject.walk import walk

REPO = Path(__file__).resolve().parents[3]
SOURCE = b'''\
import numpy as np
from os import path as where


class Loader:
    """Loads."""

    size = 1

    @property
    def name(self):
        with open("a") as file:
            text = file.read()
        return text


def shard(rank):
    """Says."""
    if rank:
        return np.load("a")
    x = [open(n) for n in where.split("a")]

    return x
'''
NEW_LINES = (
    "open('b')",
    "if x: pass",
    "import os as np",
    "def f(): open('c')",
    "np.save(1)",
    "# a",
)


def edits():
    """Every source with one line gone, doubled, or a new one put in."""
    lines = SOURCE.split(b"\n")
    for index, line in enumerate(lines):
        yield [*lines[:index], *lines[index + 1 :]]
        yield [*lines[:index], line, *lines[index:]]
        for new in NEW_LINES:
            for indent in (0, 4, 8):
                yield [*lines[:index], b" " * indent + new.encode(), *lines[index:]]


def valid_edits():
    for lines in edits():
        source = b"\n".join(lines)
        try:
            ast.parse(source)
        except SyntaxError:
            continue
        yield source


def uses_in_all(source):
    return Counter(_uses(parsed(source).body, _modules(source)))


def conditionals(statements):
    return sum(isinstance(n, ast.If) for each in statements for n in ast.walk(each))


def test_forbidden_uses_are_those_of_the_whole_source():
    found = 0
    for broken in valid_edits():
        for pair in ((SOURCE, broken), (broken, SOURCE)):
            more = uses_in_all(pair[1]) - uses_in_all(pair[0])
            wanted = sorted({what for what, _where in more})
            assert new_forbidden_uses(*pair) == wanted, broken.decode()
            found += bool(wanted)
    assert found > 100


def test_conditionals_differ_by_as_many_as_in_the_whole_source():
    for broken in valid_edits():
        old, new = differing(SOURCE, broken)
        whole = conditionals(parsed(broken).body) - conditionals(parsed(SOURCE).body)
        assert conditionals(new) - conditionals(old) == whole, broken.decode()


def test_what_is_the_same_is_not_looked_at():
    broken = SOURCE.replace(b"    if rank:\n", b"    if not rank:\n")
    old, new = differing(SOURCE, broken)
    assert [type(each) for each in (*old, *new)] == [ast.Expr, ast.If, ast.Expr, ast.If]


@pytest.mark.parametrize(
    ("source", "new", "alone"),
    [
        ("x = {}\n", "a + b", True),
        ("x = {} * c\n", "a + b", False),
        ("x = {} * c\n", "(a + b)", True),
        ("x = c - {}\n", "a - b", False),
        ("x = c + {}\n", "a * b", True),
        ("x = {}.T\n", "-a", False),
        ("{} = 1\n", "a.b", True),
        ("é = 'ü' + {}\n", "a", True),
        ("f(1,\n  {}, 2)\n", "a if b else c", True),
        ("@f({})\ndef g(): pass\n", "a", True),
        ("def g(x={}): pass\n", "a", True),
        ("x = [n for n in {}]\n", "a or b", True),
        ("x = f'{{{}}}'\n", "a", None),
        ("x = a[{}]\n", "1:2", None),
        ("x = {}\r\n", "a", None),
        ("x = {}\n", "a b", None),
        ("x = {}.y\n", "1", None),
    ],
)
def test_expression_stands_alone_or_not(source, new, alone):
    start = source.index("{}") if "{{" not in source else source.index("{{{}") + 1
    text = source.format(new)
    assert stands_alone(text, start, start + len(new)) is alone


def test_walk_is_in_the_order_of_the_source_and_leaves_out_only_layout():
    kinds = (cst.BaseExpression, cst.BaseStatement, cst.BaseSmallStatement, cst.IndentedBlock)

    def through_children(node):
        yield node
        for child in node.children:
            yield from through_children(child)

    for path in (REPO / "breaklab" / "inject").glob("*.py"):
        module = cst.parse_module(path.read_bytes())
        ours = [node for node in walk(module) if isinstance(node, kinds)]
        theirs = [node for node in through_children(module) if isinstance(node, kinds)]
        assert len(ours) == len(theirs)
        assert all(map(lambda one, other: one is other, ours, theirs)), path
