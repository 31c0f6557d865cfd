"""What the tests were at apply, to tell whether a learner's fix left them alone."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from breaklab.model import Lab, Project
from breaklab.tree.record import ActiveBreak

_IGNORED_FOLDERS = ("__pycache__",)
_IGNORED_SUFFIXES = (".pyc", ".pyo", "~")


def digest_tree(root: Path) -> dict[str, str]:
    """Return the SHA-256 of every file under ``root``, by path relative to it.

    Bytecode and what editors and tools leave behind (hidden files and folders) don't count. A
    link counts as the bytes of the file that it leads to, or as the name of the folder.
    """
    digests: dict[str, str] = {}
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if not _ignored(name))
        links = [name for name in names if (Path(folder) / name).is_symlink()]
        for name in sorted([*links, *(name for name in files if not _ignored(name))]):
            path = Path(folder) / name
            digests[path.relative_to(root).as_posix()] = _digest(path)
    return digests


def _ignored(name: str) -> bool:
    return name.startswith(".") or name in _IGNORED_FOLDERS or name.endswith(_IGNORED_SUFFIXES)


def _digest(path: Path) -> str:
    try:
        if stat.S_ISREG(path.stat().st_mode):
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        return f"link:{path.readlink()}" if path.is_symlink() else "special"
    except OSError:
        return "unreadable"  # pytest can't run it either


def tests_digest(project: Project, lab: Lab) -> dict[str, str]:
    """Return the digests of the lab's tests and of each ``conftest.py`` in a folder above them.

    Keys are paths relative to the project's root where they lie inside it.
    """
    tests = lab.tests
    if tests.is_file():
        digests = {_name(project, tests): _digest(tests)}
    else:
        digests = {
            _name(project, tests / path): digest for path, digest in digest_tree(tests).items()
        }
    if not tests.is_relative_to(project.root):
        return digests
    for folder in tests.parents:
        conftest = folder / "conftest.py"
        if conftest.is_file():
            digests[_name(project, conftest)] = _digest(conftest)
        if folder == project.root:
            break
    return digests


def _name(project: Project, path: Path) -> str:
    if path.is_relative_to(project.root):
        return path.relative_to(project.root).as_posix()
    return path.as_posix()


def changed_tests(project: Project, lab: Lab, active: ActiveBreak) -> tuple[str, ...]:
    """Return the test files that were changed, added or removed since apply, sorted."""
    before, after = active.tests_digest, tests_digest(project, lab)
    names = sorted(before.keys() | after.keys())
    return tuple(name for name in names if before.get(name) != after.get(name))
