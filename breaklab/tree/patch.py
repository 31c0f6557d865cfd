"""Apply a diff with git, in a folder that is no repository."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def git_apply(folder: Path, diff: str, *options: str) -> subprocess.CompletedProcess[bytes]:
    """Run ``git apply`` on the files below ``folder``; the caller looks at the exit code.

    Args:
        folder: what the paths of the diff are relative to.
        diff: a unified diff.
        options: more of git's, such as ``--reverse``.

    Raises:
        FileNotFoundError: git is not installed.
    """
    return subprocess.run(
        ["git", "apply", *options, "--whitespace=nowarn", "-"],
        cwd=folder,
        input=diff.encode(),
        capture_output=True,
        check=False,
        # The folder is no repository: git must not find one further up.
        env={
            "GIT_CEILING_DIRECTORIES": str(folder.parent),
            "PATH": os.environ.get("PATH", os.defpath),
        },
    )
