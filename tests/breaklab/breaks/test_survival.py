"""Every break goes on working after a lab was reformatted, commented, reordered, requoted."""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from breaklab.inject.edit import inject
from breaklab.spec.catalogue import load_named
from breaklab.spec.project import find_project, lab_of, source_file

REPO = Path(__file__).resolve().parents[3]
SPECS = sorted((REPO / "breaks").glob("[0-9]*.yaml"))


@pytest.fixture(scope="module")
def reformat() -> ModuleType:
    """The changes that `benchmarks/survival.py` makes."""
    sys.path.insert(0, str(REPO / "benchmarks"))
    try:
        return __import__("reformat")
    finally:
        sys.path.pop(0)


@cache
def changed(module: ModuleType, source: str) -> str:
    """All changes at once, one on top of the other."""
    source = module.with_comments(module.reordered(source))
    return str(module.single_quoted(module.black_at(60)(source)))


def program(source: str) -> str:
    """What a source says, apart from the white space in its texts: black indents docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = " ".join(node.value.split())
    return ast.dump(tree)


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_break_survives_all_changes_of_layout_at_once(reformat: ModuleType, path: Path) -> None:
    project = find_project(REPO)
    spec = load_named(project, path.stem)
    if spec is None:
        pytest.skip("a retired id")
    pristine = source_file(lab_of(project, spec), spec).read_text()
    broken = inject(pristine.encode(), spec.inject).source.decode()
    result = inject(changed(reformat, pristine).encode(), spec.inject).source.decode()
    assert program(result) == program(reformat.reordered(broken))
    assert program(result) != program(reformat.reordered(pristine))


SOURCE = '''\
"""A module."""


def first(x):
    return "a"  # why


# About second.
@decorated(
    "b",
)
def second(x):
    if x:
        return "it's"
    elif not x:
        return f"{x}"


class Pair:
    def left(self):
        return """
        text
        """

    def right(self): return 1
'''


def test_changes_of_layout_really_change_it_and_not_the_program(reformat: ModuleType) -> None:
    comments = reformat.with_comments(SOURCE)
    assert comments.count("# a remark\n") == 12
    assert '        # a remark\n        return f"{x}"  # another remark\n' in comments
    assert "\n# a remark\n@decorated(\n" in comments
    quotes = reformat.single_quoted(SOURCE)
    assert "'''A module.'''" in quotes
    assert 'return "it\'s"' in quotes
    for result in (comments, quotes):
        assert ast.dump(ast.parse(result)) == ast.dump(ast.parse(SOURCE))
    order = reformat.reordered(SOURCE)
    names = [line.split("(")[0].split()[-1] for line in order.splitlines() if "def " in line]
    assert names == ["second", "first", "right", "left"]
    assert sorted(order.splitlines()) == sorted(SOURCE.splitlines())
    assert "# About second.\n@decorated(" in order
