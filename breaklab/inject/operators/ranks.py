"""Who is who: every rank takes itself for rank 0, or for alone, or does what one should do."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from breaklab.i18n import _
from breaklab.inject.operators.view import Edit, View, is_called, is_read
from breaklab.inject.operators.words import callee

_SILENT = (cst.FormattedStringExpression, cst.Comparison)
_SEEDS = ("seed", "manual_seed", "seed_all", "manual_seed_all", "seed_everything")


def ignore_rank(view: View) -> Iterator[Edit]:
    """All ranks do as rank 0: the same shard, the same noise."""
    yield from _as_if(view, "rank", "0")


def ignore_world_size(view: View) -> Iterator[Edit]:
    """As if alone: the whole data set for everybody."""
    yield from _as_if(view, "world_size", "1")


def wrong_rank(view: View) -> Iterator[Edit]:
    """What rank 0 does for all is done by every rank, or by another one."""
    for test, _spot in view.each(cst.Comparison):
        target = test.comparisons[0]
        if not is_called(test.left, "rank") or len(test.comparisons) != 1:
            continue
        if isinstance(target.operator, cst.Equal) and view.code(target.comparator) == "0":
            code = view.code(test.left)
            for text, what in ((">= 0", _("on every rank")), ("== 1", _("on rank 1, not 0"))):
                yield view.replaced(test, f"{code} {text}", what)


def seed_with_rank(view: View) -> Iterator[Edit]:
    """Ranks that must draw alike draw each for itself."""
    for call, spot, _is_statement in view.calls():
        if callee(call).rpartition(".")[2] not in _SEEDS or len(call.args) != 1:
            continue
        value = call.args[0].value
        rank = view.in_scope(spot, "rank")
        if rank and "rank" not in view.code(value):
            what = _("add `{code}` to the seed").format(code=rank)
            yield view.replaced(value, f"{view.code(value)} + {rank}", what)


def _as_if(view: View, word: str, number: str) -> Iterator[Edit]:
    for spot in view.spots:
        node = spot.node
        if spot.function is None or not is_called(node, word) or not is_read(node, spot):
            continue
        if not any(isinstance(each, _SILENT) for each in spot.parents):
            code = view.code(node)
            what = _("`{number}` instead of `{code}`").format(number=number, code=code)
            yield view.replaced(node, number, what)
