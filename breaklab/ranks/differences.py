"""Compares the ranks' numbers with each other and with a reference: where, and by how much. Pure.

Numbers are rows per rank, each row an object with ``step`` and values: numbers, texts, or nested
lists of them. Rows of the same step belong together, a later one wins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from breaklab.i18n import _

Rows = Mapping[int, Sequence[Mapping[str, Any]]]  # by rank
Values = dict[tuple[int, int], Any]  # (step, rank) -> value of one key

_TINY = 1e-12  # both below: equal, whatever their ratio


@dataclass(frozen=True)
class Difference:
    """Where the numbers first part, and how far they are apart at most."""

    key: str
    step: int
    rank: int
    value: Any
    expected: Any
    largest: float  # relative, over all steps and ranks; infinite where no ratio exists
    sentence: str
    details: tuple[str, ...] = ()


def between_ranks(
    rows: Rows, keys: Sequence[str], ranks: Iterable[int], *, complete: bool
) -> Difference | None:
    """Return the first step at which ranks disagree, exactly, in one of ``keys``.

    Args:
        rows: the run's numbers; none at all if nobody asked the ranks for them.
        keys: what must be equal on all ranks.
        ranks: which ranks took part.
        complete: the run ended by itself, so all of them must also have the same steps.
    """
    found: list[Difference] = []
    for key in keys:
        values = _values(rows, key)
        lowest = dict(sorted(values, reverse=True))  # step -> lowest rank that has it
        expected = {(step, rank): values[step, lowest[step]] for step, rank in values}
        found.extend(_parted(key, values, expected, _same, _ranks_sentence(lowest)))
    if found or not complete or not keys or not rows:
        return _first(found)
    return _uneven({rank: rows.get(rank, ()) for rank in ranks})


def from_reference(
    rows: Rows, reference: Rows, keys: Sequence[str], tolerance: float, *, complete: bool
) -> Difference | None:
    """Return the first step at which the run is further than ``tolerance`` from the reference."""
    found: list[Difference] = []
    for key in keys:
        values, expected = _values(rows, key), _values(reference, key)
        found.extend(_parted(key, values, expected, _close(tolerance), _reference_sentence))
    return _first(found) or (_shorter(rows, reference, keys) if complete else None)


def above_reference(rows: Rows, reference: Rows, keys: Sequence[str]) -> Difference | None:
    """Return the first step at which a count exceeds the reference's."""
    found: list[Difference] = []
    for key in keys:
        values, expected = _values(rows, key), _values(reference, key)
        found.extend(_parted(key, values, expected, _not_above, _count_sentence))
    return _first(found)


def relative_difference(value: Any, expected: Any) -> float:
    """Return |value - expected| over the larger magnitude; for lists the largest of their items.

    Infinite where the two can't be compared: other types or lengths, a NaN against a number.
    """
    if isinstance(value, list) and isinstance(expected, list):
        if len(value) != len(expected):
            return math.inf
        return max(map(relative_difference, value, expected), default=0.0)
    if not (_is_number(value) and _is_number(expected)):
        return 0.0 if _same(value, expected) else math.inf
    if value == expected or (math.isnan(value) and math.isnan(expected)):
        return 0.0
    if not (math.isfinite(value) and math.isfinite(expected)):
        return math.inf
    scale = max(abs(value), abs(expected))
    return 0.0 if scale < _TINY else float(abs(value - expected) / scale)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(value: Any, expected: Any) -> bool:
    both_nan = value != value and expected != expected  # only NaN does
    return both_nan or bool(value == expected)


def _not_above(value: Any, expected: Any) -> bool:
    return not (_is_number(value) and _is_number(expected)) or bool(value <= expected)


def _close(tolerance: float) -> Callable[[Any, Any], bool]:
    return lambda value, expected: relative_difference(value, expected) <= tolerance


def _values(rows: Rows, key: str) -> Values:
    return {
        (row["step"], rank): row[key]
        for rank, of_rank in rows.items()
        for row in of_rank
        if key in row and isinstance(row.get("step"), int)
    }


def _parted(
    key: str,
    values: Values,
    expected: Values,
    right: Callable[[Any, Any], bool],
    sentence: Callable[[Difference], str],
) -> Iterator[Difference]:
    """Yield the first difference of ``key``, if there is one, over what both sides have."""
    common = sorted(values.keys() & expected.keys())
    wrong = [place for place in common if not right(values[place], expected[place])]
    if not wrong:
        return
    step, rank = wrong[0]
    largest = max(relative_difference(values[place], expected[place]) for place in wrong)
    bare = Difference(key, step, rank, values[wrong[0]], expected[wrong[0]], largest, "")
    yield _with(bare, sentence(bare), (_steps_detail(wrong, common),))


def _with(bare: Difference, sentence: str, details: tuple[str, ...]) -> Difference:
    return Difference(
        bare.key, bare.step, bare.rank, bare.value, bare.expected, bare.largest, sentence, details
    )


def _first(found: Sequence[Difference]) -> Difference | None:
    """Return the earliest difference; the others become details of it."""
    if not found:
        return None
    ordered = sorted(found, key=lambda difference: difference.step)
    others = tuple(difference.sentence for difference in ordered[1:])
    return _with(ordered[0], ordered[0].sentence, (*ordered[0].details, *others))


def _steps_detail(wrong: Sequence[tuple[int, int]], common: Sequence[tuple[int, int]]) -> str:
    return _("{wrong} of {all} steps differ").format(
        wrong=len({step for step, _rank in wrong}), all=len({step for step, _rank in common})
    )


def _uneven(rows: Rows) -> Difference | None:
    """Return a difference when some rank made fewer steps than another, or wrote no numbers."""
    last = {rank: _last_step(of_rank) for rank, of_rank in rows.items()}
    short, far = min(last, key=lambda rank: last[rank]), max(last, key=lambda rank: last[rank])
    if last[short] == last[far]:
        return None
    text = _("rank {short} ended at step {step}, rank {far} at step {expected}")
    if last[short] < 0:
        text = _("rank {short} wrote no numbers, rank {far} up to step {expected}")
    sentence = text.format(short=short, step=last[short], far=far, expected=last[far])
    return Difference("step", last[short], short, last[short], last[far], math.inf, sentence)


def _shorter(rows: Rows, reference: Rows, keys: Sequence[str]) -> Difference | None:
    """Return a difference when a rank made another number of steps than in the reference."""
    for rank in sorted(rows.keys() & reference.keys() if keys else ()):
        step, expected = _last_step(rows[rank]), _last_step(reference[rank])
        if step != expected:
            sentence = _("rank {rank} ended at step {step}, in the reference at step {expected}")
            text = sentence.format(rank=rank, step=step, expected=expected)
            return Difference("step", step, rank, step, expected, math.inf, text)
    return None


def _last_step(rows: Sequence[Mapping[str, Any]]) -> int:
    return max((row["step"] for row in rows if isinstance(row.get("step"), int)), default=-1)


def _ranks_sentence(lowest: Mapping[int, int]) -> Callable[[Difference], str]:
    def sentence(found: Difference) -> str:
        text = _(
            "{key} differs between ranks from step {step} on: {value} on rank {rank}, "
            "{expected} on rank {other}"
        )
        return text.format(**_fields(found), other=lowest[found.step])

    return sentence


def _reference_sentence(found: Difference) -> str:
    text = _(
        "{key} differs from the reference from step {step} on, by up to {largest}: "
        "{value} on rank {rank} at that step, {expected} in the reference"
    )
    return text.format(**_fields(found))


def _count_sentence(found: Difference) -> str:
    text = _("{key} is {value} on rank {rank} at step {step}, {expected} in the reference")
    return text.format(**_fields(found))


def _fields(found: Difference) -> dict[str, Any]:
    return {
        "key": found.key,
        "step": found.step,
        "rank": found.rank,
        "value": _short(found.value),
        "expected": _short(found.expected),
        "largest": "?" if math.isinf(found.largest) else _percent(found.largest),
    }


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.3g} %"


def _short(value: Any) -> str:
    text = f"{value:.7g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 40 else text[:37] + "..."
