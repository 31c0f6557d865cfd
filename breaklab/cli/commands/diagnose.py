"""``breaklab diagnose``: where each rank of the last run waited, or which failed first."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from breaklab.cli.lastrun import load_last_run, waits_of
from breaklab.cli.lookup import OpenProject, open_project
from breaklab.cli.notes import note_event
from breaklab.cli.options import examples, json_option
from breaklab.cli.outcomes import outcome_sentence, print_waits
from breaklab.cli.render import Screen
from breaklab.errors import BreaklabError
from breaklab.i18n import _
from breaklab.model import Outcome


def register(app: typer.Typer) -> None:
    """Add ``diagnose`` to the app."""
    app.command(
        "diagnose",
        help=_(
            "Show where the ranks of the last run waited. For a crash: which failed first, and "
            "why. It shows more than run does, so it is recorded as help used."
        ),
        epilog=examples("breaklab diagnose"),
    )(diagnose)


def diagnose(
    ctx: typer.Context,
    json: Annotated[
        bool,
        json_option(
            "bug_id, lab, variant, args[], num_ranks, outcome, summary, details[], exit_code, "
            "interrupted, duration_s, last_step, stall, ends[], waits[]"
        ),
    ] = False,
) -> None:
    """Print the diagnosis of the last run, and record that it was read."""
    screen: Screen = ctx.obj
    opened = open_project(screen)
    run = load_last_run(opened.project)
    if run is None:
        raise BreaklabError(_("no run to diagnose yet"), hint=_("make one: breaklab run"))
    if opened.active:
        note_event(screen, opened.project, "diagnosed", opened.active.bug_id)
    if json:
        screen.json(run)
    else:
        _print(screen, opened, run)


def _print(screen: Screen, opened: OpenProject, run: dict[str, Any]) -> None:
    outcome = Outcome(run["outcome"])
    args = " ".join(run["args"])
    ran = _("The last run: lab {lab}, {num_ranks} ranks {args}")
    screen.line(ran.format(lab=run["lab"], num_ranks=run["num_ranks"], args=args).rstrip(), "quiet")
    screen.prose(outcome_sentence(outcome), "good" if outcome is Outcome.HEALTHY else "bad")
    for sentence in (run["summary"], *run["details"]):
        if sentence:
            screen.prose(sentence, indent=2)
    if outcome is Outcome.STALL:
        print_waits(screen, waits_of(run))
