"""``breaklab unseal``: the YAML of a sealed spec."""

from __future__ import annotations

from typing import Annotated

import typer

from breaklab.cli.complete import complete_bug_id
from breaklab.cli.lookup import open_project
from breaklab.cli.options import examples
from breaklab.cli.render import Screen
from breaklab.i18n import _


def register(app: typer.Typer) -> None:
    """Add ``unseal`` to the app."""
    app.command(
        "unseal",
        short_help=_("Print a sealed spec, answer included; or open it for good."),
        help=_(
            "Print the YAML of a break's spec, answer included. Workspaces made by init hold "
            "sealed specs. With --write the file itself becomes readable."
        ),
        epilog=examples("breaklab unseal 35-01", "breaklab unseal 35-01 --write"),
    )(unseal)


def unseal(
    ctx: typer.Context,
    bug_id: Annotated[
        str,
        typer.Argument(metavar="ID", help=_("The break."), autocompletion=complete_bug_id),
    ],
    write: Annotated[bool, typer.Option("--write", help=_("Write it back, readable."))] = False,
) -> None:
    """Print the text of a spec, or put it in the place of the sealed one."""
    from breaklab.spec.yamltree import read_text
    from breaklab.tree.atomic import replace_file

    screen: Screen = ctx.obj
    spec = open_project(screen).find(bug_id)
    text = read_text(spec.path)
    if not write:
        screen.line(text.rstrip("\n"))
        return
    replace_file(spec.path, text.encode(), keep_mode=True)
    screen.prose(_("Written: {path}").format(path=spec.path), "good")
