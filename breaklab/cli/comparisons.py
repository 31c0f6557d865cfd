"""Print a comparison of two runs: where they part, curves in one line each, and the numbers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from breaklab.cli.outcomes import outcome_word
from breaklab.cli.render import Column, Screen
from breaklab.i18n import _

if TYPE_CHECKING:
    from breaklab.compare.comparison import Comparison, Panel, Side
    from breaklab.compare.tables import Row

_MAX_PANELS = 3  # side by side in a table of 80 columns
_MAX_STEPS = 24
_SPARKLINE_WIDTH = 40
_STEPS_BEYOND = 1


def print_comparison(screen: Screen, comparison: Comparison) -> None:
    """Print the whole comparison."""
    from breaklab.compare import words

    _print_subject(screen, comparison)
    screen.prose(words.headline(comparison), "strong")
    ending = words.ending(comparison)
    if ending:
        screen.prose(ending)
    screen.line()
    screen.fields(
        [
            (_("healthy run"), _side_text(comparison.healthy)),
            (_("broken run"), _side_text(comparison.broken)),
        ]
    )
    for detail in comparison.broken.judged.details:
        screen.prose(f"- {detail}", indent=2)
    panels = comparison.panels[:_MAX_PANELS]
    for panel in panels:
        screen.line()
        _print_sparklines(screen, panel)
    if panels:
        screen.line()
        _print_table(screen, comparison, panels)


def _print_subject(screen: Screen, comparison: Comparison) -> None:
    subject = comparison.subject
    parts = [
        subject.bug_id or _("a mystery break"),
        _("lab {lab}").format(lab=subject.lab),
        _("variant {variant}").format(variant=subject.variant) if subject.variant else "",
        _("{count} ranks").format(count=subject.num_ranks),
        " ".join(subject.args),
        _("your tree as it stands") if subject.as_it_stands else "",
    ]
    screen.line(", ".join(part for part in parts if part), "quiet")


def _side_text(side: Side) -> str:
    return _("{outcome} after {seconds:.1f} s: {summary}").format(
        outcome=outcome_word(side.judged.outcome),
        seconds=side.report.duration_s,
        summary=side.judged.summary,
    )


def _print_sparklines(screen: Screen, panel: Panel) -> None:
    from breaklab.compare import words
    from breaklab.compare.charts import BROKEN, HEALTHY
    from breaklab.compare.figures import curve_name
    from breaklab.compare.sparkline import bounds, sparkline

    first, last = panel.steps
    heading = _("{key}, step {first} to {last}").format(key=panel.key, first=first, last=last)
    screen.heading(heading)
    scale = bounds(*(points for run in panel.runs for points in run.values()))
    lines = []
    for run, by_rank in zip((HEALTHY, BROKEN), panel.runs, strict=True):
        for rank, points in by_rank.items():
            drawn = sparkline(points, panel.steps, scale, _SPARKLINE_WIDTH, _marks())
            begin, end = (words.number(value) for _step, value in (points[0], points[-1]))
            lines.append((curve_name(run, rank), drawn, f"{begin} -> {end}"))
    widths = [max(len(line[column]) for line in lines) for column in (0, 1)]
    for name, drawn, text in lines:
        screen.line(f"  {name:<{widths[0]}}  {drawn:<{widths[1]}}  {text}")


def _marks() -> str:
    from breaklab.compare.sparkline import ASCII, BLOCKS

    try:
        BLOCKS.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return BLOCKS


def _print_table(screen: Screen, comparison: Comparison, panels: tuple[Panel, ...]) -> None:
    from breaklab.compare.tables import rows, steps_to_show

    end = comparison.broken.last_step
    # What a run did after the other had ended can't be compared with anything.
    every_row = [
        row
        for row in rows(comparison, panels)
        if not comparison.ends_early or end is None or row.step <= end + _STEPS_BEYOND
    ]
    keep = {found.step for found in comparison.partings}
    shown, is_thinned = steps_to_show((row.step for row in every_row), _MAX_STEPS, keep=keep)
    columns = [Column(_("step")), Column(_("rank"))]
    for panel in panels:
        columns += [Column(panel.key), Column(_("broken"), "bad")]
    if comparison.distance:
        columns.append(Column(_("params")))
    columns.append(Column(_("parts"), "bad"))
    screen.table(
        columns,
        [_cells(row, bool(comparison.distance)) for row in every_row if row.step in set(shown)],
    )
    screen.prose(_legend(comparison), "quiet")
    if is_thinned or len(comparison.panels) > len(panels):
        screen.prose(_("Not everything is shown: --json prints all, --html draws all."), "quiet")


def _legend(comparison: Comparison) -> str:
    text = _("Each number is the healthy run's; `broken`, right of it, is the broken run's.")
    if comparison.distance:
        text += " " + _("`params` is how far the parameters are from the healthy run's.")
    return text


def _cells(row: Row, with_distance: bool) -> list[str]:
    from breaklab.compare import words

    cells = [str(row.step), str(row.rank)]
    for pair in row.pairs:
        cells += ["-" if value is None else f"{value:.5g}" for value in pair]
    if with_distance:
        cells.append("-" if row.distance is None else words.percent(row.distance))
    return [*cells, ", ".join(row.parts)]
