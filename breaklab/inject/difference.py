"""Where two sources differ as syntax, from the outermost part to the innermost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

from breaklab.inject.match import equal
from breaklab.inject.pattern import Statement, flatten
from breaklab.inject.walk import semantic_fields


@dataclass(frozen=True)
class Part:
    """Where the two trees differ: a node, or a run of statements in one block."""

    inside: str
    old: tuple[cst.CSTNode, ...]
    new: tuple[cst.CSTNode, ...]
    block: tuple[Statement, ...] = ()  # of the old statements
    at: int = 0  # index in the block of the first old statement
    new_block: tuple[Statement, ...] = ()


def parts_that_differ(old: Any, new: Any, inside: str) -> Iterator[Part]:
    """Yield what differs, from the outermost to the innermost; nothing where nothing does."""
    if equal(old, new):
        return
    if isinstance(old, cst.Module | cst.IndentedBlock | cst.SimpleStatementSuite):
        yield from _parts_of_block(flatten(old.body), flatten(new.body), inside)
        return
    if isinstance(old, cst.BaseExpression | Statement):
        yield Part(inside, (old,), (new,))
    if type(old) is not type(new):
        return
    if isinstance(old, cst.FunctionDef | cst.ClassDef):
        inside = f"{inside}.{old.name.value}" if inside else old.name.value
    pairs = list(_different_pairs(old, new))
    if len(pairs) == 1 and pairs[0] is not None:
        yield from parts_that_differ(*pairs[0], inside)


def _different_pairs(old: cst.CSTNode, new: cst.CSTNode) -> Iterator[tuple[Any, Any] | None]:
    """Yield the children that differ; None for a difference that can't be looked into."""
    for name in semantic_fields(type(old)):
        first, second = getattr(old, name), getattr(new, name)
        if isinstance(first, list | tuple) and isinstance(second, list | tuple):
            if len(first) != len(second):
                yield None
                continue
            pairs = list(zip(first, second, strict=True))
        else:
            pairs = [(first, second)]
        for one, other in pairs:
            if not (isinstance(one, cst.CSTNode) and isinstance(other, cst.CSTNode)):
                if one != other:
                    yield None
            elif not _same(one, other):
                yield one, other


def _same(one: cst.CSTNode, other: cst.CSTNode) -> bool:
    blocks = (cst.IndentedBlock, cst.SimpleStatementSuite)
    if isinstance(one, blocks) and isinstance(other, blocks):
        old, new = flatten(one.body), flatten(other.body)
        return len(old) == len(new) and all(map(equal, old, new))
    return equal(one, other)


def _parts_of_block(
    old: Sequence[Statement], new: Sequence[Statement], inside: str
) -> Iterator[Part]:
    shortest = min(len(old), len(new))
    first = next((n for n in range(shortest) if not equal(old[n], new[n])), shortest)
    rest = shortest - first
    last = next((n for n in range(rest) if not equal(old[-1 - n], new[-1 - n])), rest)
    removed, added = old[first : len(old) - last], new[first : len(new) - last]
    if removed or added:
        yield Part(inside, tuple(removed), tuple(added), tuple(old), first, tuple(new))
    if len(removed) == len(added) == 1:
        yield from parts_that_differ(removed[0], added[0], inside)
