"""Whether a break behaves the same each time: its red tests and its variants, round after round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from breaklab.i18n import _
from breaklab.model import BreakSpec
from breaklab.prove.controls import Controls
from breaklab.prove.scratch import Scratch
from breaklab.ranks.warm import WarmParent


@dataclass(frozen=True)
class Round:
    """What one round showed."""

    red: frozenset[str]  # node ids
    unmet: Mapping[str, str]  # variant -> what differs from its promise, "" where that is kept


def play_round(
    scratch: Scratch,
    spec: BreakSpec,
    tests: Sequence[str],
    warm: WarmParent,
    controls: Controls,
) -> Round:
    """Run some tests and every variant of a broken lab once.

    Args:
        scratch: the copy with the break in it.
        spec: the break.
        tests: node ids.
        warm: the parent that tests and ranks are forked from.
        controls: of the same lab.

    Raises:
        RunError: tests or ranks could not be started.
    """
    red = warm.run_tests(scratch.tests(tuple(tests))).red if tests else ()
    unmet = {
        promise.variant: controls.run_promise(scratch, spec, promise, warm) for promise in spec.runs
    }
    return Round(frozenset(red), unmet)


def unsteady(rounds: Sequence[Round]) -> str:
    """Return what was not the same in every round, or ``""``."""
    total = len(rounds)
    problems = []
    times_red = Counter(nodeid for each in rounds for nodeid in each.red)
    for nodeid, count in sorted(times_red.items()):
        if count < total:
            text = _("{test} went red in {count} of {total} rounds")
            problems.append(text.format(test=nodeid, count=count, total=total))
    for variant in rounds[0].unmet:
        details = [each.unmet[variant] for each in rounds if each.unmet[variant]]
        if 0 < len(details) < total:
            text = _("{variant} kept its promise in {count} of {total} rounds: {detail}")
            problems.append(
                text.format(
                    variant=variant, count=total - len(details), total=total, detail=details[0]
                )
            )
    return "; ".join(problems)
