"""From a source before and after a change to the pattern that makes the change.

The two trees are walked down together for as long as exactly one part differs; what differs there,
or the nearest thing around it that is unique in its function, becomes the pattern. A candidate
counts only if :func:`inject` really makes the change with it.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, takewhile
from typing import Any

import libcst as cst

from breaklab.errors import SiteError
from breaklab.i18n import _
from breaklab.inject.difference import Part, parts_that_differ
from breaklab.inject.edit import inject, read_source
from breaklab.inject.excerpt import code_of, excerpt
from breaklab.inject.layout import line_start
from breaklab.inject.match import equal
from breaklab.inject.pattern import Statement, flatten
from breaklab.inject.source import NEWLINE, Source
from breaklab.inject.walk import children
from breaklab.model import Action, Injection

_MAX_LINES = 12  # of a pattern; a longer one would be the source over again
_MAX_NEIGHBOURS = 3  # statements taken into a pattern to make it unique


@dataclass(frozen=True)
class Derived:
    """A pattern that makes a change.

    Attributes:
        injection: the pattern.
        exact: whether it gives every byte of the changed source, comments and layout included;
            if not, it gives the same program.
    """

    injection: Injection
    exact: bool


def derive(pristine: bytes, broken: bytes, file: str) -> Derived:
    """Return the smallest pattern found that turns ``pristine`` into ``broken``.

    Args:
        pristine: the source before the change.
        broken: the source after it.
        file: the file's name, relative to the lab's root.

    Raises:
        SiteError: one of the two is no Python, they are the same program, or the change lies in
            more than one place.
    """
    old, new = read_source(pristine, file), read_source(broken, file)
    parts = [part for part in parts_that_differ(old.module, new.module, "") if part.old or part.new]
    if not parts:
        raise SiteError(
            _("the change of {file} changes no code, only its layout").format(file=file)
        )
    same_program: Injection | None = None
    wanted = ast.dump(ast.parse(broken))
    inner = (_candidates(part, old, new, file) for part in reversed(parts))
    for injection in chain(_far_moves(old, new, file), *inner):
        if injection.find.count("\n") >= _MAX_LINES:
            continue
        try:
            result = inject(pristine, injection).source
        except SiteError:
            continue
        if result == broken:
            return Derived(injection, exact=True)
        if same_program is None and ast.dump(ast.parse(result)) == wanted:
            same_program = injection
    if same_program is not None:
        return Derived(same_program, exact=False)
    raise SiteError(
        _("no pattern was found for the change of {file}").format(file=file),
        hint=_("one bug is one change in one place; or write the pattern by hand"),
    )


def _candidates(part: Part, old: Source, new: Source, file: str) -> Iterator[Injection]:
    """Yield patterns for one part, the simplest first."""

    def pattern(nodes: Sequence[cst.CSTNode], action: Action, code: str = "") -> Injection:
        return Injection(
            file=file, inside=part.inside, find=code_of(old, nodes), action=action, code=code
        )

    if sum(isinstance(node, cst.FunctionDef | cst.ClassDef) for node in part.old) > 1:
        return  # two functions changed: that is no single change
    if not part.block:
        if isinstance(part.old[0], cst.BaseExpression):
            yield pattern(part.old, Action.REPLACE_WITH, code_of(new, part.new))
        return
    before = part.block[max(0, part.at - 1) : part.at]
    after = part.block[part.at + len(part.old) :][:1]
    if len(part.old) == len(part.new) == 1:
        yield from _headers(part, old, new, file)
    if part.old and not part.new:
        yield pattern(part.old, Action.DELETE)
    if part.new and not part.old:
        whole = _lines(new, part)
        if before:
            yield pattern(before, Action.INSERT_AFTER, whole)
        if after:
            yield pattern(after, Action.INSERT_BEFORE, whole)
    yield from _moves(part, pattern, old)
    for count in range(_MAX_NEIGHBOURS + 1):
        neighbours = part.block[max(0, part.at - count) : part.at]
        if part.old or neighbours:
            replacing = (*part.new_block[part.at - len(neighbours) : part.at], *part.new)
            if replacing:
                code = code_of(new, replacing)
                yield pattern((*neighbours, *part.old), Action.REPLACE_WITH, code)


def _headers(part: Part, old: Source, new: Source, file: str) -> Iterator[Injection]:
    """Yield the change of what stands above a block, where the block itself is the same."""
    heads = []
    for source, node in ((old, part.old[0]), (new, part.new[0])):
        body = getattr(node, "body", None)
        if not isinstance(body, cst.IndentedBlock) or getattr(node, "orelse", None) is not None:
            return
        end = line_start(source.text, source.span(flatten(body.body)[0])[0])
        head = excerpt(source, source.span(node)[0], end).rstrip()
        heads.append(f"{head}\n    $$$BODY")
    find, code = heads
    yield Injection(file=file, inside=part.inside, find=find, code=code)


def _moves(part: Part, pattern: Any, old: Source) -> Iterator[Injection]:
    """Yield the move of one statement over the others, where that is the change."""
    if len(part.old) != len(part.new) or len(part.old) < 2:
        return
    first, *rest = part.old
    if all(map(equal, (*rest, first), part.new)):
        yield pattern([first], Action.MOVE_AFTER, code_of(old, rest[-1:]))
    *front, last = part.old
    if all(map(equal, (last, *front), part.new)):
        yield pattern([last], Action.MOVE_BEFORE, code_of(old, front[:1]))


def _far_moves(old: Source, new: Source, file: str) -> Iterator[Injection]:
    """Yield moves of one statement to another depth of its function."""
    before, after = NEWLINE.split(old.text), NEWLINE.split(new.text)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    changes = [code[1:] for code in matcher.get_opcodes() if code[0] != "equal"]
    gone = [line for first, last, _from, _to in changes for line in range(first, last)]
    come = [line for _from, _to, first, last in changes for line in range(first, last)]
    if not gone or [before[n].strip() for n in gone] != [after[n].strip() for n in come]:
        return
    source = _statement_on(old, range(gone[0] + 1, gone[-1] + 2))
    target = _statement_on(new, range(come[0] + 1, come[-1] + 2))
    if source is None or target is None:
        return
    function, block, at = source
    other, siblings, there = target
    inside = _common(function, other)
    for anchor, action in [
        *((node, Action.MOVE_AFTER) for node in siblings[max(0, there - 1) : there]),
        *((node, Action.MOVE_BEFORE) for node in siblings[there + 1 : there + 2]),
    ]:
        find, code = code_of(old, [block[at]]), code_of(new, [anchor])
        yield Injection(file=file, inside=inside, find=find, action=action, code=code)


def _common(one: str, other: str) -> str:
    """Return the dotted name of the innermost function or class that holds both."""
    pairs = zip(one.split("."), other.split("."), strict=False)
    return ".".join(first for first, _same in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _statement_on(source: Source, lines: range) -> tuple[str, list[Statement], int] | None:
    """Return the first statement that begins on one of ``lines``: its function, block, index."""
    todo: list[tuple[str, cst.CSTNode]] = [("", source.module)]
    while todo:
        inside, node = todo.pop()
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            inside = f"{inside}.{node.name.value}" if inside else node.name.value
        if isinstance(node, cst.Module | cst.IndentedBlock):
            block = flatten(node.body)
            for index, statement in enumerate(block):
                if source.line(statement) in lines:
                    return inside, block, index
        todo.extend((inside, child) for child in reversed(children(node)))
    return None


def _lines(source: Source, part: Part) -> str:
    """Return whole new lines: with the comments above them, and the one behind."""
    start, end = source.span(part.new[0])[0], source.span(part.new[-1])[1]
    floor = source.span(part.new_block[part.at - 1])[1] if part.at else 0
    lines = NEWLINE.split(source.text[floor:start])[1:-1] if part.at else []
    for line in reversed(lines):
        if not line.strip().startswith("#"):
            break
        start = source.text.rindex(line.strip(), floor, start)
    newline = NEWLINE.search(source.text, end)
    return excerpt(source, start, newline.start() if newline else len(source.text))
