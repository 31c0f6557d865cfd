"""The one place where exceptions become a message and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from breaklab.cli.commands import MODULES, register
from breaklab.cli.render import Screen
from breaklab.cli.translated import (
    TranslatedTyper,
    translate_completion,
    translate_help,
    write_usage,
)
from breaklab.errors import BreaklabError, ExitCode
from breaklab.i18n import _

_TAKES_THE_REST = ("launch",)
_BROKEN_PIPE = 141  # what a shell reports for a program that SIGPIPE ended
_TYPERS_OWN: tuple[type[Exception], ...] = (
    typer.Exit,
    typer.Abort,
    *typer.BadParameter.__mro__[:-3],  # usage errors; without Exception, BaseException, object
)


class BreaklabGroup(TyperGroup):
    """The ``breaklab`` command: global options anywhere, and no traceback for anybody.

    A command's module is imported when that command is asked for: importing all of them takes
    longer than most commands run.
    """

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        """Write the usage line."""
        write_usage(self, ctx, formatter)

    def get_help_option(self, ctx: Any) -> Any:
        """Return ``--help``."""
        return translate_help(super().get_help_option(ctx))

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the global options."""
        return translate_completion(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, in the order a learner meets them."""
        return [*MODULES, *(name for name in self.commands if name not in MODULES)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, importing its module at the first call."""
        if cmd_name in MODULES and cmd_name not in self.commands:
            app = TranslatedTyper(rich_markup_mode=None, add_completion=False)
            register(app, cmd_name)
            self.commands[cmd_name] = get_command(app)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; for one that doesn't exist, typer suggests from those it has seen."""
        if args and args[0] not in MODULES:
            for name in MODULES:
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the global options, wherever before ``--`` they stand."""
        return super().parse_args(ctx, hoist_global_options(args))

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an exception leaves as a message and an exit code."""
        with error_boundary(ctx):
            return super().invoke(ctx)


def own_length(args: Sequence[str]) -> int:
    """Return how many of ``args`` are breaklab's to read: what follows ``--`` is a training's.

    What follows ``launch`` is left to that command: a script's options may be called like ours.
    """
    ends = [args.index(word) for word in ("--", *_TAKES_THE_REST) if word in args]
    return min(ends, default=len(args))


def hoist_global_options(args: list[str]) -> list[str]:
    """Move ``--lang X`` and ``--no-color`` to the front, from wherever they may stand."""
    end = own_length(args)
    front: list[str] = []
    rest: list[str] = []
    index = 0
    while index < end:
        arg = args[index]
        if arg == "--lang" and index + 1 < end:
            front += args[index : index + 2]
            index += 1
        elif arg == "--no-color" or arg.startswith("--lang="):
            front.append(arg)
        else:
            rest.append(arg)
        index += 1
    return front + rest + args[end:]


@contextmanager
def error_boundary(ctx: Any) -> Iterator[None]:
    """Turn what escapes a command into one clear message and its documented exit code."""
    try:
        yield
    except BreaklabError as error:
        _screen(ctx).error(_("Error"), error.message, error.hint)
        raise typer.Exit(int(error.exit_code)) from error
    except KeyboardInterrupt:
        _screen(ctx).line(_("Interrupted."), err=True)
        raise typer.Exit(int(ExitCode.INTERRUPTED)) from None
    except BrokenPipeError:
        # Whoever read our output has seen enough. Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(_BROKEN_PIPE) from None
    except _TYPERS_OWN:
        raise
    except Exception as error:
        from breaklab.cli.crash_log import report_internal

        report_internal(_screen(ctx), error)
        raise typer.Exit(int(ExitCode.INTERNAL)) from error


def _screen(ctx: Any) -> Screen:
    return ctx.obj if isinstance(ctx.obj, Screen) else Screen()
