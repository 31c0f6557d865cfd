"""Which hint comes next: one level at a time, from what the events say was shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from breaklab.errors import BreaklabError
from breaklab.i18n import _, ngettext
from breaklab.model import BreakSpec
from breaklab.tree.events import Event

HINT_SHOWN = "hint"


@dataclass(frozen=True)
class NextHint:
    """The hint to show: its level from 1, and whether the learner has seen it before."""

    level: int
    seen_before: bool


def shown_levels(events: Iterable[Event], bug_id: str) -> frozenset[int]:
    """Return the levels of ``bug_id`` that were ever shown."""
    levels = (
        event.data.get("level")
        for event in events
        if event.kind == HINT_SHOWN and event.bug_id == bug_id
    )
    # The file is the learner's to edit; what is no level is no hint. (True is an int, too.)
    return frozenset(level for level in levels if type(level) is int)


def choose_hint(
    spec: BreakSpec, shown: frozenset[int], level: int | None = None, *, name: str = ""
) -> NextHint:
    """Return the level to show: ``level`` itself, else the first unseen one, else the last.

    Args:
        spec: the break.
        shown: the levels seen before.
        level: the level asked for, if one was.
        name: how the break is called in messages; default: its bug id.

    Raises:
        BreaklabError: the spec has no hint of that level; the message says which there are.
    """
    num_levels = len(spec.hints)
    if level is None:
        unseen = [each for each in range(1, num_levels + 1) if each not in shown]
        level = unseen[0] if unseen else num_levels
    if not 1 <= level <= num_levels:
        raise _no_such_level(name or spec.bug_id, level, num_levels)
    return NextHint(level, level in shown)


def _no_such_level(name: str, level: int, num_levels: int) -> BreaklabError:
    levels = ", ".join(str(each) for each in range(1, num_levels + 1))
    message = ngettext(
        "{name} has no hint of level {level}; its only level is {levels}",
        "{name} has no hint of level {level}; its levels are {levels}",
        num_levels,
    ).format(name=name, level=level, levels=levels)
    return BreaklabError(message, hint=_("without --level the next unseen one comes"))
