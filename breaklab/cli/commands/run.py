"""``breaklab run``: real ranks of the lab, live, and what became of them."""

from __future__ import annotations

from typing import Annotated

import typer

from breaklab.cli.lastrun import save_last_run
from breaklab.cli.live import live_display
from breaklab.cli.lookup import open_project
from breaklab.cli.options import (
    Diagnose,
    Fault,
    HangTimeout,
    Launcher,
    Plain,
    TotalTimeout,
    TrainingArgs,
    Variant,
    examples,
    json_option,
)
from breaklab.cli.outcomes import exit_code_of, print_outcome, run_as_json
from breaklab.cli.render import Screen
from breaklab.cli.requests import (
    HowToRun,
    complete_request,
    judge_run,
    record_run,
    references_for,
    run_request,
)
from breaklab.errors import ExitCode
from breaklab.i18n import _


def register(app: typer.Typer) -> None:
    """Add ``run`` to the app."""
    app.command(
        "run",
        help=_(
            "Train on real ranks and say what became of it. With a break applied, the way its "
            "first variant does; with none, the healthy lab."
        ),
        epilog=examples(
            "breaklab run --variant silent",
            "breaklab run --hang-timeout 10 --num-ranks 4 -- --sync bucket",
        ),
    )(run)


def run(
    ctx: typer.Context,
    training_args: TrainingArgs = None,
    variant: Variant = None,
    hang_timeout: HangTimeout = 60.0,
    total_timeout: TotalTimeout = None,
    num_ranks: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help=_("How many ranks; default: the variant's.")),
    ] = None,
    fault: Fault = "",
    launcher: Launcher = "fork",
    diagnose: Diagnose = False,
    plain: Plain = False,
    json: Annotated[
        bool,
        json_option(
            "bug_id, lab, variant, args[], num_ranks, outcome, summary, details[], exit_code, "
            "interrupted, duration_s, last_step, stall, ends[], waits[]"
        ),
    ] = False,
) -> None:
    """Run the lab, print its lines live, judge the outcome, exit with its code."""
    from breaklab.ranks.launch import warm_parent

    screen: Screen = ctx.obj
    opened = open_project(screen)
    how = HowToRun(hang_timeout, total_timeout, fault, launcher)
    request = complete_request(opened, variant, tuple(training_args or ()), num_ranks, how)
    references = references_for(opened, request)
    healthy = references.known(request.args, request.num_ranks) if references else None
    last_step = healthy.last_step if healthy else None
    step_line = request.lab.step_line
    with warm_parent(request.lab) as warm:
        with live_display(screen, step_line, last_step, err=json, plain=plain) as display:
            report = run_request(
                request, warm, references, on_line=display.line, on_event=display.event
            )
            display.finish(report)
        judged = judge_run(
            request,
            report,
            references,
            warm,
            on_reference=lambda: screen.line(
                _("comparing with a healthy run ..."), "quiet", err=True
            ),
        )
    code = exit_code_of(judged.outcome, report)
    record_run(screen, opened, request, judged, report, diagnosed=diagnose)
    save_last_run(opened.project, run_as_json(request, judged, report, code, diagnose=True))
    if json:
        screen.json(run_as_json(request, judged, report, code, diagnose=diagnose))
    else:
        print_outcome(screen, request, judged, report, diagnose=diagnose)
    if code is not ExitCode.OK:
        raise typer.Exit(int(code))
