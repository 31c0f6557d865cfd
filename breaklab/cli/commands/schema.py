"""``breaklab schema``: what a spec may hold, for editors and other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from breaklab.cli.options import examples
from breaklab.cli.render import Screen
from breaklab.errors import BreaklabError
from breaklab.i18n import _


def register(app: typer.Typer) -> None:
    """Add ``schema`` to the app."""
    app.command(
        "schema",
        short_help=_("Print the JSON schema of specs, for your editor."),
        help=_(
            "Print the JSON schema of specs. Editors with a YAML language server complete and "
            "check a spec whose first line names it."
        ),
        epilog=examples("breaklab schema --write breaks/schema.json"),
    )(schema)


def schema(
    ctx: typer.Context,
    write: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help=_("Write it to a file, or a folder's schema.json.")),
    ] = None,
) -> None:
    """Print the schema, or write it; the same bytes whenever it is made."""
    from breaklab.spec.schema import EDITOR_LINE, spec_schema_text
    from breaklab.tree.atomic import replace_file

    screen: Screen = ctx.obj
    text = spec_schema_text()
    if write is None:
        screen.line(text.rstrip("\n"))
        return
    path = write / "schema.json" if write.is_dir() else write
    if not path.parent.is_dir():
        raise BreaklabError(_("{path} does not exist").format(path=path.parent))
    replace_file(path, text.encode())
    screen.prose(_("Written: {path}").format(path=path), "good")
    screen.prose(_("A spec beside it begins with: {line}").format(line=EDITOR_LINE))
