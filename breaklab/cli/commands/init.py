"""``breaklab init``: a fresh workspace from the installed package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from breaklab.cli.options import examples, json_option
from breaklab.cli.render import Screen
from breaklab.i18n import _, ngettext


def register(app: typer.Typer) -> None:
    """Add ``init`` to the app."""
    app.command(
        "init",
        short_help=_("Make a workspace: lab, tests, breaks, README, git repository."),
        help=_(
            "Make a workspace in a new folder: the lab, its tests, the breaks, a README and a git "
            "repository. The specs are sealed, and git does not compare the lab's source, so that "
            "no look at the files spoils a break."
        ),
        epilog=examples("breaklab init my-workspace", "breaklab init class --open"),
    )(init)


def init(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help=_("A new or empty folder."))],
    unsealed: Annotated[
        bool, typer.Option("--open", help=_("Leave the specs readable, for an instructor."))
    ] = False,
    json: Annotated[bool, json_option("root, num_breaks, sealed, git")] = False,
) -> None:
    """Make the workspace, wholly or not at all, and say what comes next."""
    from breaklab.learn.starter import make_workspace
    from breaklab.tree.atomic import os_errors_told

    screen: Screen = ctx.obj
    with os_errors_told(folder):
        started = make_workspace(folder, sealed=not unsealed)
    if json:
        screen.json(
            {
                "root": str(started.root),
                "num_breaks": started.num_breaks,
                "sealed": not unsealed,
                "git": started.has_git,
            }
        )
        return
    text = ngettext(
        "A workspace with {count} break: {path}",
        "A workspace with {count} breaks: {path}",
        started.num_breaks,
    )
    screen.prose(text.format(count=started.num_breaks, path=started.root), "good")
    if not started.has_git:
        screen.prose(_("It is no git repository: git is missing, or refused."), "quiet")
    screen.line()
    screen.run_next(
        (f"cd {folder}", _("go there")),
        ("breaklab doctor", _("see whether this machine has what ranks need")),
        ("breaklab apply 35-01", _("meet the first break")),
    )
