"""All breaks of a project; one that can't be used does not keep the others from being used."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from breaklab.errors import Finding, Location, ProjectError, SpecError
from breaklab.i18n import _
from breaklab.model import BreakSpec, Project, RetiredSpec
from breaklab.spec.breaks import load_spec, place_of

_PLAIN_NAME = re.compile(r"[\w-]+")
_BUG_ID_LINE = re.compile(r"""^bug-id:\s*["']?([\w-]+)""", re.MULTILINE)


@dataclass
class Catalogue:
    """The breaks of a project by bug id, in order."""

    specs: dict[str, BreakSpec] = field(default_factory=dict)
    retired: dict[str, RetiredSpec] = field(default_factory=dict)
    broken: dict[Path, SpecError] = field(default_factory=dict)

    def find(self, bug_id: str) -> BreakSpec:
        """Return a break by its id or its slug.

        Raises:
            SpecError: there is such a spec, but it can't be used.
            ProjectError: there is none; the message names the nearest.
        """
        for spec in self.specs.values():
            if bug_id in (spec.bug_id, spec.slug):
                return spec
        if bug_id in self.retired:
            reason = self.retired[bug_id].reason
            raise ProjectError(
                _("the break {bug_id} is retired: {reason}").format(bug_id=bug_id, reason=reason)
            )
        for path, error in self.broken.items():
            if bug_id in (path.stem, _claimed_id(path)):
                raise error
        raise ProjectError(
            _("there is no break {bug_id}").format(bug_id=bug_id), hint=self._nearest(bug_id)
        )

    def _nearest(self, bug_id: str) -> str:
        names = {name: s.bug_id for s in self.specs.values() for name in (s.slug, s.bug_id)}
        close = difflib.get_close_matches(bug_id, names, n=1, cutoff=0.5)
        if close:
            return _("did you mean {bug_id}? all breaks: breaklab list").format(
                bug_id=names[close[0]]
            )
        return _("all breaks: breaklab list")


def spec_files(project: Project) -> list[Path]:
    """Return every spec file of a project, in order of names."""
    files = [file for folder in project.breaks for file in folder.glob("*.yaml")]
    return sorted(file for file in files if not file.name.startswith("."))


def load_named(project: Project, bug_id: str, *, trust: bool = False) -> BreakSpec | None:
    """Return the spec in the file that is named after ``bug_id``, reading no other one.

    None where there is no such file, or it holds another break: the catalogue knows then.

    Args:
        project: whose packs to look in.
        bug_id: the break's id.
        trust: as for :func:`load_catalogue`.

    Raises:
        SpecError: there is such a spec, but it can't be used.
    """
    if not _PLAIN_NAME.fullmatch(bug_id):
        return None
    for folder in project.breaks:
        path = folder / f"{bug_id}.yaml"
        if path.is_file():
            spec = load_spec(path)
            if not isinstance(spec, BreakSpec) or spec.bug_id != bug_id:
                return None
            return _with_trust(project, spec, trust)
    return None


def claimed_ids(project: Project) -> list[str]:
    """Return the bug ids that spec files claim, in order of files, without checking the specs."""
    ids = (_claimed_id(path) for path in spec_files(project))
    return list(dict.fromkeys(bug_id for bug_id in ids if bug_id))


def load_catalogue(project: Project, *, trust: bool = False) -> Catalogue:
    """Read every spec; those that can't be used are kept in ``broken``.

    Args:
        project: whose packs to read.
        trust: let codemods of every pack run, not only of the project's own: the first folder of
            ``breaks``, where it lies inside the project once links are resolved.
    """
    found: list[BreakSpec | RetiredSpec] = []
    catalogue = Catalogue()
    for path in spec_files(project):
        try:
            found.append(load_spec(path))
        except SpecError as error:
            catalogue.broken[path] = error
    first: dict[str, Path] = {}
    for spec in sorted(found, key=lambda spec: (_sort_key(spec.bug_id), str(spec.path))):
        if spec.bug_id in first:
            catalogue.broken[spec.path] = _duplicate(spec, first[spec.bug_id])
            continue
        first[spec.bug_id] = spec.path
        if isinstance(spec, BreakSpec):
            catalogue.specs[spec.bug_id] = _with_trust(project, spec, trust)
        else:
            catalogue.retired[spec.bug_id] = spec
    return catalogue


def _with_trust(project: Project, spec: BreakSpec, trust: bool) -> BreakSpec:
    trusted = trust or _is_own(project, spec.path)
    return replace(spec, inject=replace(spec.inject, trusted=trusted))


def _is_own(project: Project, path: Path) -> bool:
    own = project.breaks[0].resolve()
    return own.is_relative_to(project.root.resolve()) and path.resolve().is_relative_to(own)


def _sort_key(bug_id: str) -> tuple[int, ...]:
    return tuple(int(part) for part in bug_id.split("-"))


def _duplicate(spec: BreakSpec | RetiredSpec, first: Path) -> SpecError:
    message = _("the bug-id {bug_id} is taken by {path}").format(bug_id=spec.bug_id, path=first)
    where = place_of(spec, "bug-id") if isinstance(spec, BreakSpec) else Location(str(spec.path), 1)
    return SpecError([Finding(where, "duplicate-id", message)])


def _claimed_id(path: Path) -> str:
    """Return the id that a spec which can't be used claims to have."""
    try:
        match = _BUG_ID_LINE.search(path.read_text(encoding="utf-8", errors="replace")[:4096])
    except OSError:
        return ""
    return match[1] if match else ""
