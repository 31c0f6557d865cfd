"""Collectives: left out, doubled, misplaced, run by some ranks only, over another group."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from breaklab.i18n import _
from breaklab.inject.operators import statements
from breaklab.inject.operators.view import Edit, Spot, View, is_read
from breaklab.inject.operators.words import callee, dotted
from breaklab.inject.walk import walk

_SOURCES = ("src", "dst", "group_src", "group_dst", "root", "src_rank", "root_rank")
_REDUCTIONS = ("sum", "max", "mean", "min")
_GROUPS = ("comm", "process_group")
_NO_TENSORS = ("model", "module", "self", "run", "trainer", "path", "config")
_OPS = {"SUM": "MAX", "MAX": "SUM", "MIN": "MAX", "AVG": "SUM", "PRODUCT": "SUM"}


def drop_collective(view: View) -> Iterator[Edit]:
    """Every rank keeps what it had, and nobody waits."""
    for _call, spot in _statements(view):
        yield from statements.dropped(view, spot)


def repeat_collective(view: View) -> Iterator[Edit]:
    """A sum of sums, or one rank's call paired with another's next one."""
    for _call, spot in _statements(view):
        yield from statements.doubled(view, spot)


def move_collective(view: View) -> Iterator[Edit]:
    """Before its input is there, or after its result was read."""
    for _call, spot in _statements(view):
        yield from statements.moved(view, spot)


def guard_collective(view: View) -> Iterator[Edit]:
    """The other ranks go on to their next collective, or to nothing."""
    for call, spot in _statements(view):
        yield from statements.guarded(view, spot, view.in_scope(spot, "rank", _receiver(call)))


def local_value(view: View) -> Iterator[Edit]:
    """What this rank brought stands where the result of all should."""
    for call, _spot, is_statement in view.calls():
        if is_statement or not view.words.is_collective(call) or _returns_no_value(call):
            continue
        first = call.args[0]
        code = view.code(first.value)
        name = callee(call).rpartition(".")[2]
        if "gather" in name:
            code = f"[{code}]"
        elif not isinstance(first.value, cst.Name | cst.Attribute | cst.Call | cst.Subscript):
            code = f"({code})"
        what = _("take `{code}` for the result of {name}").format(code=code, name=name)
        yield view.replaced(call, code, what)


def stale_value(view: View) -> Iterator[Edit]:
    """What a collective was given is read afterwards, instead of what it returned."""
    for assign, spot in view.each(cst.Assign):
        names = _given_and_returned(view, assign)
        if names is None or spot.function is None:
            continue
        given, returned = names
        end = view.source.span(assign)[1]
        for node, place in view.each(cst.Name):
            if node.value != returned or place.function is not spot.function:
                continue
            if is_read(node, place) and view.source.span(node)[0] >= end:
                what = _("read `{given}`, from before the collective, not `{returned}`")
                yield view.replaced(node, given, what.format(given=given, returned=returned))


def other_reduction(view: View) -> Iterator[Edit]:
    """The largest for the sum, the sum for the mean."""
    for node, _spot in view.each(cst.Attribute):
        if dotted(node).endswith(f"ReduceOp.{node.attr.value}") and node.attr.value in _OPS:
            other = _OPS[node.attr.value]
            yield view.replaced(node.attr, other, _("reduce by {name}").format(name=other))
    for call, _spot, _is_statement in view.calls():
        last = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
        front, _line, kind = callee(call).rpartition(".")[2].rpartition("_")
        if not view.words.is_collective(call) or kind not in _REDUCTIONS:
            continue
        for other in _REDUCTIONS:
            name = f"{front}_{other}"
            if other != kind and name in view.words.functions:
                yield view.replaced(last, name, _("reduce by {name}").format(name=name))


def wrong_source(view: View) -> Iterator[Edit]:
    """Another rank's value than the one that is meant."""
    for node, _spot in view.each(cst.Arg):
        if node.keyword is not None and node.keyword.value in _SOURCES:
            other = "1" if view.code(node.value) == "0" else "0"
            what = _("let {name} be rank {rank}").format(name=node.keyword.value, rank=other)
            yield view.replaced(node.value, other, what)


def wrong_group(view: View) -> Iterator[Edit]:
    """The whole world for a group of it, or one communicator for another."""
    for call, spot, _is_statement in view.calls():
        for index, arg in enumerate(call.args):
            if arg.keyword is not None and arg.keyword.value == "group" and index:
                before = view.source.span(call.args[index - 1].value)[1]
                end = view.source.span(arg.value)[1]
                yield Edit(
                    before, end, "", _("leave the group out of `{code}`").format(code=callee(call))
                )
            elif _is_group(arg.value):
                code = view.code(arg.value)
                for other in _groups(view, spot):
                    if other.rpartition(".")[2] != code.rpartition(".")[2]:
                        what = _("give `{other}` instead of `{code}`")
                        yield view.replaced(arg.value, other, what.format(other=other, code=code))


def _statements(view: View) -> Iterator[tuple[cst.Call, Spot]]:
    for call, spot, is_statement in view.calls():
        if is_statement and view.words.is_collective(call):
            yield call, spot


def _receiver(call: cst.Call) -> str:
    return dotted(call.func.value) if isinstance(call.func, cst.Attribute) else ""


def _given_and_returned(view: View, assign: cst.Assign) -> tuple[str, str] | None:
    """Return the name that a collective is given and the one that its result gets."""
    target = assign.targets[0].target
    if len(assign.targets) != 1 or not isinstance(target, cst.Name):
        return None
    for node in walk(assign.value):
        if not isinstance(node, cst.Call) or _returns_no_value(node):
            continue
        if view.words.is_collective(node):
            given = node.args[0].value
            if isinstance(given, cst.Name) and given.value != target.value:
                return given.value, target.value
    return None


def _returns_no_value(call: cst.Call) -> bool:
    """Return whether a call gives a handle, or is given no tensor first."""
    last = callee(call).rpartition(".")[2]
    if last in ("isend", "irecv", "wait") or last.lstrip("_").startswith("start"):
        return True
    first = call.args[0] if call.args else None
    if first is None or first.star or first.keyword is not None:
        return True
    return dotted(first.value).rpartition(".")[2] in _NO_TENSORS or _is_group(first.value)


def _is_group(node: cst.CSTNode) -> bool:
    return dotted(node).rpartition(".")[2].endswith(_GROUPS)


def _groups(view: View, spot: Spot) -> list[str]:
    """Return the communicators and groups that are known at a spot."""
    assert spot.function is not None
    params = spot.function.params
    names = [p.name.value for p in (*params.params, *params.kwonly_params)]
    if spot.klass is not None and "self" in names:
        names += [dotted(n) for n in walk(spot.klass) if isinstance(n, cst.Attribute)]
    found = [n for n in names if n.endswith(_GROUPS) and n.count(".") < 2]
    return sorted({n for n in found if "." not in n or n.startswith("self.")})
