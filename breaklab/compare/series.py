"""From the rows that ranks wrote to one series of numbers for each rank. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from breaklab.model import Metrics

Rows = Mapping[int, Sequence[Mapping[str, Any]]]  # by rank
Points = tuple[tuple[int, float], ...]  # (step, value), by step, each step once

NOT_CURVES = frozenset({"step", "rank"})


def points_of(rows: Rows, key: str) -> dict[int, Points]:
    """Return for each rank that has any the numbers under ``key``, a later row of a step winning.

    Truth values, texts and lists are no numbers; NaN and infinity are.
    """
    found = {}
    for rank, of_rank in sorted(rows.items()):
        values = {
            row["step"]: float(row[key])
            for row in of_rank
            if _is_step(row.get("step")) and _is_number(row.get(key))
        }
        if values:
            found[rank] = tuple(sorted(values.items()))
    return found


def numeric_keys(*runs: Rows) -> tuple[str, ...]:
    """Return every key that holds a number somewhere, in order of first appearance."""
    keys: dict[str, None] = {}
    for rows in runs:
        for of_rank in rows.values():
            for row in of_rank:
                keys.update((key, None) for key, value in row.items() if _is_number(value))
    return tuple(key for key in keys if key not in NOT_CURVES)


def curve_keys(metrics: Metrics, *runs: Rows) -> tuple[str, ...]:
    """Return the keys to draw: those that the lab names, else what it compares, then the others."""
    there = numeric_keys(*runs)
    wanted = metrics.curves or (*metrics.compare, *there)
    return tuple(dict.fromkeys(key for key in wanted if key in there))


def watched_keys(metrics: Metrics, *runs: Rows) -> tuple[str, ...]:
    """Return the keys whose numbers tell that two runs part.

    What the lab declares; not every number, since one such as a duration differs in any two runs.
    """
    declared = (*metrics.compare, *metrics.curves, *metrics.agree, *metrics.count)
    there = numeric_keys(*runs)
    return tuple(dict.fromkeys(key for key in declared if key in there))


def last_step(rows: Rows) -> int | None:
    """Return the highest step of any row, None without rows."""
    steps = [
        row["step"] for of_rank in rows.values() for row in of_rank if _is_step(row.get("step"))
    ]
    return max(steps, default=None)


def _is_step(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
