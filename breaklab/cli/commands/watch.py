"""``breaklab watch``: the tests again at every save, until they are green."""

from __future__ import annotations

import sys
from contextlib import suppress

import typer

from breaklab.cli.options import Plain, examples
from breaklab.cli.render import Screen
from breaklab.i18n import _


def register(app: typer.Typer) -> None:
    """Add ``watch`` to the app."""
    app.command(
        "watch",
        help=_(
            "Run the tests again at every save, keys for the rest. Looks at the applied break; "
            "keys: h hint, r run, d diagnose, c check, l list, v revert, q quit."
        ),
        epilog=examples("breaklab watch"),
    )(watch)


def watch(ctx: typer.Context, plain: Plain = False) -> None:
    """Watch the applied break, on the whole terminal or, without one, in plain lines."""
    from breaklab.cli.watching import FullScreen, find_watched, watch_plain

    screen: Screen = ctx.obj
    watched = find_watched(screen)
    with suppress(KeyboardInterrupt):  # the usual way to end it
        if plain or not (screen.is_terminal and sys.stdin.isatty()):
            watch_plain(watched)
        else:
            FullScreen(watched).run()
