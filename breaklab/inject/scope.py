"""Which lines a test must have run to notice a change of source; decides which tests can."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field


def telling_lines(before: bytes, after: bytes) -> frozenset[int] | None:
    """Return lines of ``before`` such that a test which ran none of them can't notice the change.

    Until the first changed statement runs, both sources do the same. So a test that notices has
    run, with ``before``, a statement that is gone in ``after``, or the one next to which something
    new stands, or has at least entered the function around it.

    Returns:
        Numbers of lines, from 1; None when something outside of every function body changed (a
        default, a decorator, a class attribute, module code): it runs at import, for all tests.
    """
    old, new = _Source(before), _Source(after)
    hunk = _hunk(before, after)
    lines: set[int] = set()
    positions: set[_Position] = set()
    for place in old.places(hunk.old):
        if place.outermost is None:
            return None
        lines |= place.lines()
        positions.add(_position(place, hunk.old, lambda line: line))
    for place in new.places(hunk.new):
        if place.outermost is None:
            return None
        found = _beside(place, hunk, old, positions)
        if found is None:
            return None
        lines |= found
    return frozenset(lines)


def can_notice(run: Iterable[str], file: str, lines: frozenset[int]) -> bool:
    """Return whether a test that ran ``run`` ran one of ``lines`` of ``file``.

    Args:
        run: ``file:line`` for each line the test ran, file relative to the source.
        file: the changed file, relative to the source.
        lines: as :func:`telling_lines` gives them.
    """
    for place in run:
        where, _, line = place.rpartition(":")
        if where == file and int(line) in lines:
            return True
    return False


@dataclass(frozen=True)
class _Hunk:
    """The one stretch of lines, numbered from 1, in which two sources differ."""

    old: range
    new: range

    def old_line(self, line: int) -> int | None:
        """Return where an unchanged line of the new source stands in the old one."""
        if line in self.new:
            return None
        return line if line < self.new.start else line + len(self.old) - len(self.new)


def _hunk(before: bytes, after: bytes) -> _Hunk:
    old, new = before.split(b"\n"), after.split(b"\n")
    shorter = min(len(old), len(new))
    front = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    rest = shorter - front
    back = next((i for i in range(rest) if old[-1 - i] != new[-1 - i]), rest)
    return _Hunk(range(front + 1, len(old) - back + 1), range(front + 1, len(new) - back + 1))


@dataclass(frozen=True, eq=False)
class _Place:
    """One statement, where it stands, and the statement around it."""

    statement: ast.stmt
    suite: tuple[ast.stmt, ...]
    index: int
    parent: _Place | None
    outermost: str | None  # qualname of the outermost function around it; None outside of any

    def lines(self) -> set[int]:
        """Return the lines of which one runs when the statement does."""
        statement = self.statement
        if _is_silent(statement) and self.parent is not None:
            return _body_span(self.parent.statement)
        body = getattr(statement, "body", None)
        if not isinstance(body, list):
            return _span(statement)
        # Up to its first inner statement: `try:` and `while True:` may run no line of their own.
        return set(range(statement.lineno, body[0].lineno + 1))


@dataclass
class _Source:
    """The statements of a source by line."""

    code: bytes
    by_line: dict[int, _Place] = field(default_factory=dict)
    functions: dict[str, ast.stmt] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._visit(ast.parse(self.code).body, None, "", None)

    def places(self, lines: range) -> list[_Place]:
        """Return the innermost statements on ``lines``; lines of comments have none."""
        texts = self.code.split(b"\n")
        found: dict[_Place, None] = {}
        for line in lines:
            place = self.by_line.get(line)
            is_code = texts[line - 1].strip()[:1] not in (b"", b"#")
            # In a statement without others inside, such a line is part of a text.
            if place and (is_code or not _suites(place.statement)):
                found[place] = None
        return list(found)

    def _visit(
        self, suite: list[ast.stmt], parent: _Place | None, prefix: str, outermost: str | None
    ) -> None:
        for index, statement in enumerate(suite):
            place = _Place(statement, tuple(suite), index, parent, outermost)
            for line in _span(statement):
                self.by_line[line] = place
            inner, name = outermost, prefix
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}{statement.name}."
                if outermost is None and not isinstance(statement, ast.ClassDef):
                    inner = prefix + statement.name
                    self.functions[inner] = statement
            for block in _suites(statement):
                self._visit(block, place, name, inner)


def _suites(statement: ast.stmt) -> list[list[ast.stmt]]:
    owners: list[ast.AST] = [statement]
    owners += getattr(statement, "handlers", []) + getattr(statement, "cases", [])
    names = ("body", "orelse", "finalbody")
    blocks = (getattr(owner, name, None) for owner in owners for name in names)
    return [block for block in blocks if isinstance(block, list) and block]


def _span(statement: ast.stmt) -> set[int]:
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(each.lineno for each in decorators)])
    return set(range(first, (statement.end_lineno or statement.lineno) + 1))


def _body_span(statement: ast.stmt) -> set[int]:
    """Return the lines of a statement without its header, where it has one."""
    body = getattr(statement, "body", None)
    first = body[0].lineno if isinstance(body, list) else statement.lineno
    return set(range(first, (statement.end_lineno or first) + 1))


def _is_silent(statement: ast.stmt) -> bool:
    """Whether running the statement runs no line that a tracer could see."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.AnnAssign):
        return statement.value is None
    return isinstance(statement, ast.Global | ast.Nonlocal | ast.Pass)


# Where a statement stands, in lines of the old source: the statement around it, the one before it.
_Position = tuple[int | None, int | None]


def _position(place: _Place, changed: range, old_line: Callable[[int], int | None]) -> _Position:
    parent = place.parent.statement.lineno if place.parent else 0
    around = None if parent in changed else old_line(parent)
    before = [each.lineno for each in place.suite[: place.index] if each.lineno not in changed]
    return around, old_line(before[-1]) if before else None


def _beside(place: _Place, hunk: _Hunk, old: _Source, positions: set[_Position]) -> set[int] | None:
    """Return lines of the old source of which one ran if the new statement at ``place`` can run.

    None if there is nothing in the old source to tell by.
    """
    at = _position(place, hunk.new, hunk.old_line)
    if at[0] is not None and at in positions:
        return set()  # it stands where an old one stood, whose own lines count already
    left, right = place.suite[: place.index], place.suite[place.index + 1 :]
    for sibling in (*reversed(left), *right):
        line = hunk.old_line(sibling.lineno)
        if line is not None and not _is_silent(sibling) and line in old.by_line:
            return old.by_line[line].lines()
    parent = place.parent
    if parent is None or parent.outermost is None:
        function = old.functions.get(place.outermost or "")
        return _body_span(function) if function is not None else None
    return _beside(parent, hunk, old, positions)
