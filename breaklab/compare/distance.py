"""How far the parameters of two runs are apart, from the sketch of them that a lab wrote. Pure.

A sketch is a short vector, the same linear map of all parameters at every step and in every run,
which keeps distances: a random projection (Johnson and Lindenstrauss 1984). So a run need not save
its parameters to be compared with another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from breaklab.compare.series import Points, Rows


def distances(broken: Rows, healthy: Rows, key: str) -> dict[int, Points]:
    """Return for each rank and step that both runs have ||broken - healthy|| / ||healthy||.

    Args:
        broken: rows by rank.
        healthy: the reference's rows by rank.
        key: where the rows hold the sketch, a list of numbers.

    Returns:
        Fractions of the reference's norm; NaN where a sketch holds one, or the lengths differ.
    """
    found = {}
    for rank in sorted(broken.keys() & healthy.keys()):
        ours, theirs = _sketches(broken, rank, key), _sketches(healthy, rank, key)
        common = sorted(ours.keys() & theirs.keys())
        if common:
            found[rank] = tuple((step, _distance(ours[step], theirs[step])) for step in common)
    return found


def sketch_size(rows: Rows, key: str) -> int:
    """Return how many numbers a sketch has, 0 where there is none."""
    sizes = (len(sketch) for rank in rows for sketch in _sketches(rows, rank, key).values())
    return next(sizes, 0)


def standard_error(size: int) -> float:
    """Return the relative standard error of a distance estimated from ``size`` projections.

    The squared distance is a mean of ``size`` squares of normal numbers, so its relative variance
    is 2 / size, and that of the root half the deviation.
    """
    return 1.0 / math.sqrt(2.0 * size)


def _sketches(rows: Rows, rank: int, key: str) -> dict[int, list[float]]:
    return {row["step"]: row[key] for row in rows[rank] if "step" in row and _is_sketch(row, key)}


def _is_sketch(row: Mapping[str, Any], key: str) -> bool:
    values = row.get(key)
    return isinstance(values, list) and all(isinstance(value, int | float) for value in values)


def _distance(ours: list[float], theirs: list[float]) -> float:
    if len(ours) != len(theirs):
        return math.nan
    apart, norm = math.dist(ours, theirs), math.hypot(*theirs)
    if apart == 0.0:
        return 0.0
    return apart / norm if norm else math.inf
