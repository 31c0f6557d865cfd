"""What each figure of the page consists of: a chart, words about it, the same numbers as a table.

Jinja2 escapes every text but the chart, which :mod:`breaklab.compare.charts` serialised as XML.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from breaklab.compare import words
from breaklab.compare.charts import BROKEN, HEALTHY, Chart, Curve, draw
from breaklab.compare.comparison import Comparison, Panel
from breaklab.compare.series import Points
from breaklab.compare.tables import steps_to_show
from breaklab.i18n import _

MAX_TABLE_STEPS = 200


@dataclass(frozen=True)
class TableRow:
    """The numbers of one step, as text."""

    step: int
    parts: bool  # the runs first part here
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Figure:
    """One chart, ready for the template."""

    figure_id: str
    title: str
    notes: tuple[str, ...]
    svg: str  # trusted
    headings: tuple[str, ...]
    rows: tuple[TableRow, ...]
    table_note: str


def figures(comparison: Comparison) -> list[Figure]:
    """Draw every number of both runs, and the distance of the parameters where it is known.

    Raises:
        ImportError: matplotlib is not installed.
    """
    found = [_of_panel(number, panel, comparison) for number, panel in enumerate(comparison.panels)]
    if comparison.distance:
        found.append(_of_distance(comparison))
    return found


def _of_panel(number: int, panel: Panel, comparison: Comparison) -> Figure:
    curves = _curves(HEALTHY, panel.healthy) + _curves(BROKEN, panel.broken)
    parting = panel.parting
    if parting is None:
        notes = [words.unparted(comparison)]
    else:
        text = _("Parts at step {step}: {what}.")
        notes = [text.format(step=parting.step, what=words.parted(parting))]
    if panel.has_gaps:
        notes.append(_("NaN and infinity can't be drawn; the table has them."))
    chart = Chart(
        f"figure-{number}",
        panel.key,
        _description(curves),
        _("step"),
        panel.key,
        curves,
        panel.steps,
        parting.step if parting else None,
        _("parts at step {step}").format(step=parting.step) if parting else "",
    )
    return _figure(chart, notes)


def _of_distance(comparison: Comparison) -> Figure:
    in_percent = {
        rank: tuple((step, 100 * value) for step, value in points)
        for rank, points in comparison.distance.items()
    }
    curves = _curves(BROKEN, in_percent)
    chart = Chart(
        "figure-distance",
        _("Parameters' distance to the healthy run"),
        _description(curves),
        _("step"),
        _("per cent"),
        curves,
        comparison.steps,
    )
    return _figure(chart, [words.distance_note(comparison)])


def _curves(run: str, by_rank: Mapping[int, Points]) -> tuple[Curve, ...]:
    return tuple(
        Curve(run, rank, points, curve_name(run, rank)) for rank, points in by_rank.items()
    )


def curve_name(run: str, rank: int) -> str:
    """Return the name of one rank of one run, for legends and headings."""
    if run == HEALTHY:
        return _("healthy, rank {rank}").format(rank=rank)
    return _("broken, rank {rank}").format(rank=rank)


def _description(curves: Sequence[Curve]) -> str:
    """Say in words what the curves show: where each begins and ends."""
    text = _("{curve}: {first_value} at step {first}, {last_value} at step {last}.")
    return " ".join(
        text.format(
            curve=curve.label,
            first=curve.points[0][0],
            first_value=words.number(curve.points[0][1]),
            last=curve.points[-1][0],
            last_value=words.number(curve.points[-1][1]),
        )
        for curve in curves
    )


def _figure(chart: Chart, notes: Sequence[str]) -> Figure:
    columns = [dict(curve.points) for curve in chart.curves]
    keep = () if chart.mark_at is None else (chart.mark_at,)
    every_step = {step for column in columns for step in column}
    steps, is_thinned = steps_to_show(every_step, MAX_TABLE_STEPS, keep=keep)
    return Figure(
        chart.chart_id,
        chart.title,
        tuple(notes),
        draw(chart),
        tuple(curve.label for curve in chart.curves),
        tuple(
            TableRow(step, step in keep, tuple(_cell(column.get(step)) for column in columns))
            for step in steps
        ),
        _("Not every step is shown; compare --json prints all.") if is_thinned else "",
    )


def _cell(value: float | None) -> str:
    return "-" if value is None else words.number(value)
