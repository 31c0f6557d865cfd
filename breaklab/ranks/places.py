"""Which line of the user's is meant: told from torch's, breaklab's and Python's own frames."""

from __future__ import annotations

import contextlib
import re
import sys
import sysconfig
from pathlib import Path

from breaklab.ranks.jobs import RankWait

_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<name>.*)$', re.MULTILINE)
_OURS = str(Path(__file__).parents[1]) + "/"
_STDLIB = sysconfig.get_path("stdlib") + "/"
_SITE = "/site-packages/"


def is_torchs(file: str) -> bool:
    """Whether a source file belongs to the torch that this process has imported."""
    torch = sys.modules.get("torch")
    folder = str(Path(str(torch.__file__)).parent) + "/" if torch else "/site-packages/torch/"
    return file.startswith(folder)


def is_users(file: str) -> bool:
    """Whether a source file is neither torch's, nor breaklab's, nor the standard library's."""
    if is_torchs(file) or file.startswith((_OURS, "<frozen")):
        return False
    return not file.startswith(_STDLIB) or _SITE in file


def shown_path(file: str) -> str:
    """A path as a person names it: relative to the working directory where that holds it."""
    with contextlib.suppress(ValueError, OSError):
        return str(Path(file).relative_to(Path.cwd()))
    return file


def wait_from_stack(rank: int, stack: str) -> RankWait:
    """Name the user's line and torch's function called on it, from faulthandler's dump.

    Works for a rank that is blocked in C++, computes, or sleeps, and needs no record of its calls.
    """
    operation = ""
    for match in _FRAME.finditer(stack):
        file, name = match["file"], match["name"]
        if is_torchs(file):
            if name != "wrapper":
                operation = name
        elif is_users(file):
            return RankWait(rank, operation, place=f"{shown_path(file)}:{match['line']}")
    return RankWait(rank, operation)
