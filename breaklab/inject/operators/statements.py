"""Edits of whole statements: drop one, say it twice, move it, run it on one rank only."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import libcst as cst

from breaklab.i18n import _
from breaklab.inject.layout import indent_at, reindented
from breaklab.inject.operators.view import Edit, Spot, View

_ENDS = (cst.Return, cst.Raise, cst.Continue, cst.Break)


def dropped(view: View, spot: Spot) -> Iterator[Edit]:
    """Yield the edit that takes a statement out; one that is alone leaves a ``pass``."""
    span = view.line(spot)
    if span is None:
        return
    start, end = span
    if len(spot.block) > 1:
        yield Edit(start, end, "", _("drop `{code}`").format(code=view.bare(spot)))
        return
    newline = view.source.text[start:end]
    ending = newline[len(newline.rstrip("\r\n")) :]
    text = f"{view.indent(spot)}pass{ending}"
    yield Edit(start, end, text, _("drop `{code}`").format(code=view.bare(spot)))


def doubled(view: View, spot: Spot) -> Iterator[Edit]:
    """Yield the edit that runs a statement twice."""
    span = view.line(spot)
    if span is not None:
        again = _ended(view, view.source.text[slice(*span)])
        yield Edit(*span, again + again, _("run `{code}` twice").format(code=view.bare(spot)))


def moved(view: View, spot: Spot) -> Iterator[Edit]:
    """Yield the edits that run a statement before the one before it, after the next, or later.

    Later: after the loop, or the ``with`` or ``if`` block, that it is in.
    """
    span = view.line(spot)
    if span is None:
        return
    if spot.index and _can_move(spot.block[spot.index - 1], behind=False):
        previous = view.line(spot, spot.index - 1)
        what = _("move `{code}` one statement up").format(code=view.bare(spot))
        yield from _swapped(view, previous, span, what)
    if spot.index + 1 < len(spot.block) and _can_move(spot.block[spot.index + 1], behind=True):
        following = view.line(spot, spot.index + 1)
        what = _("move `{code}` one statement down").format(code=view.bare(spot))
        yield from _swapped(view, span, following, what)
    yield from _out_of_block(view, spot, span)


def guarded(view: View, spot: Spot, rank: str) -> Iterator[Edit]:
    """Yield the edit that runs a statement on rank 0 only."""
    span = view.line(spot)
    if span is None or not rank:
        return
    text = view.source.text[slice(*span)]
    indent, unit = view.indent(spot), view.source.module.default_indent
    newline = view.source.module.default_newline
    body = _ended(view, reindented(text.removeprefix(indent), indent, indent + unit))
    code = f"{indent}if {rank} == 0:{newline}{indent}{unit}{body}"
    what = _("run `{code}` on rank 0 only").format(code=view.bare(spot))
    yield Edit(*span, code, what)


def _swapped(
    view: View, first: tuple[int, int] | None, second: tuple[int, int] | None, what: str
) -> Iterator[Edit]:
    if first is None or second is None or first[1] > second[0]:
        return
    text = view.source.text
    one, gap = _ended(view, text[slice(*first)]), text[first[1] : second[0]]
    code = _ended(view, text[slice(*second)]) + gap + one
    yield Edit(first[0], second[1], code, what, moved=True)


def _out_of_block(view: View, spot: Spot, span: tuple[int, int]) -> Iterator[Edit]:
    """Move the statement behind the block that it is in, to that block's own level."""
    owner = _owner(spot)
    if not isinstance(owner, cst.For | cst.While | cst.With) or len(spot.block) < 2:
        return
    text = view.source.text
    start, end = span
    indent = view.indent(spot)
    outer = indent_at(text, view.source.span(owner)[0])
    last = view.line(spot, len(spot.block) - 1)
    if last is None or getattr(owner, "orelse", None) is not None:
        return
    code = _ended(view, text[start:end])
    code = outer + reindented(code.removeprefix(indent), indent, outer)
    what = _("move `{code}` out of its block").format(code=view.bare(spot))
    yield Edit(start, last[1], text[end : last[1]] + code, what, moved=True)


def _owner(spot: Spot) -> cst.CSTNode | None:
    """Return the statement whose block the spot's statement is in."""
    for parent, child in itertools.pairwise(spot.parents):
        if isinstance(child, cst.IndentedBlock) and child.body is spot.block:
            return parent
    return None


def _can_move(line: cst.CSTNode, *, behind: bool) -> bool:
    """Return whether a statement may change places with another one and both still run."""
    if isinstance(line, cst.SimpleStatementLine):
        small = line.body[0]
        if behind and isinstance(small, _ENDS):
            return False
        return not (isinstance(small, cst.Expr) and isinstance(small.value, cst.SimpleString))
    return isinstance(line, cst.For | cst.While | cst.With | cst.If)


def _ended(view: View, text: str) -> str:
    """Return lines that end with a newline, also those at the end of a file that has none."""
    return text if text.endswith(("\n", "\r")) else text + view.source.module.default_newline
