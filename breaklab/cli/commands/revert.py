"""``breaklab revert``: take the break out; what the learner wrote is kept or saved."""

from __future__ import annotations

from typing import Annotated

import typer

from breaklab.cli.lookup import open_project
from breaklab.cli.options import examples, json_option
from breaklab.cli.render import Screen
from breaklab.errors import BreaklabError
from breaklab.i18n import _


def register(app: typer.Typer) -> None:
    """Add ``revert`` to the app."""
    app.command(
        "revert",
        help=_(
            "Take the break out. Your other edits stay; where they overlap with the original, "
            "nothing changes until you choose."
        ),
        epilog=examples("breaklab revert", "breaklab revert --discard"),
    )(revert)


def revert(
    ctx: typer.Context,
    keep: Annotated[
        bool, typer.Option("--keep", help=_("End the break and leave the file as you have it."))
    ] = False,
    discard: Annotated[
        bool, typer.Option("--discard", help=_("Put the original back; your version is saved."))
    ] = False,
    json: Annotated[bool, json_option("bug_id, kind, saved, message")] = False,
) -> None:
    """Put the pristine source back and say what became of the learner's edits."""
    from breaklab.tree.workspace import RevertHow, Workspace

    screen: Screen = ctx.obj
    if keep and discard:
        raise BreaklabError(_("--keep and --discard exclude each other"))
    how = RevertHow.KEEP if keep else RevertHow.DISCARD if discard else RevertHow.MERGE
    # Not after open_project's own recovery: where that finished a revert, this one reports it.
    opened = open_project()
    with Workspace.open(opened.project) as workspace:
        if workspace.recovered:
            screen.prose(workspace.recovered, "warn", err=True)
        report = workspace.revert(how)
    if json:
        screen.json(
            {
                "bug_id": None if report.hidden else report.bug_id,
                "kind": report.kind.value,
                "saved": report.saved or None,
                "message": report.message,
            }
        )
        return
    if report.hidden:
        title = _("The mystery break is out.")
    else:
        title = _("Break {bug_id} is out.").format(bug_id=report.bug_id)
    screen.line(title, "good")
    screen.prose(report.message)
