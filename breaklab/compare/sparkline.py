"""A curve in one line of text. Pure."""

from __future__ import annotations

import math

from breaklab.compare.series import Points

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII = ".:-=+*#@"  # for a terminal that has no blocks
_NOT_FINITE = "!"


def bounds(*curves: Points) -> tuple[float, float] | None:
    """Return the least and the largest finite value of all curves, None where there is none."""
    values = [value for points in curves for _step, value in points if math.isfinite(value)]
    return (min(values), max(values)) if values else None


def sparkline(
    points: Points,
    steps: tuple[int, int],
    scale: tuple[float, float] | None,
    width: int,
    marks: str = BLOCKS,
) -> str:
    """Draw ``points`` between two steps, inclusive, in at most ``width`` letters.

    Where there are more steps than letters, a letter shows a mean. A step without a number is
    blank; NaN and infinity show as ``!``.

    Args:
        points: the curve.
        steps: first and last step of the line, the same for curves to be compared.
        scale: the values of the lowest and the highest mark, as for ``steps``.
        width: letters, at least 1.
        marks: from low to high.
    """
    first, last = steps
    num_steps = last - first + 1
    num_cells = max(1, min(width, num_steps))
    cells: list[list[float]] = [[] for _ in range(num_cells)]
    for step, value in points:
        if first <= step <= last:
            cells[(step - first) * num_cells // num_steps].append(value)
    return "".join(_mark(cell, scale, marks) for cell in cells)


def _mark(cell: list[float], scale: tuple[float, float] | None, marks: str) -> str:
    if not cell:
        return " "
    mean = sum(cell) / len(cell)
    if not math.isfinite(mean) or scale is None:
        return _NOT_FINITE
    low, high = scale
    height = (mean - low) / (high - low) if high > low else 0.0
    return marks[min(max(int(height * len(marks)), 0), len(marks) - 1)]
