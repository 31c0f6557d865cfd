"""The one place where exceptions become a message and an exit code."""

from __future__ import annotations

import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

import breaklab
from breaklab.cli.render import Screen
from breaklab.errors import BreaklabError, ExitCode
from breaklab.i18n import _

_BROKEN_PIPE = 141  # what a shell reports for a program that SIGPIPE ended
_USAGE_ERRORS = typer.BadParameter.__mro__[:-3]  # without Exception, BaseException, object


class BreaklabGroup(TyperGroup):
    """The ``breaklab`` command: global options anywhere, and no traceback for anybody."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the global options, wherever before ``--`` they stand."""
        return super().parse_args(ctx, hoist_global_options(args))

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an exception leaves as a message and an exit code."""
        with error_boundary(ctx):
            return super().invoke(ctx)


def hoist_global_options(args: list[str]) -> list[str]:
    """Move ``--lang X`` and ``--no-color`` to the front; what follows ``--`` is not ours."""
    end = args.index("--") if "--" in args else len(args)
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
    except (typer.Exit, typer.Abort, *_USAGE_ERRORS):
        raise
    except Exception as error:
        _report_internal(_screen(ctx), error)
        raise typer.Exit(int(ExitCode.INTERNAL)) from error


def _screen(ctx: Any) -> Screen:
    return ctx.obj if isinstance(ctx.obj, Screen) else Screen()


def _report_internal(screen: Screen, error: Exception) -> None:
    summary = f"{type(error).__name__}: {error}".partition("\n")[0]
    message = _("breaklab itself failed ({summary}). That is a bug in breaklab.").format(
        summary=summary
    )
    try:
        path = write_log(error)
    except OSError:
        traceback.print_exception(error)  # nowhere to write: the screen is all there is
        screen.error(_("Internal error"), message)
        return
    hint = _("Please report it with this log: {path}").format(path=path)
    screen.error(_("Internal error"), message, hint)


def write_log(error: BaseException) -> Path:
    """Write what is needed to find a bug of ours; return the log's path.

    The log goes to ``.breaklab/logs`` of the project, or to the temporary folder where there is no
    project or it can't be written.
    """
    text = "\n".join(
        [
            f"breaklab {breaklab.__version__}, Python {sys.version}",
            f"platform: {sys.platform}",
            f"arguments: {sys.argv[1:]}",
            f"folder: {Path.cwd()}",
            "",
            "".join(traceback.format_exception(error)),
        ]
    )
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    try:
        folder = _log_folder()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / name
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError:
        path = Path(tempfile.gettempdir()) / f"breaklab-{name}"
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    return path


def _log_folder() -> Path:
    from breaklab.spec.project import find_project

    try:
        return find_project(Path.cwd()).state_dir / "logs"
    except BreaklabError:
        return Path(tempfile.gettempdir())
