"""Who the learner is: a name for their journal and their progress."""

from __future__ import annotations

import getpass
import os
import re
import subprocess
from pathlib import Path

_NOT_IN_A_NAME = re.compile(r"[^\w.-]+")


def learner_name(folder: Path) -> str:
    """Return the name from BREAKLAB_LEARNER, else from git, else the user's; safe in a path."""
    for name in (os.environ.get("BREAKLAB_LEARNER", ""), _git_name(folder), _user_name()):
        safe = as_folder_name(name)
        if safe:
            return safe
    return "learner"


def as_folder_name(name: str) -> str:
    """Return ``name`` as a lower-case name of one folder: ``Ada Lovelace`` is ``ada-lovelace``."""
    return _NOT_IN_A_NAME.sub("-", name.strip().lower()).strip("-.")


def _git_name(folder: Path) -> str:
    try:
        done = subprocess.run(
            ["git", "config", "user.name"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=5,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
