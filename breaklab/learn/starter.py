"""A fresh workspace for a learner: lab, tests and sealed breaks, from the installed package."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import breaklab
from breaklab.errors import BreaklabError
from breaklab.i18n import _
from breaklab.spec.sealed import seal

_PARTS = ("labs/phase35", "tests/phase35", "breaks")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")
_FILES = Path(__file__).parent / "workspace_files"


@dataclass(frozen=True)
class Started:
    """What was made."""

    root: Path
    num_breaks: int
    has_git: bool  # whether it is a git repository with a first commit


def make_workspace(target: Path, *, sealed: bool = True) -> Started:
    """Make a workspace in ``target``, wholly or not at all.

    Args:
        target: a folder that does not exist or is empty.
        sealed: seal the specs, so that a look at the files spoils nothing.

    Raises:
        BreaklabError: something lies there already, or the package does not hold the lab.
        OSError: a file could not be written; ``target`` is as it was.
    """
    target = target.absolute()
    if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        raise BreaklabError(
            _("{path} exists and is not empty").format(path=target),
            hint=_("choose a new folder: breaklab init my-workspace"),
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix=".breaklab-init-", dir=target.parent, ignore_cleanup_errors=True
    ) as folder:
        root = Path(folder) / "new"
        _copy(_origin(), root)
        specs = sorted((root / "breaks").glob("*.yaml"))
        if sealed:
            for spec in specs:
                text = seal(spec.read_text(encoding="utf-8"), spec.stem)
                spec.write_text(text, encoding="utf-8")
        has_git = _commit(root)
        if target.exists():
            target.rmdir()
        root.rename(target)
    return Started(target, len(specs), has_git)


def _origin() -> Path:
    """Return the folder that holds lab, tests and breaks: in the package, or the repository."""
    package = Path(breaklab.__file__).parent
    for folder in (package / "starter", package.parent):
        if all((folder / part).is_dir() for part in _PARTS):
            return folder
    raise BreaklabError(
        _("this breaklab was installed without its lab"),
        hint=_("install a wheel of it: python -m pip install breaklab"),
    )


def _copy(origin: Path, root: Path) -> None:
    root.mkdir()
    for part in _PARTS:
        shutil.copytree(origin / part, root / part, ignore=_LEFT_OUT)
    for file in _FILES.iterdir():
        name = ".gitignore" if file.name == "gitignore" else file.name
        shutil.copyfile(file, root / name)
    for path in (root, *root.rglob("*")):  # an installed package may be read-only
        path.chmod(path.stat().st_mode | 0o200)


def _commit(root: Path) -> bool:
    """Make the first commit; leave the lab's source out of what git compares."""
    identity = ["-c", "user.name=breaklab", "-c", "user.email=breaklab@localhost"]
    quiet = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TEMPLATE_DIR": ""}
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        quiet.pop(name, None)

    def git(*arguments: str, text: str | None = None) -> str:
        command = ["git", *identity, *arguments]
        done = subprocess.run(
            command, cwd=root, check=True, capture_output=True, text=True, input=text, env=quiet
        )
        return done.stdout

    try:
        git("init", "--quiet", "--initial-branch=main")
        git("add", "--all")
        message = _("A fresh workspace")
        git("commit", "--quiet", "--no-verify", "--no-gpg-sign", "--message", message)
        sources = git("ls-files", "-z", ":(glob)labs/*/src/**")
        git("update-index", "-z", "--skip-worktree", "--stdin", text=sources)
    except (OSError, subprocess.CalledProcessError):
        shutil.rmtree(root / ".git", ignore_errors=True)
        return False
    return True
