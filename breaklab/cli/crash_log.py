"""An error of breaklab's own: a log for whoever fixes it, one message for whoever met it."""

from __future__ import annotations

import os
import sys
import tempfile
import time
import traceback
from pathlib import Path

import breaklab
from breaklab.cli.render import Screen
from breaklab.errors import BreaklabError
from breaklab.i18n import _


def report_internal(screen: Screen, error: Exception) -> None:
    """Say that breaklab failed and where the log of it is."""
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

    Raises:
        OSError: neither can be written.
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
        folder.mkdir(exist_ok=True)
        path = folder / name
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError:
        path = Path(tempfile.gettempdir()) / f"breaklab-{name}"
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    return path


def _log_folder() -> Path:
    from breaklab.spec.project import find_project
    from breaklab.tree.state import prepare_state_dir

    try:
        project = find_project(Path.cwd())
    except BreaklabError:
        return Path(tempfile.gettempdir())
    prepare_state_dir(project)
    return project.state_dir / "logs"
