"""Choose a break for a learner who wants to be surprised."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from breaklab.errors import BreaklabError
from breaklab.i18n import _
from breaklab.learn.progress import State, state_of
from breaklab.model import BreakSpec
from breaklab.tree.events import Event


def candidates(
    specs: Iterable[BreakSpec],
    events: Sequence[Event],
    *,
    family: str | None = None,
    max_difficulty: int | None = None,
) -> list[BreakSpec]:
    """Return the breaks that are open, and of the family and difficulty asked for."""
    return [
        spec
        for spec in specs
        if family in (None, spec.family)
        and (max_difficulty is None or spec.difficulty <= max_difficulty)
        and state_of(events, spec.bug_id) is State.OPEN
    ]


def choose_mystery(
    specs: Sequence[BreakSpec],
    events: Sequence[Event],
    *,
    family: str | None = None,
    max_difficulty: int | None = None,
) -> BreakSpec:
    """Return one open break at random.

    Raises:
        BreaklabError: the family does not exist, or no break that fits is open any more.
    """
    families = sorted({spec.family for spec in specs})
    if family is not None and family not in families:
        raise BreaklabError(
            _("there is no family {family}").format(family=family),
            hint=_("families: {known}").format(known=", ".join(families) or _("none")),
        )
    fitting = candidates(specs, events, family=family, max_difficulty=max_difficulty)
    if not fitting:
        raise BreaklabError(
            _("no break that fits is open any more"),
            hint=_("see where you stand: breaklab list; any break can be applied again by its ID"),
        )
    return random.choice(fitting)
