"""The same numbers as in the curves, as rows of a table. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from breaklab.compare.comparison import Comparison, Panel


@dataclass(frozen=True)
class Row:
    """One step of one rank: for each panel the healthy and the broken number, None if missing."""

    step: int
    rank: int
    pairs: tuple[tuple[float | None, float | None], ...]
    distance: float | None
    parts: tuple[str, ...]  # keys that first part here


def rows(comparison: Comparison, panels: Sequence[Panel]) -> list[Row]:
    """Return a row for each step and rank that any of ``panels`` has, by step, then rank."""
    columns = [
        tuple({(rank, step): value for rank, points in run.items() for step, value in points}
              for run in panel.runs)
        for panel in panels
    ]  # fmt: skip
    distance = {
        (rank, step): value for rank, of in comparison.distance.items() for step, value in of
    }
    places = {place for pair in columns for column in pair for place in column} | set(distance)
    parts: dict[tuple[int, int], list[str]] = {}
    for found in comparison.partings:
        parts.setdefault((found.rank, found.step), []).append(found.key)
    return [
        Row(
            step,
            rank,
            tuple((healthy.get((rank, step)), broken.get((rank, step)))
                  for healthy, broken in columns),
            distance.get((rank, step)),
            tuple(parts.get((rank, step), ())),
        )
        for rank, step in sorted(places, key=lambda place: (place[1], place[0]))
    ]  # fmt: skip


def steps_to_show(
    steps: Iterable[int], limit: int, *, keep: Collection[int] = ()
) -> tuple[list[int], bool]:
    """Return at most about ``limit`` steps and whether any are left out.

    The first, the last, and ``keep`` with their neighbours stay; the rest are taken evenly.
    """
    ordered = sorted(set(steps))
    if len(ordered) <= limit:
        return ordered, False
    places = {0, len(ordered) - 1}
    for index, step in enumerate(ordered):
        if step in keep:
            places.update(range(max(index - 2, 0), min(index + 3, len(ordered))))
    spare = max(limit - len(places), 1)
    places.update(number * (len(ordered) - 1) // spare for number in range(spare))
    return [ordered[place] for place in sorted(places)], True
