"""``breaklab compare``: the healthy and the broken run side by side."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from breaklab.cli.complete import complete_bug_id, complete_variant
from breaklab.cli.lookup import OpenProject, open_project
from breaklab.cli.notes import note_event
from breaklab.cli.outcomes import outcome_word
from breaklab.cli.render import Screen
from breaklab.cli.variants import find_variant
from breaklab.errors import BreaklabError
from breaklab.i18n import _, language
from breaklab.model import BreakSpec

if TYPE_CHECKING:
    from breaklab.compare.comparison import Comparison
    from breaklab.compare.runs import Plan


def register(app: typer.Typer) -> None:
    """Add ``compare`` to the app."""
    app.command(
        "compare",
        short_help=_("Run the healthy and the broken lab side by side."),
        help=_(
            "Run the healthy and the broken lab with the same arguments, on scratch copies, and "
            "show where they part. It shows more than run does, so it is recorded as help used."
        ),
        epilog="\b\n"
        + _("Examples:")
        + "\n  breaklab compare 35-01"
        + "\n  breaklab compare --variant silent --html out.html --trace out.json",
    )(compare)


def compare(
    ctx: typer.Context,
    bug_id: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]",
            help=_("The break; default: the applied one, your edits included."),
            autocompletion=complete_bug_id,
        ),
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=_("Another variant than the break's first."),
            autocompletion=complete_variant,
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help=_("Write a page with curves and a timeline.")),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help=_("Write the timeline for Perfetto (Chrome trace).")),
    ] = None,
    hang_timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.1, help=_("Silent for so long counts as a stall.")),
    ] = 15.0,
    json: Annotated[
        bool,
        typer.Option(
            "--json",
            help=_(
                "Print JSON: bug_id, lab, variant, args[], num_ranks, summary, parted, partings[], "
                "healthy, broken, keys[], rows[]."
            ),
        ),
    ] = False,
) -> None:
    """Run both, print the comparison, write what was asked for; exit 0 however they compare."""
    from breaklab.cli.comparisons import print_comparison
    from breaklab.compare.document import as_json
    from breaklab.compare.page import require_libraries
    from breaklab.compare.runs import run_both
    from breaklab.ranks.launch import warm_parent

    screen: Screen = ctx.obj
    opened = open_project(screen)
    spec = opened.spec(bug_id)
    for path in (html, trace):
        if path is not None:
            _require_folder(path)
    if html is not None:
        require_libraries()
    plan = _plan(opened, spec, bug_id, variant, hang_timeout)
    with warm_parent(plan.lab) as warm:
        comparison = run_both(plan, warm, lambda text: screen.line(text, "quiet", err=True))
    outcome = comparison.broken.judged.outcome.value
    data = {"variant": plan.subject.variant, "outcome": outcome}
    note_event(screen, opened.project, "compare", spec.bug_id, **data)
    if json:
        screen.json(as_json(comparison))
    else:
        print_comparison(screen, comparison)
    _write_files(screen, comparison, spec, html, trace)


def _plan(
    opened: OpenProject, spec: BreakSpec, bug_id: str | None, variant: str | None, hang_s: float
) -> Plan:
    from breaklab.compare.comparison import Subject
    from breaklab.compare.runs import Plan

    lab = opened.lab_of(spec)
    promise = find_variant(spec, variant)
    active = opened.active
    # Who names the break that a mystery happens to be must not learn from the answer that it is.
    as_it_stands = (
        active is not None
        and active.bug_id == spec.bug_id
        and not (opened.hides_name and bug_id is not None)
    )
    healthy = {}
    if active is not None and (opened.project.root / active.file).is_relative_to(lab.source):
        healthy[active.file] = active.pristine
    subject = Subject(
        bug_id="" if opened.hides_name and as_it_stands else spec.bug_id,
        lab=lab.name,
        variant=promise.variant if promise else "",
        args=promise.args if promise else (),
        num_ranks=(promise.num_ranks if promise else None) or lab.entrypoint.num_ranks,
        as_it_stands=as_it_stands,
    )
    broken = {} if as_it_stands else _injected(opened, spec, healthy)
    fault = promise.fault if promise else ""
    return Plan(opened.project, lab, subject, healthy, broken, fault, hang_s)


def _injected(opened: OpenProject, spec: BreakSpec, pristine: dict[str, bytes]) -> dict[str, bytes]:
    """Return what differs from the learner's tree in a scratch copy with ``spec`` applied."""
    from breaklab.inject.edit import inject

    path = opened.lab_of(spec).root / spec.inject.file
    file = path.resolve().relative_to(opened.project.root.resolve()).as_posix()
    try:
        source = pristine[file] if file in pristine else path.read_bytes()
    except OSError as error:
        raise BreaklabError(
            _("{file} can't be read: {reason}").format(file=file, reason=error.strerror)
        ) from error
    return {**pristine, file: inject(source, spec.inject, path=spec.inject.file).source}


def _require_folder(path: Path) -> None:
    """Refuse before two runs were made for nothing."""
    if not path.absolute().parent.is_dir() or path.is_dir():
        raise BreaklabError(
            _("{path} can't be written: there is no such folder, or it is one").format(path=path)
        )


def _write_files(
    screen: Screen, comparison: Comparison, spec: BreakSpec, html: Path | None, trace: Path | None
) -> None:
    from breaklab.compare.page import PageTexts, render_page
    from breaklab.compare.recorded import timelines_of
    from breaklab.compare.trace import chrome_trace

    timelines = timelines_of(comparison)
    nothing = _("No communication was recorded: these ranks called no collective of torch's.")
    if html is not None:
        is_hidden = not comparison.subject.bug_id  # its symptom would give its name away
        symptom = "" if is_hidden else spec.symptom.get(language())
        texts = PageTexts(symptom, outcome_word, nothing)
        _write(screen, html, render_page(comparison, timelines, texts))
    if trace is not None:
        if not timelines:
            screen.prose(nothing, "warn", err=True)
        _write(screen, trace, dumps(chrome_trace(timelines), indent=1))


def _write(screen: Screen, path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BreaklabError(
            _("{path} can't be written: {reason}").format(path=path, reason=error.strerror)
        ) from error
    screen.line(_("wrote {path}").format(path=path), "quiet", err=True)
