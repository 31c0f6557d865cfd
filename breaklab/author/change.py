"""The change that an instructor made in a lab's source, as git sees it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from breaklab.errors import ProjectError
from breaklab.i18n import _
from breaklab.inject.derive import Derived, derive
from breaklab.inject.diff import fix_diff
from breaklab.inject.edit import inject
from breaklab.model import Lab, Project
from breaklab.spec.project import lab_named, load_labs
from breaklab.tree.atomic import mode_of, os_errors_told
from breaklab.tree.lock import tree_lock
from breaklab.tree.saved import save_copy
from breaklab.tree.source import write_source
from breaklab.tree.state import prepare_state_dir
from breaklab.tree.workspace import read_active


@dataclass(frozen=True)
class Change:
    """One changed file of a lab's source, before and after."""

    lab: Lab
    path: Path  # absolute
    pristine: bytes  # as git has it
    broken: bytes  # as it is now

    @property
    def file(self) -> str:
        """The file, relative to the lab's root, as a spec names it."""
        return self.path.relative_to(self.lab.root.resolve()).as_posix()


@dataclass(frozen=True)
class Derivation:
    """What a spec says about a change.

    Attributes:
        derived: the pattern, and whether it gives every byte of the change.
        fix_diff: the way back.
        broken: the source with the pattern's break in it.
    """

    derived: Derived
    fix_diff: str
    broken: bytes


def change_in_tree(project: Project, lab: str = "") -> Change:
    """Return the only file of the labs' sources that differs from git's last commit.

    Args:
        project: whose labs to look at.
        lab: the name of the one to look at; default: all.

    Raises:
        ProjectError: there is no such lab; a break is applied; there is no git repository, no
            change, or more than one changed file.
    """
    if read_active(project):
        raise ProjectError(
            _("a break is applied; its change is not yours"), hint=_("first: breaklab revert")
        )
    labs = [lab_named(project, lab)] if lab else load_labs(project)
    changed = [path for path in _changed_files(project) if _lab_with(labs, path) is not None]
    if not changed:
        raise ProjectError(
            _("nothing is changed in the source of any lab"),
            hint=_("edit the source, see it fail, and leave it edited"),
        )
    if len(changed) > 1:
        names = ", ".join(str(path.relative_to(project.root)) for path in changed)
        raise ProjectError(
            _("one bug is one change in one file; changed are: {names}").format(names=names)
        )
    (path,) = changed
    found = _lab_with(labs, path)
    assert found is not None
    return Change(found, path, _committed(project, path), path.read_bytes())


def derivation(change: Change) -> Derivation:
    """Return the pattern that makes a change, and its fix.

    Raises:
        SiteError: the change is no single one, or no pattern makes it.
    """
    derived = derive(change.pristine, change.broken, change.file)
    broken = inject(change.pristine, derived.injection).source
    return Derivation(derived, fix_diff(broken, change.pristine, change.file), broken)


def put_back(project: Project, change: Change, label: str) -> Path:
    """Put the committed bytes back in a changed file, and return a copy of what it held.

    Args:
        project: where the copy goes.
        change: what to take out of the tree; its spec holds it by now.
        label: what the copy is, as part of its name.

    Raises:
        TreeError: somebody changed the file meanwhile, or it can't be written; it is as it was.
    """
    with os_errors_told(change.path):
        prepare_state_dir(project)
        with tree_lock(project):
            mode = mode_of(change.path)
            copy = save_copy(project, change.path.name, label, change.broken, mode)
            write_source(change.path, change.pristine, expected=change.broken, mode=mode)
    return copy


def _lab_with(labs: list[Lab], path: Path) -> Lab | None:
    """Return the lab whose source, not whose tests, a file belongs to."""
    for lab in labs:
        if path.is_relative_to(lab.source.resolve()):
            return None if path.is_relative_to(lab.tests.resolve()) else lab
    return None


def _changed_files(project: Project) -> list[Path]:
    """Return the Python files that differ from the last commit; new ones do not count."""
    output = _git(project, "diff", "--name-only", "--no-renames", "--relative", "-z", "HEAD", "--")
    names = [name for name in output.decode("utf-8", "surrogateescape").split("\0") if name]
    root = project.root.resolve()
    paths = [(root / name).resolve() for name in names if name.endswith(".py")]
    return [path for path in paths if path.is_file()]


def _committed(project: Project, path: Path) -> bytes:
    relative = path.relative_to(project.root.resolve()).as_posix()
    return _git(project, "show", f"HEAD:./{relative}")


def _git(project: Project, *args: str) -> bytes:
    try:
        done = subprocess.run(
            ["git", *args], cwd=project.root, capture_output=True, check=False, timeout=60
        )
    except FileNotFoundError as error:
        raise ProjectError(_("git is not installed")) from error
    if done.returncode:
        reason = (done.stderr.decode(errors="replace").strip().splitlines() or [""])[0]
        raise ProjectError(
            _("git can't tell what was changed: {reason}").format(reason=reason),
            hint=_("the lab must be committed; the change must not be"),
        )
    return done.stdout
