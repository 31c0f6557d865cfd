"""The sentences about a comparison, the same on the terminal and on the page."""

from __future__ import annotations

import math

from breaklab.compare.comparison import Comparison
from breaklab.compare.distance import standard_error
from breaklab.i18n import _
from breaklab.ranks.differences import Difference


def number(value: float) -> str:
    """Return a number with six significant digits; NaN and infinity by name."""
    return f"{value:.6g}"


def percent(fraction: float) -> str:
    """Return a fraction as per cent with three significant digits."""
    return f"{100 * fraction:.3g} %"


def headline(comparison: Comparison) -> str:
    """Say where the runs part, in one sentence."""
    found = comparison.parting
    if found is not None:
        return _("The runs part at step {step}: {what}.").format(
            step=found.step, what=parted(found)
        )
    if comparison.healthy.last_step is None and comparison.broken.last_step is None:
        return _("Neither run reported numbers; only what became of them can be compared.")
    if comparison.broken.last_step is None:
        return _("The broken run ended before it reported any number.")
    if comparison.ends_early:
        return _("No number differs up to step {step}, where the broken run's numbers end.").format(
            step=comparison.broken.last_step
        )
    return _("No number differs by more than the lab's tolerance.")


def parted(found: Difference) -> str:
    """Say which number parts and how far, as a clause."""
    clause = _("{key} on rank {rank} is {broken}, {healthy} in the healthy run").format(
        key=found.key,
        rank=found.rank,
        broken=number(float(found.value)),
        healthy=number(float(found.expected)),
    )
    if math.isfinite(found.largest):
        clause += _(" (up to {largest} apart over the run)").format(largest=percent(found.largest))
    return clause


def unparted(comparison: Comparison) -> str:
    """Say that a number does not part, and how far that is known."""
    if comparison.ends_early and comparison.broken.last_step is not None:
        return _("Does not part up to step {step}, where the broken run's numbers end.").format(
            step=comparison.broken.last_step
        )
    return _("Does not part.")


def ending(comparison: Comparison) -> str:
    """Say where the broken run's numbers end, ``""`` where they go as far as the healthy run's."""
    if not comparison.ends_early or comparison.broken.last_step is None:
        return ""
    return _(
        "The broken run is compared as far as it got: its numbers end at step {broken}, the "
        "healthy run's at step {healthy}."
    ).format(broken=comparison.broken.last_step, healthy=comparison.healthy.last_step)


def distance_note(comparison: Comparison) -> str:
    """Say how the distance of the parameters was measured."""
    return _(
        "Norm of the difference of all parameters, in per cent of the healthy run's norm at the "
        "same step; estimated from {count} random projections, standard error {error} of the value."
    ).format(
        count=comparison.num_projections,
        error=percent(standard_error(max(comparison.num_projections, 1))),
    )
