"""One page with everything: no network, no script, readable on a phone, aloud, and in the dark.

Jinja2 fills the page and escapes every text, since specs and training output may come from a
stranger. All words are translated here, so the template holds only structure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import breaklab
from breaklab.compare import words
from breaklab.compare.charts import BROKEN, HEALTHY
from breaklab.compare.comparison import Comparison, Side
from breaklab.compare.figures import curve_name, figures
from breaklab.compare.lanes import ROW_HEIGHT, Layout, lay_out, operations
from breaklab.compare.timeline import Collective, Timeline
from breaklab.errors import BreaklabError
from breaklab.i18n import _, language
from breaklab.model import Outcome

_TEMPLATES = Path(__file__).parent / "templates"
_SHAPES = {HEALTHY: "○□◇▽△✚✖☆", BROKEN: "●■◆▼▲✚✖★"}  # as the charts' marks


@dataclass(frozen=True)
class PageTexts:
    """What the page says besides the comparison, in the language in force."""

    symptom: str  # ``""`` for none
    outcome_word: Callable[[Outcome], str]
    no_timeline: str = ""  # why there is none


def require_libraries() -> None:
    """Refuse to go on without what a page needs, before two runs were made for nothing.

    Raises:
        BreaklabError: Jinja2 or matplotlib is not installed.
    """
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise BreaklabError(
            _("the page needs {module}, which is not installed").format(module=error.name),
            hint=_("install it: pip install 'breaklab[report]'"),
        ) from error


def render_page(comparison: Comparison, timelines: Sequence[Timeline], texts: PageTexts) -> str:
    """Return the page as HTML.

    Args:
        comparison: the two runs.
        timelines: what their ranks communicated, the healthy run's first; empty: not known.
        texts: what else to say.

    Raises:
        BreaklabError: Jinja2 or matplotlib is not installed.
    """
    require_libraries()
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    layouts = lay_out(timelines)
    return environment.get_template("page.html.j2").render(
        language=language(),
        text=_headings(comparison),
        facts=_facts(comparison, texts),
        headline=words.headline(comparison),
        ending=words.ending(comparison),
        sides=[
            _side(HEALTHY, _("Healthy run"), comparison.healthy, texts),
            _side(BROKEN, _("Broken run"), comparison.broken, texts),
        ],
        legend=_legend(comparison),
        figures=figures(comparison),
        layouts=layouts,
        operations=operations(layouts),
        no_timeline=texts.no_timeline,
        rank_name=lambda rank: _("rank {rank}").format(rank=rank),
        about_lane=_about_lane,
        about=about,
        milliseconds=milliseconds,
        left_out=_left_out,
        took=took,
        row_height=ROW_HEIGHT,
    )


def _headings(comparison: Comparison) -> dict[str, str]:
    subject = comparison.subject
    return {
        "title": _("{what}: healthy and broken, side by side").format(
            what=subject.bug_id or _("a mystery break")
        ),
        "summary": _("What became of the runs"),
        "curves": _("Curves"),
        "no_curves": _("The lab's manifest declares no numbers to compare (`metrics`)."),
        "legend": _("Legend"),
        "table": _("Show the numbers as a table"),
        "step": _("step"),
        "parts_here": _("the runs part here"),
        "timeline": _("Timeline of collectives"),
        "timeline_note": _(
            "Time runs to the right, in milliseconds since the run's first operation, on the same "
            "scale for both runs; scroll sideways for the rest. What never returned is striped, "
            "up to the edge."
        ),
        "operations_table": _("Show the operations as a table"),
        "rank": _("rank"),
        "number": _("number"),
        "operation": _("operation"),
        "group": _("group"),
        "shape": _("shape"),
        "dtype": _("dtype"),
        "peer": _("peer"),
        "entered": _("entered, ms"),
        "took": _("took, ms"),
        "source": _("source line"),
        "never": _("never returned"),
        "made_by": _("Made by breaklab {version} from two real runs.").format(
            version=breaklab.__version__
        ),
    }


def _facts(comparison: Comparison, texts: PageTexts) -> list[tuple[str, str]]:
    subject = comparison.subject
    facts = [
        (_("symptom"), texts.symptom),
        (_("lab"), subject.lab),
        (_("variant"), subject.variant),
        (_("arguments"), " ".join(subject.args)),
        (_("ranks"), str(subject.num_ranks)),
        (_("broken source"), _("your tree as it stands") if subject.as_it_stands else ""),
    ]
    return [(name, value) for name, value in facts if value]


def _side(run: str, title: str, side: Side, texts: PageTexts) -> dict[str, Any]:
    report, judged = side.report, side.judged
    reached = "?" if report.last_step is None else str(report.last_step)
    return {
        "run": run,
        "title": title,
        "outcome": texts.outcome_word(judged.outcome),
        "is_good": judged.outcome is Outcome.HEALTHY,
        "summary": judged.summary,
        "details": judged.details,
        "facts": [
            (_("last step reached"), reached),
            (_("duration"), _("{seconds:.2f} s").format(seconds=report.duration_s)),
        ],
    }


def _legend(comparison: Comparison) -> list[dict[str, str]]:
    ranks = sorted({rank for panel in comparison.panels for run in panel.runs for rank in run})
    return [
        {"run": run, "shape": _SHAPES[run][rank % len(_SHAPES[run])], "name": curve_name(run, rank)}
        for run in (HEALTHY, BROKEN)
        for rank in ranks
    ]


def milliseconds(seconds: float) -> str:
    """Return a time in milliseconds, as finely as three significant digits need."""
    value = 1000 * seconds
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def about(collective: Collective) -> str:
    """Say all that is known of an operation, in one sentence for who points at it."""
    number = "" if collective.sequence is None else f" #{collective.sequence}"
    parts = [f"{collective.operation}{number}", collective.shape, collective.dtype]
    if collective.peer is not None:
        parts.append(_("peer {rank}").format(rank=collective.peer))
    if collective.left_s is None:
        parts.append(_("never returned"))
    elif not collective.has_end:
        parts.append(_("never waited for"))
    else:
        took_s = collective.left_s - collective.entered_s
        parts.append(_("{time} ms").format(time=milliseconds(took_s)))
    parts.append(collective.place)
    return ", ".join(part for part in parts if part)


def _about_lane(layout: Layout, rank: int) -> str:
    bars = layout.lanes[rank].bars
    num_waiting = sum(bar.collective.left_s is None for bar in bars)
    text = _("rank {rank}: {count} operations, {waiting} of them never returned")
    return text.format(rank=rank, count=len(bars), waiting=num_waiting)


def took(collective: Collective) -> str:
    """Return how long an operation took, in milliseconds, or why that is not known."""
    if collective.left_s is None:
        return _("never returned")
    if not collective.has_end:
        return _("never waited for")
    return milliseconds(collective.left_s - collective.entered_s)


def _left_out(layout: Layout) -> str:
    notes = []
    if layout.num_left_out:
        text = _("{count} earlier operations are not shown; compare --trace writes all.")
        notes.append(text.format(count=layout.num_left_out))
    if layout.timeline.num_left_out:
        text = _("{count} operations came too fast to be recorded.")
        notes.append(text.format(count=layout.timeline.num_left_out))
    return " ".join(notes)
