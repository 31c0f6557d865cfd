"""``breaklab progress``: what a learner did with each break; for instructors, a whole class."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from breaklab.cli.lookup import OpenProject, open_project
from breaklab.cli.options import examples, json_option
from breaklab.cli.render import Column, Screen
from breaklab.i18n import _
from breaklab.learn.progress import State, state_label
from breaklab.learn.tally import MYSTERY, Tally, hide_mysteries, tally_all
from breaklab.learn.who import learner_name
from breaklab.tree.events import read_events


def register(app: typer.Typer) -> None:
    """Add ``progress`` to the app."""
    app.command(
        "progress",
        help=_("Show what you did with each break: time, runs, hints."),
        epilog=examples(
            "breaklab progress --json > ada.json", "breaklab progress --merge ada.json grace.json"
        ),
    )(progress)


def progress(
    ctx: typer.Context,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]...", help=_("With --merge: what progress --json printed.")),
    ] = None,
    merge: Annotated[
        bool,
        typer.Option("--merge", help=_("One table of many learners: where a class gets stuck.")),
    ] = False,
    json: Annotated[
        bool,
        json_option(
            "learner, breaks[] {bug_id, state, minutes, runs, tests, checks, hints[], diagnoses, "
            "applied_at, solved_at}; with --merge: learners[], breaks[] {bug_id, learners, "
            "solved, given_up, median_minutes, median_hints}"
        ),
    ] = False,
) -> None:
    """Print one learner's progress, or with ``--merge`` that of many."""
    screen: Screen = ctx.obj
    if merge:
        _merge(screen, files or [], json=json)
        return
    if files:
        raise typer.BadParameter(_("files need --merge"))
    opened = open_project(screen)
    tallies = _tallies(opened)
    if json:
        name = learner_name(opened.project.root)
        screen.json({"learner": name, "breaks": [_as_json(tally) for tally in tallies]})
    else:
        _print(screen, tallies)


def _tallies(opened: OpenProject) -> list[Tally]:
    events = hide_mysteries(read_events(opened.project))
    active = opened.active
    applied = None
    if active is not None and not active.solved:
        applied = MYSTERY if opened.hides_name else active.bug_id
    return tally_all(events, sorted(opened.catalogue.specs), applied)


def _as_json(tally: Tally) -> dict[str, Any]:
    return {
        "bug_id": tally.bug_id or None,
        "state": tally.state.value,
        "minutes": round(tally.active_s / 60, 1),
        "runs": tally.runs,
        "tests": tally.tests,
        "checks": tally.checks,
        "hints": list(tally.hints),
        "diagnoses": tally.diagnoses,
        "applied_at": tally.applied_at,
        "solved_at": tally.solved_at,
    }


def _print(screen: Screen, tallies: list[Tally]) -> None:
    met = [tally for tally in tallies if tally.applied_at or tally.state is not State.OPEN]
    if met:
        headings = (_("ID"), _("STATE"), _("MINUTES"), _("RUNS"), _("HINTS"), _("DIAGNOSES"))
        rows = [
            (
                tally.bug_id or _("mystery"),
                state_label(tally.state),
                f"{tally.active_s / 60:.0f}",
                str(tally.runs),
                ", ".join(map(str, tally.hints)) or "-",
                str(tally.diagnoses),
            )
            for tally in met
        ]
        screen.table([Column(heading) for heading in headings], rows)
        screen.line()
    states = [tally.state for tally in tallies if tally.bug_id != MYSTERY]
    screen.prose(
        _("{solved} of {total} breaks solved, {given_up} given up").format(
            solved=states.count(State.SOLVED),
            total=len(states),
            given_up=states.count(State.GIVEN_UP),
        )
    )


def _merge(screen: Screen, files: list[Path], *, json: bool) -> None:
    from breaklab.learn.cohort import merge_progress, read_progress

    if not files:
        raise typer.BadParameter(_("--merge needs at least one file"))
    documents = read_progress(files)
    rows = merge_progress(documents)
    if json:
        learners = [document.get("learner") for document in documents]
        screen.json({"learners": learners, "breaks": [asdict(row) for row in rows]})
        return
    headings = (_("ID"), _("MET BY"), _("SOLVED"), _("GIVEN UP"), _("MINUTES"), _("HINTS"))
    screen.table(
        [Column(heading) for heading in headings],
        [
            (
                row.bug_id,
                str(row.learners),
                str(row.solved),
                str(row.given_up),
                "-" if row.median_minutes is None else f"{row.median_minutes:.0f}",
                "-" if row.median_hints is None else f"{row.median_hints:g}",
            )
            for row in rows
        ],
    )
    screen.line()
    text = _("{learners} learners; minutes and hints are medians; the least solved come first")
    screen.prose(text.format(learners=len(documents)))
