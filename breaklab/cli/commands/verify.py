"""``breaklab verify``: prove breaks on scratch copies, several at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from breaklab.cli.complete import complete_bug_id_or_file
from breaklab.cli.lookup import open_project
from breaklab.cli.options import Jobs, Trust, examples, json_option
from breaklab.cli.proofs import print_proof, print_summary, write_junit
from breaklab.cli.proving import Wanted, prove_wanted
from breaklab.cli.render import Screen
from breaklab.errors import BreaklabError, ExitCode
from breaklab.i18n import _

_KEYS = (
    "format, proven, bug_ids[], missing[], proofs[] {bug_id, proven, seconds, checks[], phases[], "
    "red[]}, broken[], shards[] {number, of, jobs, seconds, controls_s}, repeat, seconds, "
    "controls_s, seconds_per_break"
)


def register(app: typer.Typer) -> None:
    """Add ``verify`` to the app."""
    app.command(
        "verify",
        help=_(
            "Prove breaks on scratch copies; your tree is not changed. A proof is: green, apply, "
            "red as promised, each variant's outcome, the fix, revert, green again."
        ),
        epilog=examples(
            "breaklab verify 35-01 --repeat 10",
            "breaklab verify --all --jobs 4 --junit proofs.xml",
            "breaklab verify --shard 2/5 --json > part-2.json",
            "breaklab verify --merge part-*.json --junit proofs.xml",
        ),
    )(verify)


def verify(
    ctx: typer.Context,
    bug_ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...",
            help=_("Which breaks; default: the applied one, else all. With --merge: reports."),
            autocompletion=complete_bug_id_or_file,
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help=_("All breaks, also with one applied."))
    ] = False,
    jobs: Jobs = 2,
    repeat: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help=_("Run red tests and variants N times; each must be the same.")
        ),
    ] = 1,
    shard: Annotated[
        str, typer.Option(metavar="K/N", help=_("Only the Kth of N parts, for as many machines."))
    ] = "",
    merge: Annotated[
        bool, typer.Option("--merge", help=_("Prove nothing; make one report of those of shards."))
    ] = False,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help=_("Write the report for CI, too."))
    ] = None,
    trust: Trust = False,
    json: Annotated[bool, json_option(_KEYS)] = False,
) -> None:
    """Prove each break and print each verdict as it comes; exit 1 when one isn't proven."""
    screen: Screen = ctx.obj
    if junit is not None and not junit.absolute().parent.is_dir():
        raise BreaklabError(_("{path} does not exist").format(path=junit.parent))
    if merge:
        from breaklab.prove.report import merge_reports

        if not bug_ids:
            raise typer.BadParameter(_("--merge needs at least one file"))
        report = merge_reports([Path(name) for name in bug_ids])
        for row in report["proofs"]:
            if not json:
                print_proof(screen, row)
    else:
        opened = open_project(screen, trust=trust)
        wanted = Wanted(bug_ids or [], everything, shard, jobs, repeat)
        report = prove_wanted(screen, opened, wanted, quiet=json)
    if junit is not None:
        write_junit(report, junit)
    if json:
        screen.json(report)
    else:
        print_summary(screen, report)
    if not report["proven"]:
        raise typer.Exit(int(ExitCode.NEGATIVE))
