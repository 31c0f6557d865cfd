"""Where each bar of a timeline lies, in pixels. Pure.

A rank has a lane; operations that overlap in time, as asynchronous ones do, get rows of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from breaklab.compare.timeline import Collective, Timeline

MAX_BARS = 300  # of one rank; more are too many to look at, and the trace holds them all
ROW_HEIGHT = 22
LANE_GAP = 10
_MIN_WIDTH, _MAX_WIDTH = 1080, 6000  # of all bars
_BAR_PITCH = 26  # pixels for an operation on average
_MIN_BAR = 3
_LETTER = 6.6  # mean width of a letter in a bar's label
_TAIL = 0.06  # of the width, for what never returned
_NUM_TICKS = 8


@dataclass(frozen=True)
class Bar:
    """One operation as a rectangle."""

    collective: Collective
    kind: int  # counts the operations of the page; chooses colour and pattern
    x: float
    y: int
    width: float
    label: str  # as much as fits


@dataclass(frozen=True)
class Lane:
    """One rank's bars."""

    rank: int
    y: int
    height: int
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Layout:
    """One run's timeline."""

    timeline: Timeline
    width: int
    height: int
    lanes: tuple[Lane, ...]
    ticks: tuple[tuple[float, float], ...]  # (x, seconds)
    num_left_out: int  # operations before the ones shown


@dataclass(frozen=True)
class _Scale:
    """Pixels from seconds."""

    start_s: float
    until_s: float
    width: int
    kinds: dict[str, int]

    def x(self, seconds: float) -> float:
        span = self.until_s - self.start_s
        return (seconds - self.start_s) / span * self.width * (1 - _TAIL) if span > 0 else 0.0


def lay_out(timelines: Sequence[Timeline]) -> list[Layout]:
    """Return where everything lies; all runs get one scale, so that widths can be compared."""
    kinds: dict[str, int] = {}
    for timeline in timelines:
        for collective in timeline.collectives:
            kinds.setdefault(collective.operation, len(kinds))
    shown = [_shown(timeline) for timeline in timelines]
    spans = [_span(lanes, each.until_s) for lanes, each in zip(shown, timelines, strict=True)]
    longest_s = max((until_s - start_s for start_s, until_s in spans), default=0.0)
    most = max((len(bars) for lanes in shown for bars in lanes), default=0)
    width = min(max(_MIN_WIDTH, most * _BAR_PITCH), _MAX_WIDTH)
    return [
        _layout(timeline, lanes, _Scale(start_s, start_s + longest_s, width, kinds))
        for timeline, lanes, (start_s, _until_s) in zip(timelines, shown, spans, strict=True)
    ]


def operations(layouts: Sequence[Layout]) -> list[tuple[int, str]]:
    """Return each operation that is drawn, with its kind, for a legend."""
    bars = (bar for layout in layouts for lane in layout.lanes for bar in lane.bars)
    return sorted({(bar.kind, bar.collective.operation) for bar in bars})


def _shown(timeline: Timeline) -> list[tuple[Collective, ...]]:
    return [timeline.of_rank(rank)[-MAX_BARS:] for rank in range(timeline.num_ranks)]


def _span(lanes: list[tuple[Collective, ...]], until_s: float) -> tuple[float, float]:
    return min((bars[0].entered_s for bars in lanes if bars), default=0.0), until_s


def _layout(timeline: Timeline, shown: list[tuple[Collective, ...]], scale: _Scale) -> Layout:
    lanes = []
    y = LANE_GAP
    for rank, collectives in enumerate(shown):
        lane = _lane(rank, collectives, y, scale)
        lanes.append(lane)
        y += lane.height + LANE_GAP
    num_shown = sum(map(len, shown))
    return Layout(
        timeline,
        scale.width,
        y,
        tuple(lanes),
        tuple((scale.x(seconds), seconds) for seconds in _ticks(scale.start_s, scale.until_s)),
        len(timeline.collectives) - num_shown,
    )


def _lane(rank: int, collectives: Sequence[Collective], y: int, scale: _Scale) -> Lane:
    free_from: list[float] = []  # by row: where its last bar ends
    bars = []
    for collective in collectives:
        x = scale.x(collective.entered_s)
        end = scale.width if collective.left_s is None else scale.x(collective.left_s)
        width = max(end - x, _MIN_BAR)
        # A bar that was made wider to be seen may touch the next without a row for it.
        row = next((row for row, free in enumerate(free_from) if free <= x), len(free_from))
        free_from[row : row + 1] = [max(end, x)]
        kind = scale.kinds[collective.operation]
        place = y + row * ROW_HEIGHT
        bars.append(Bar(collective, kind, x, place, width, _label(collective, width)))
    return Lane(rank, y, max(len(free_from), 1) * ROW_HEIGHT, tuple(bars))


def _label(collective: Collective, width: float) -> str:
    """Return the longest of a few labels that fits in ``width`` pixels."""
    number = "" if collective.sequence is None else f"#{collective.sequence}"
    for label in (f"{collective.operation} {number}".strip(), collective.operation, number):
        if len(label) * _LETTER + 6 <= width:
            return label
    return ""


def _ticks(start_s: float, until_s: float) -> list[float]:
    """Return round times between two others, about ``_NUM_TICKS`` of them."""
    if until_s <= start_s:
        return [start_s]
    rough = (until_s - start_s) / _NUM_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    pace = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    first = math.ceil(start_s / pace - 1e-9)
    return [number * pace for number in range(first, math.floor(until_s / pace + 1e-9) + 1)]
