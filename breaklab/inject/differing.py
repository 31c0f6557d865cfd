"""The statements in which two sources differ: what a rule has to look at, and nothing else."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

Statements = Sequence[ast.stmt]


@lru_cache(maxsize=32)  # lint and proofs look at the same few files for many breaks
def parsed(source: bytes) -> ast.Module:
    """Return a source's syntax tree; it is shared, so nobody may change it.

    Raises:
        SyntaxError: it is no Python.
    """
    return ast.parse(source)


def differing(before: bytes, after: bytes) -> tuple[Statements, Statements]:
    """Return the statements of each source that hold a line in which the two differ.

    A statement that is left out of one is left out of the other, and is the same in both: what
    stands beside the difference is taken in on both sides.

    Raises:
        SyntaxError: one of the two is no Python.
    """
    trees = parsed(before), parsed(after)
    if any(mark in source for mark in (b"\r", b"\f") for source in (before, after)):
        return trees[0].body, trees[1].body  # Python counts lines otherwise than is done here
    old, new = before.split(b"\n"), after.split(b"\n")
    shorter = min(len(old), len(new))
    front = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    rest = shorter - front
    back = next((i for i in range(rest) if old[-1 - i] != new[-1 - i]), rest)
    # The last line that is the same in front, and the first behind, belong to what differs.
    hunk = _Hunk(max(front, 1), max(back - 1, 0), len(old), len(new))
    return _innermost(trees[0].body, trees[1].body, hunk)


@dataclass(frozen=True)
class _Hunk:
    """The lines in which two sources differ, with lines around them that are the same."""

    first: int  # from 1, in both sources
    behind: int  # how many lines there are after it, in both sources
    num_old: int
    num_new: int

    @property
    def ranges(self) -> tuple[range, range]:
        """The lines in the old source, and in the new."""
        ends = (count - self.behind + 1 for count in (self.num_old, self.num_new))
        old, new = (range(self.first, end) for end in ends)
        return old, new

    def widened(self, olds: Statements, news: Statements) -> _Hunk:
        """Return the hunk with the whole of statements that have a part of it."""
        both = ((olds, self.num_old), (news, self.num_new))
        starts = [_lines(each).start for statements, _count in both for each in statements]
        tails = [count - _lines(each).stop + 1 for group, count in both for each in group]
        return replace(self, first=min([self.first, *starts]), behind=min([self.behind, *tails]))


def _innermost(old: Statements, new: Statements, hunk: _Hunk) -> tuple[Statements, Statements]:
    """Go down while one function or class holds all that differs in its body."""
    while True:
        old_lines, new_lines = hunk.ranges
        olds = [each for each in old if _overlap(_lines(each), old_lines)]
        news = [each for each in new if _overlap(_lines(each), new_lines)]
        if len(olds) == len(news) == 1:
            first, second = _body(olds[0], old_lines), _body(news[0], new_lines)
            if first and second and type(olds[0]) is type(news[0]):
                return _innermost(first, second, hunk)
        wider = hunk.widened(olds, news)
        if wider == hunk:
            return olds, news
        hunk = wider


def _body(statement: ast.stmt, lines: range) -> Statements:
    """Return the body of a function or class if all of ``lines`` lie in it; else nothing."""
    if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return ()
    inner = range(_lines(statement.body[0]).start, _lines(statement).stop)
    return statement.body if lines.start in inner and lines.stop - 1 in inner else ()


def _lines(statement: ast.stmt) -> range:
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(each.lineno for each in decorators)])
    return range(first, (statement.end_lineno or statement.lineno) + 1)


def _overlap(first: range, second: range) -> bool:
    return first.start < second.stop and second.start < first.stop
