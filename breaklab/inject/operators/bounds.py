"""Off by one, in a shard, a chunk, a window, or in who the neighbour is."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from breaklab.i18n import _
from breaklab.inject.operators.view import Edit, View
from breaklab.inject.operators.words import callee
from breaklab.inject.walk import walk

_COUNTERS = ("range", "arange", "islice", "xrange")
_OTHER: dict[type[cst.BaseCompOp], str] = {
    cst.LessThan: "<=",
    cst.LessThanEqual: "<",
    cst.GreaterThan: ">=",
    cst.GreaterThanEqual: ">",
}


def off_by_one(view: View) -> Iterator[Edit]:
    """One too few in a range or a slice, a limit that counts as inside, or outside."""
    for call, _spot, _is_statement in view.calls():
        if callee(call).rpartition(".")[2] in _COUNTERS:
            bounds = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
            yield from _end(view, bounds[1] if len(bounds) > 1 else bounds[0])
            if len(bounds) > 1:
                yield from _start(view, bounds[0])
    for part, _spot in view.each(cst.Slice):
        yield from _end(view, part.upper)
        yield from _start(view, part.lower)
    for target, _spot in view.each(cst.ComparisonTarget):
        other = _OTHER.get(type(target.operator))
        if other:
            start, end = view.source.span(target.operator)
            symbol = view.source.text[start:end].strip()
            at = view.source.text.index(symbol, start)
            what = _("`{other}` instead of `{code}`").format(other=other, code=symbol)
            yield Edit(at, at + len(symbol), other, what)


def no_stride(view: View) -> Iterator[Edit]:
    """Every sample from the first one on, not every ``world_size``-th."""
    for part, _spot in view.each(cst.Slice):
        if part.step is not None and part.second_colon is not None:
            start, end = view.source.span(part)
            step = view.source.span(part.step)[0]
            colon = view.source.text.rindex(":", start, step)
            what = _("leave the stride `{code}` out").format(code=view.code(part.step))
            yield Edit(colon, end, "", what)


def drop_one(view: View) -> Iterator[Edit]:
    """Leave out a ``+ 1`` or ``- 1``; round down instead of up."""
    for node, _spot in view.each(cst.BinaryOperation):
        one = isinstance(node.right, cst.Integer) and node.right.value == "1"
        if one and isinstance(node.operator, cst.Add | cst.Subtract):
            start = view.source.span(node.left)[1] + len(node.left.rpar)
            end = view.source.span(node.right)[1]
            code = view.source.text[start:end].strip()
            yield Edit(start, end, "", _("leave `{code}` out").format(code=code))
    for negative, _spot in view.each(cst.UnaryOperation):
        inner = negative.expression
        if not isinstance(negative.operator, cst.Minus) or not isinstance(
            inner, cst.BinaryOperation
        ):
            continue
        first = inner.left
        if isinstance(inner.operator, cst.FloorDivide) and isinstance(first, cst.UnaryOperation):
            whole = f"{view.code(first.expression)} // {view.code(inner.right)}"
            yield view.replaced(negative, f"({whole})", _("round down, not up"))


def _end(view: View, bound: cst.BaseExpression | None) -> Iterator[Edit]:
    if bound is not None and not _is_one(bound):
        yield _changed(view, bound, "-")


def _start(view: View, bound: cst.BaseExpression | None) -> Iterator[Edit]:
    if bound is not None:
        yield _changed(view, bound, "+")


def _changed(view: View, bound: cst.BaseExpression, sign: str) -> Edit:
    code = view.code(bound)
    what = _("one more than `{code}`") if sign == "+" else _("one less than `{code}`")
    what = what.format(code=code)
    if isinstance(bound, cst.Integer):
        return view.replaced(bound, str(int(bound.value) + (1 if sign == "+" else -1)), what)
    loose = any(
        isinstance(node, cst.IfExp | cst.Lambda | cst.BooleanOperation) for node in walk(bound)
    )
    return view.replaced(bound, f"({code}) {sign} 1" if loose else f"{code} {sign} 1", what)


def _is_one(bound: cst.BaseExpression) -> bool:
    return isinstance(bound, cst.Integer) and bound.value in ("0", "1")
