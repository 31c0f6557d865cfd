"""``breaklab launch``: the ranks of any torch.distributed script, watched for deadlocks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from breaklab.cli.live import live_display
from breaklab.cli.options import Fault, HangTimeout, Launcher, Plain, TotalTimeout, examples
from breaklab.cli.options import json_option as json_keys
from breaklab.cli.outcomes import ends_as_json, exit_code_of, print_judged
from breaklab.cli.render import Screen
from breaklab.errors import ExitCode
from breaklab.i18n import _

_PRELOAD = ("torch", "torch.distributed", "torch.nn.functional", "torch.optim")


def register(app: typer.Typer) -> None:
    """Add ``launch`` to the app."""
    app.command(
        "launch",
        short_help=_("Start and watch any torch.distributed script; no lab needed."),
        help=_(
            "Start and watch the ranks of any torch.distributed script, no lab needed: it sees "
            "torchrun's environment variables, and a deadlock is proven in under a second."
        ),
        epilog=examples(
            "breaklab launch --nproc 4 train.py --epochs 3",
            "breaklab launch --nproc 2 --launcher torchrun train.py",
        ),
        # What follows the script belongs to the script.
        context_settings={"allow_interspersed_args": False},
    )(launch)


def launch(
    ctx: typer.Context,
    script: Annotated[Path, typer.Argument(help=_("A Python file that trains."))],
    args: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGS]...", help=_("The script's arguments."))
    ] = None,
    nproc: Annotated[int, typer.Option(metavar="N", min=1, help=_("How many ranks."))] = 2,
    hang_timeout: HangTimeout = 60.0,
    total_timeout: TotalTimeout = None,
    fault: Fault = "",
    launcher: Launcher = "fork",
    plain: Plain = False,
    json: Annotated[
        bool,
        json_keys(
            "script, args[], num_ranks, outcome, summary, details[], exit_code, duration_s, "
            "last_step, stall, ends[], waits[]"
        ),
    ] = False,
) -> None:
    """Run the script on every rank, show where each waits if they stall, exit with the outcome."""
    from breaklab.ranks.launch import script_job
    from breaklab.ranks.outcome import judge
    from breaklab.ranks.warm import WarmParent

    screen: Screen = ctx.obj
    job = script_job(
        script,
        args=tuple(args or ()),
        num_ranks=nproc,
        hang_timeout_s=hang_timeout,
        total_timeout_s=total_timeout,
        fault=fault,
        launcher=launcher,
    )
    with (
        WarmParent("", _PRELOAD) as warm,
        live_display(screen, job.step_line, None, err=json, plain=plain) as display,
    ):
        report = warm.run_ranks(job, display.line, display.event)
        display.finish(report)
    judged = judge(report, None, None)
    code = exit_code_of(judged.outcome, report)
    if json:
        head = {"script": str(script), "args": list(job.args), "num_ranks": nproc}
        screen.json({**head, **ends_as_json(judged, report, code, diagnose=True)})
    else:
        print_judged(screen, judged, report, diagnose=True)
    if code is not ExitCode.OK:
        raise typer.Exit(int(code))
