"""The command line: build the app in the language asked for, then run it.

Commands parse, call and render; each lives in a module of ``breaklab.cli.commands`` and imports
what it works with when it runs, so that ``hint``, ``list`` and ``status`` start fast.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

import breaklab
from breaklab.cli.boundary import BreaklabGroup, own_length
from breaklab.cli.render import Screen
from breaklab.cli.translated import let_libraries_speak
from breaklab.i18n import _, default_language, language, set_language
from breaklab.model import LANGUAGES


def main() -> None:
    """Run the command line on ``sys.argv``; the console script's entry point."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a test may have put something else there
            # A terminal that lacks a letter gets "?", not an exception.
            stream.reconfigure(errors="replace")
    language = requested_language(sys.argv[1:])
    let_libraries_speak(language)
    build_app(language)(prog_name="breaklab")


def requested_language(args: Sequence[str]) -> str:
    """Return the language for help and messages, before the arguments are parsed for real."""
    ours = args[: own_length(args)]
    for index, arg in enumerate(ours):
        value = arg.removeprefix("--lang=") if arg.startswith("--lang=") else ""
        if arg == "--lang" and index + 1 < len(ours):
            value = ours[index + 1]
        if value in LANGUAGES:
            return value
    return default_language()


def build_app(language: str = "en") -> typer.Typer:
    """Return the app with every command, its help in ``language``."""
    set_language(language)
    app = typer.Typer(
        cls=BreaklabGroup,
        name="breaklab",
        help=_(
            "Learn to debug distributed training: one real bug at a time, in a real "
            "data-parallel run."
        ),
        epilog=_exit_codes(),
        no_args_is_help=True,
        options_metavar=_("[OPTIONS]"),
        subcommand_metavar=_("COMMAND [ARGS]..."),
        rich_markup_mode=None,  # plain help: reads well in a pipe, at 80 columns, read aloud
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_global_options)
    return app


def _exit_codes() -> str:
    rows = (
        ("0", _("healthy run, green tests, proven break")),
        ("1", _("a negative verdict: tests red, a promise not met")),
        ("2", _("the command, a spec, the lab or the machine needs your attention")),
        ("3", _("the run stalled")),
        ("4", _("the run crashed")),
        ("5", _("the run diverged, or was wrong or slow")),
        ("70", _("an error of breaklab's own; the message names a log")),
        ("130", _("interrupted")),
    )
    table = "\n".join(f"  {code:<4} {meaning}" for code, meaning in rows)
    start = _("Start with:  breaklab list;  breaklab apply 35-01;  breaklab run")
    return f"{start}\n\n\b\n" + _("Exit codes:") + f"\n{table}"


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"breaklab {breaklab.__version__}")
        raise typer.Exit


def _choose_language(value: str | None) -> str | None:
    if value is not None and value not in LANGUAGES:
        raise typer.BadParameter(
            _("{value!r} is not a language of breaklab; choose from {known}").format(
                value=value, known=", ".join(LANGUAGES)
            )
        )
    return value


def _global_options(
    ctx: typer.Context,
    lang: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(LANGUAGES),
            callback=_choose_language,
            help=_("Language of messages; default: BREAKLAB_LANG, else the locale."),
        ),
    ] = None,
    no_color: Annotated[
        bool, typer.Option("--no-color", help=_("No colours, as with NO_COLOR=1."))
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help=_("Show the version and exit.")
        ),
    ] = False,
) -> None:
    if lang and lang != language():
        set_language(lang)
    ctx.obj = Screen(no_color=no_color)
