"""Calls that do their work in passing, and copies: nothing complains where one is forgotten."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from breaklab.i18n import _
from breaklab.inject.operators import statements
from breaklab.inject.operators.view import Edit, View
from breaklab.inject.operators.words import callee

_COPIES = ("clone", "detach", "copy", "deepcopy", "contiguous")


def drop_ritual(view: View) -> Iterator[Edit]:
    """Forget a ``set_epoch``, a ``zero_grad``, a seed, a step."""
    for call, spot, is_statement in view.calls():
        if is_statement and view.words.is_ritual(call) and not view.words.is_collective(call):
            yield from statements.dropped(view, spot)
    yield from _no_sync(view)


def move_ritual(view: View) -> Iterator[Edit]:
    """Do it too early, or too late."""
    for call, spot, is_statement in view.calls():
        if is_statement and view.words.is_ritual(call) and not view.words.is_collective(call):
            yield from statements.moved(view, spot)


def drop_copy(view: View) -> Iterator[Edit]:
    """Share memory with what changes later."""
    for call, _spot, _is_statement in view.calls():
        func = call.func
        if isinstance(func, cst.Attribute) and func.attr.value in _COPIES and not call.args:
            what = _("leave out `.{name}()`").format(name=func.attr.value)
            yield view.replaced(call, view.code(func.value), what)
        for index, arg in enumerate(call.args):
            if arg.keyword is not None and arg.keyword.value == "copy" and index:
                start = view.source.span(call.args[index - 1].value)[1]
                end = view.source.span(arg.value)[1]
                what = _("leave out `{code}`").format(code=view.code(arg))
                yield Edit(start, end, "", what)


def _no_sync(view: View) -> Iterator[Edit]:
    """Communicate in every micro-batch, or never."""
    for item, spot in view.each(cst.WithItem):
        if callee(item.item).rpartition(".")[2] == "no_sync":
            owner = spot.parents[-1]
            if isinstance(owner, cst.With) and len(owner.items) == 1:
                start = view.source.span(owner)[0]
                end = view.source.span(owner.body)[0]
                colon = view.source.text.rindex(":", start, end)
                yield Edit(start, colon, "if True", _("leave out no_sync"))
    for choice, _spot in view.each(cst.IfExp):
        arms = (choice.body, choice.orelse)
        if any(callee(arm).rpartition(".")[2] == "no_sync" for arm in arms):
            for arm in arms:
                code = view.code(arm)
                yield view.replaced(choice, code, _("always `{code}`").format(code=code))
