"""Checkpoints: something that the next step depends on is not saved, or not taken up."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from breaklab.i18n import _
from breaklab.inject.operators import statements
from breaklab.inject.operators.view import Edit, View

_SAVES = re.compile(r"state_dict|collect|save|checkpoint|consolidated", re.IGNORECASE)
_LOADS = re.compile(r"load|restore|resume", re.IGNORECASE)


def skip_saving(view: View) -> Iterator[Edit]:
    """Drop one key of what is saved."""
    for pair, spot in view.each(cst.DictElement):
        owner = spot.parents[-1]
        assert spot.function is not None
        name = spot.function.name.value
        if not isinstance(owner, cst.Dict) or _LOADS.search(name) or not _SAVES.search(name):
            continue
        index = owner.elements.index(pair)
        start = view.source.span(pair.key)[0]
        end = view.source.span(pair.value)[1]
        if index + 1 < len(owner.elements):
            follower = owner.elements[index + 1]
            end = view.source.span(getattr(follower, "key", follower.value))[0]
        elif index:
            start = view.source.span(owner.elements[index - 1].value)[1]
        what = _("do not save {key}").format(key=view.code(pair.key))
        yield Edit(start, end, "", what)


def skip_loading(view: View) -> Iterator[Edit]:
    """Drop one statement that takes up what was saved; what was there before stays."""
    for line, spot in view.each(cst.SimpleStatementLine):
        assert spot.function is not None
        if not _loads(view, spot.function) or len(line.body) != 1:
            continue
        small = line.body[0]
        attributes = isinstance(small, cst.Assign) and not any(
            isinstance(target.target, cst.Name) for target in small.targets
        )
        called = isinstance(small, cst.Expr) and isinstance(small.value, cst.Call)
        if attributes or called:
            yield from statements.dropped(view, spot)


def skip_one_of_many(view: View) -> Iterator[Edit]:
    """Drop one target of ``a, b = x, y`` where saved state is taken up."""
    for assign, spot in view.each(cst.Assign):
        assert spot.function is not None
        target, value = assign.targets[0].target, assign.value
        if not (isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple)):
            continue
        if not _loads(view, spot.function):
            continue
        left = [view.code(element) for element in target.elements]
        right = [view.code(element) for element in value.elements]
        if len(left) != len(right) or len(left) < 2:
            continue
        for index, name in enumerate(left):
            kept = [at for at in range(len(left)) if at != index]
            code = ", ".join(left[at] for at in kept) + " = " + ", ".join(right[at] for at in kept)
            yield view.replaced(assign, code, _("do not take up {key}").format(key=name))


def _loads(view: View, function: cst.FunctionDef) -> bool:
    """Return whether a function takes up a saved state; others load data, or modules."""
    return bool(_LOADS.search(function.name.value)) and "state" in view.code(function.body)
