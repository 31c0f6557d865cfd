"""From the name of a variant to what a spec promises of it."""

from __future__ import annotations

from breaklab.errors import BreaklabError
from breaklab.i18n import _
from breaklab.model import BreakSpec, RunPromise


def find_variant(spec: BreakSpec, variant: str | None) -> RunPromise | None:
    """Return the variant asked for, else the first; None for a break that promises no run.

    Raises:
        BreaklabError: the break has no variant of that name.
    """
    if variant is None:
        return spec.runs[0] if spec.runs else None
    for promise in spec.runs:
        if promise.variant == variant:
            return promise
    known = ", ".join(promise.variant for promise in spec.runs) or _("none")
    raise BreaklabError(
        _("there is no variant {variant!r}").format(variant=variant),
        hint=_("its variants: {known}").format(known=known),
    )
