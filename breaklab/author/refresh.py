"""Bring a spec up to date with the lab: its fix, its pattern, and the tests that go red."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from breaklab.author.pristine import pristine_source
from breaklab.errors import ProjectError
from breaklab.i18n import _
from breaklab.inject.diff import fix_diff
from breaklab.inject.edit import inject
from breaklab.inject.repair import repair
from breaklab.model import BreakSpec, Project
from breaklab.spec.project import lab_among, load_labs, source_file
from breaklab.spec.rewrite import Value, rewritten
from breaklab.spec.sealed import is_sealed
from breaklab.tree.atomic import replace_file


@dataclass(frozen=True)
class Refresh:
    """A spec's text before and after, not written yet."""

    path: Path
    before: str
    after: str
    changed: tuple[str, ...]  # key paths, such as ``inject.find``
    broken: bytes  # the lab's file with the break, as the refreshed pattern makes it

    @property
    def diff(self) -> str:
        """What changes, as a unified diff; empty where nothing does."""
        lines = difflib.unified_diff(
            self.before.splitlines(keepends=True),
            self.after.splitlines(keepends=True),
            f"{self.path.name} (now)",
            f"{self.path.name} (refreshed)",
            n=2,
        )
        return "".join(lines)

    def write(self) -> None:
        """Write the spec, wholly or not at all.

        Raises:
            TreeError: the file could not be written; it is as it was.
        """
        if self.before == self.after:
            return
        replace_file(self.path, self.after.encode(), keep_mode=True)


def refresh(project: Project, spec: BreakSpec, *, red: Sequence[str] | None = None) -> Refresh:
    """Return what would bring a spec up to date; nothing is written.

    ``fix_diff`` is made anew; where the lab renamed the function or names that the pattern holds,
    the pattern follows. Comments and layout of the file stay.

    Args:
        project: whose lab the break is for.
        spec: the break, as its file has it.
        red: the tests that went red with the break applied; None to leave the list as it is.

    Raises:
        SiteError: the pattern has no site, and no repair is beyond doubt.
        SpecError: the file can't be rewritten.
        ProjectError: the lab or its file is gone.
    """
    lab = lab_among(load_labs(project), spec)
    path = source_file(lab, spec)
    pristine = pristine_source(project, path)
    injection = spec.inject if spec.inject.codemod else repair(spec.inject, pristine)
    broken = inject(pristine, injection, path=injection.file).source
    changes: dict[str, Value] = {}
    for key, old, new in (
        ("inject.inside", spec.inject.inside, injection.inside),
        ("inject.find", spec.inject.find, injection.find),
        (f"inject.{injection.action}", spec.inject.code, injection.code),
        ("fix_diff", spec.fix_diff, fix_diff(broken, pristine, injection.file)),
    ):
        if old != new:
            changes[key] = new
    if red is not None and sorted(red) != sorted(spec.red):
        changes["expect.red"] = list(red)
    before = spec.path.read_bytes().decode()
    if is_sealed(before):
        raise ProjectError(
            _("{path} is sealed").format(path=spec.path),
            hint=_("breaklab unseal {bug_id} --write").format(bug_id=spec.bug_id),
        )
    after = rewritten(before, changes, spec.path) if changes else before
    return Refresh(spec.path, before, after, tuple(changes), broken)
