"""typer's own words in the language of the rest: titles of help, usage lines, built-in options."""

from __future__ import annotations

import gettext
import os
from typing import Any

import typer
from typer.core import TyperCommand

from breaklab.i18n import LOCALE_DIR, _


def let_libraries_speak(language: str) -> None:
    """Give typer, and every process that we start, the language; for this whole process.

    typer asks gettext's default domain, so that becomes ours; it must happen before typer is asked
    for anything.
    """
    gettext.bindtextdomain("breaklab", str(LOCALE_DIR))
    gettext.textdomain("breaklab")
    os.environ["LANGUAGE"] = language
    os.environ["BREAKLAB_LANG"] = language


def library_words() -> tuple[str, ...]:
    """Return what typer translates itself; here so that our catalogue holds it."""
    return (
        _("Aborted!"),
        _("Arguments"),
        _("Commands"),
        _("Missing command."),
        _("No such command {name!r}."),
        _("Options"),
        _("default: {default}"),
        _("required"),
    )


class TranslatedCommand(TyperCommand):
    """A command whose help is in the language in force throughout."""

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        """Write the usage line."""
        write_usage(self, ctx, formatter)

    def get_help_option(self, ctx: Any) -> Any:
        """Return ``--help``."""
        return translate_help(super().get_help_option(ctx))


class TranslatedTyper(typer.Typer):
    """An app whose commands are translated."""

    def command(self, name: str | None = None, **settings: Any) -> Any:
        """Register a command, as typer does."""
        settings.setdefault("cls", TranslatedCommand)
        settings.setdefault("options_metavar", _("[OPTIONS]"))
        return super().command(name, **settings)


def write_usage(command: Any, ctx: Any, formatter: Any) -> None:
    """Write a usage line that begins with our word for it."""
    pieces = " ".join(command.collect_usage_pieces(ctx))
    formatter.write_usage(ctx.command_path, pieces, prefix=_("Usage: "))


def translate_help(option: Any) -> Any:
    """Give a ``--help`` option its text in the language in force."""
    if option is not None:
        option.help = _("Show this message and exit.")
    return option


def translate_completion(params: list[Any]) -> list[Any]:
    """Give typer's completion options their text in the language in force."""
    texts = {
        "install_completion": _("Install completion for the current shell."),
        "show_completion": _("Show completion for the current shell, to copy it."),
    }
    for param in params:
        if param.name in texts:
            param.help = texts[param.name]
    return params
