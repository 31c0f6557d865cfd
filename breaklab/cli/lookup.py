"""From the folder we stand in to the project, its labs, its breaks and the one applied."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from breaklab.errors import BreaklabError, ProjectError
from breaklab.i18n import _
from breaklab.model import BreakSpec, Lab, Project
from breaklab.spec.catalogue import Catalogue, load_catalogue, load_named
from breaklab.spec.project import find_project, lab_of, load_labs

if TYPE_CHECKING:
    from breaklab.cli.render import Screen
    from breaklab.tree.workspace import ActiveBreak


@dataclass(frozen=True)
class OpenProject:
    """A project with what was asked of it so far; nothing here takes a lock or writes."""

    project: Project
    trust: bool = False  # let codemods of every pack run, not only of the project's own

    @cached_property
    def catalogue(self) -> Catalogue:
        """All breaks of the project."""
        return load_catalogue(self.project, trust=self.trust)

    @cached_property
    def active(self) -> ActiveBreak | None:
        """The record of the break that is applied, if one is."""
        from breaklab.tree.workspace import read_active

        return read_active(self.project)

    @cached_property
    def hides_name(self) -> bool:
        """Whether the applied break is a mystery still: its id must not be shown."""
        if self.active is None or not self.active.is_mystery:
            return False
        from breaklab.learn.progress import was_revealed_since_applied
        from breaklab.tree.events import read_events

        return not was_revealed_since_applied(read_events(self.project), self.active.bug_id)

    def applied_spec(self) -> BreakSpec | None:
        """Return the spec of the break that is applied, if one is."""
        return self.find(self.active.bug_id) if self.active else None

    def find(self, bug_id: str) -> BreakSpec:
        """Return a break by its id or slug; reads only its own file where that is named so.

        Raises:
            SpecError: there is such a spec, but it can't be used.
            ProjectError: there is none; the message names the nearest.
        """
        named = load_named(self.project, bug_id, trust=self.trust)
        return named or self.catalogue.find(bug_id)

    def spec(self, bug_id: str | None) -> BreakSpec:
        """Return the spec of ``bug_id``, or of the applied break where none is named.

        Raises:
            BreaklabError: no break is named and none is applied, or the id is unknown.
        """
        if bug_id:
            return self.find(bug_id)
        applied = self.applied_spec()
        if applied is None:
            raise nothing_applied()
        return applied

    def public_id(self, spec: BreakSpec, *, named: bool = False) -> str | None:
        """Return the id to show for ``spec``; None for a mystery that the learner did not name."""
        is_applied = self.active is not None and self.active.bug_id == spec.bug_id
        return None if is_applied and self.hides_name and not named else spec.bug_id

    def lab_of(self, spec: BreakSpec) -> Lab:
        """Return the lab that a break is for."""
        return lab_of(self.project, spec)

    def default_lab(self) -> Lab:
        """Return the lab of the applied break, else the project's first one.

        Raises:
            ProjectError: the project has no lab, or none of the name on record.
        """
        labs = load_labs(self.project)
        name = self.active.lab if self.active else None
        for lab in labs:
            if name in (None, lab.name):
                return lab
        raise ProjectError(_("this project has no lab {name}").format(name=name or ""))


def label(public_id: str | None) -> str:
    """Return how a break is called in a sentence; see :meth:`OpenProject.public_id`."""
    return public_id or _("the mystery break")


def open_project(screen: Screen | None = None, *, trust: bool = False) -> OpenProject:
    """Return the project around the current folder, after finishing what a killed command left.

    Args:
        screen: where to say what was finished; None to leave everything as it is.
        trust: let codemods of every pack run, not only of the project's own.

    Raises:
        ProjectError: no folder from here up is a project.
        TreeError: what was left half done could not be finished.
    """
    project = find_project(Path.cwd())
    if screen is not None:
        from breaklab.tree.workspace import recover_if_needed

        recovered = recover_if_needed(project)
        if recovered:
            screen.prose(recovered, "warn", err=True)
    return OpenProject(project, trust)


def nothing_applied() -> BreaklabError:
    """Return the error of a command that needs a break applied, or named, and has neither."""
    return BreaklabError(
        _("no break is applied here"),
        hint=_("name one, or apply one first: breaklab list;  breaklab apply ID"),
    )
