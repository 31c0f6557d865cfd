"""Sums for means and means for sums: no divisor, one too many, or another one."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from breaklab.i18n import _
from breaklab.inject.operators import statements
from breaklab.inject.operators.view import Edit, View, is_called
from breaklab.inject.operators.words import callee, dotted

_SIZE = re.compile(r"world_size|num_|count|total|batch|rows|samples|labels|steps|accum|scale|size")


def drop_divisor(view: View) -> Iterator[Edit]:
    """A sum where a mean is meant; or a factor that makes up for a mean is left out."""
    for node, _spot in view.each(cst.BinaryOperation):
        left, right = node.left, node.right
        if isinstance(left, cst.List) or isinstance(right, cst.List):
            continue
        divides = isinstance(node.operator, cst.Divide) and _is_size(view, right)
        times = isinstance(node.operator, cst.Multiply)
        if divides or (times and is_called(right, "world_size")):
            yield _kept(view, node, left)
        elif times and is_called(left, "world_size"):
            yield _kept(view, node, right)
    for assign, spot in view.each(cst.AugAssign):
        if isinstance(assign.operator, cst.DivideAssign) and _is_size(view, assign.value):
            yield from statements.dropped(view, spot)


def add_divisor(view: View) -> Iterator[Edit]:
    """A mean where a sum is meant: divided by the world size once more."""
    for call, spot, is_statement in view.calls():
        if not view.words.is_collective(call) or not _sums(callee(call)):
            continue
        world_size = view.in_scope(spot, "world_size", dotted(call.func).rpartition(".")[0])
        if not world_size:
            continue
        if not is_statement:
            code = f"({view.code(call)} / {world_size})"
            yield view.replaced(call, code, _("divide by `{code}`").format(code=world_size))
            continue
        span = view.line(spot)
        if span and call.args and isinstance(call.args[0].value, cst.Name | cst.Attribute):
            newline = view.source.module.default_newline
            line = f"{view.code(call.args[0].value)} /= {world_size}"
            text = f"{view.indent(spot)}{line}{newline}"
            yield Edit(span[1], span[1], text, _("add `{code}`").format(code=line))


def other_divisor(view: View) -> Iterator[Edit]:
    """The world size where a count of samples is meant, or the other way round."""
    for node, spot in view.each(cst.BinaryOperation):
        if not isinstance(node.operator, cst.Divide) or not _is_size(view, node.right):
            continue
        world_size = view.in_scope(spot, "world_size")
        other = world_size
        if is_called(node.right, "world_size"):
            other = f"({world_size} - 1)" if world_size else ""
        if other:
            what = _("divide by `{code}`").format(code=other)
            yield view.replaced(node.right, other, what)


def mean_and_sum(view: View) -> Iterator[Edit]:
    """A loss that is averaged where it is to be summed, or the other way round."""
    other = {"sum": "mean", "mean": "sum"}
    for arg, _spot in view.each(cst.Arg):
        if arg.keyword is not None and arg.keyword.value == "reduction":
            value = arg.value
            if isinstance(value, cst.SimpleString) and value.raw_value in other:
                code = view.code(value).replace(value.raw_value, other[value.raw_value])
                what = _("reduce the loss by `{code}`").format(code=other[value.raw_value])
                yield view.replaced(value, code, what)


def _kept(view: View, node: cst.BinaryOperation, part: cst.BaseExpression) -> Edit:
    code = view.code(part)
    if part.lpar:
        code = f"({code})"
    rest = view.code(node.right if part is node.left else node.left)
    return view.replaced(node, code, _("leave `{code}` out").format(code=rest))


def _is_size(view: View, node: cst.BaseExpression) -> bool:
    """Return whether an expression looks like a number of things, not like a number."""
    return not isinstance(node, cst.BaseNumber) and bool(_SIZE.search(view.code(node)))


def _sums(name: str) -> bool:
    last = name.rpartition(".")[2]
    return "sum" in last or last in ("all_reduce", "allreduce", "all_reduce_dynamic", "reduce")
