"""Apply and revert breaks in the learner's tree; whatever step a kill strikes, nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from breaklab.errors import TreeError
from breaklab.i18n import _
from breaklab.model import Lab, Project
from breaklab.tree.atomic import os_errors_told
from breaklab.tree.digest import changed_tests, digest_tree
from breaklab.tree.events import SOLVED, append_event
from breaklab.tree.lock import BusyError, tree_lock
from breaklab.tree.record import ActiveBreak, SourceState, read_active, read_record, to_json
from breaklab.tree.recover import (
    Recovery,
    announcement,
    finish_apply,
    finish_revert,
    needs_recovery,
    recover,
)
from breaklab.tree.revert import Plan, RevertHow, RevertKind, RevertReport, plan_revert
from breaklab.tree.saved import save_copy
from breaklab.tree.source import new_record, read_source, write_source
from breaklab.tree.state import (
    active_path,
    applying_path,
    check_schema,
    prepare_state_dir,
    remove_temporary_files,
    reverting_path,
    write_json,
    write_schema,
)

__all__ = [
    "ActiveBreak",
    "RevertHow",
    "RevertKind",
    "RevertReport",
    "SourceState",
    "Workspace",
    "changed_tests",
    "digest_tree",
    "read_active",
    "read_source",
    "recover_if_needed",
]


class Workspace:
    """The learner's tree while this process may change it; see :meth:`open`.

    Attributes:
        active: the break that is applied, or None.
    """

    def __init__(self, project: Project, recovery: Recovery) -> None:
        self._project = project
        self._recovery = recovery
        self.active = read_record(active_path(project))

    @property
    def recovered(self) -> str:
        """What was half done, and is finished or undone now; ``""`` if nothing was."""
        return self._recovery.message

    @classmethod
    @contextmanager
    def open(cls, project: Project) -> Iterator[Workspace]:
        """Take the lock, finish or undo what a killed command left, and give the workspace.

        Start no process that outlives the block inside it: it would keep the lock.

        Raises:
            TreeError: another process holds the lock; the state is damaged or from a newer
                breaklab; the disk can't be written. Nothing was changed.
        """
        with ExitStack() as stack:
            with os_errors_told(project.state_dir):
                check_schema(project)
                prepare_state_dir(project)
                stack.enter_context(tree_lock(project))
                workspace = cls(project, recover(project))
                stack.callback(remove_temporary_files, project)
                write_schema(project)
            yield workspace

    def source_state(self) -> SourceState | None:
        """Return what the source of the applied break is like; None if none is applied.

        Raises:
            TreeError: the file can't be read.
        """
        return self.active.source_state(self._project) if self.active else None

    def require_room(self) -> None:
        """Refuse when a break is applied that must end first; ask before preparing the next.

        Raises:
            TreeError: a break is applied and not solved.
        """
        if self.active and not self.active.solved:
            raise _already_applied(self.active)

    def apply(
        self,
        lab: Lab,
        bug_id: str,
        file: Path,
        broken: bytes,
        *,
        pristine: bytes | None = None,
        hidden: bool = False,
    ) -> ActiveBreak:
        """Put a break in: write the record, then the source, then mark the record in force.

        A break that is solved makes room for the next one; its file stays as the learner has it.

        Args:
            lab: the lab that the break is for.
            bug_id: the break's id.
            file: the source file, absolute, inside the lab's source.
            broken: its bytes with the break in.
            pristine: the bytes that ``broken`` was made from, where the caller knows them; they
                must still be in the file.
            hidden: a mystery break, whose id is not to be shown before it is solved.

        Raises:
            TreeError: another break is applied, the file is not what it should be, or the disk
                can't be written. Nothing was changed.
        """
        self.require_room()
        record = new_record(self._project, lab, bug_id, file, broken, pristine, hidden)
        with self._told_and_recovered():
            if self.active and self.active.source_state(self._project) is not SourceState.PRISTINE:
                self._save(self.active, "original", self.active.pristine)
            write_json(applying_path(self._project), to_json(record))
            source = record.source_path(self._project)
            write_source(source, broken, expected=record.pristine, mode=record.mode)
            finish_apply(self._project, record)
        self.active = record
        return record

    def revert(self, how: RevertHow = RevertHow.MERGE) -> RevertReport:
        """Take the break out, keeping or saving whatever the learner wrote meanwhile.

        Where the last revert was killed and opening this workspace finished it, its report is
        returned.

        Args:
            how: what to do where the learner edited the file.

        Raises:
            TreeError: no break is applied; the edits conflict with the original (exit code 1);
                something else has the file's name; the disk can't be written. Nothing was changed.
        """
        if self.active is None:
            if self._recovery.report:
                return self._recovery.report
            raise TreeError(
                _("no break is applied here, so there is nothing to revert"),
                hint=_("put one in with: breaklab apply ID"),
            )
        with self._told_and_recovered():
            report = self._revert(self.active, plan_revert(self._project, self.active, how))
        self.active = None
        return report

    def _revert(self, active: ActiveBreak, plan: Plan) -> RevertReport:
        saved = [self._save(active, label, content) for label, content in plan.saves]
        report = RevertReport(
            plan.kind, active.bug_id, active.file, "".join(saved), active.is_mystery
        )
        target = plan.before if plan.after is None else plan.after
        write_json(reverting_path(self._project), announcement(report, target))
        if plan.writes and plan.after is not None:
            source = active.source_path(self._project)
            source.parent.mkdir(parents=True, exist_ok=True)
            write_source(source, plan.after, expected=plan.before, mode=active.mode)
        finish_revert(self._project, active, report)
        return report

    def _save(self, active: ActiveBreak, label: str, content: bytes) -> str:
        path = save_copy(self._project, active.file, label, content, active.mode)
        return path.relative_to(self._project.root).as_posix()

    def mark_solved(self, bug_id: str, **data: Any) -> None:
        """Note that the learner's fix of ``bug_id`` is right; their file stays as it is.

        The break stays on record, so that ``revert`` still leads back to the original, and the
        next ``apply`` needs no revert first. Marking twice, or after a revert, changes nothing.

        Args:
            bug_id: the break that was judged.
            data: what else the event is to hold.

        Raises:
            TreeError: the disk can't be written.
        """
        if self.active is None or self.active.bug_id != bug_id or self.active.solved:
            return
        append_event(self._project, SOLVED, bug_id, **data)
        solved = replace(self.active, solved=True)
        with self._told_and_recovered():
            write_json(active_path(self._project), to_json(solved))
        self.active = solved

    @contextmanager
    def _told_and_recovered(self) -> Iterator[None]:
        """Leave nothing half done when a step fails, or when Ctrl-C strikes."""
        with os_errors_told(self._project.root):
            try:
                yield
            except BaseException:
                # Where this fails, too, its error is the one to tell.
                recover(self._project)
                self.active = read_record(active_path(self._project))
                raise


def recover_if_needed(project: Project) -> str:
    """Finish or undo what a killed command left; return what to tell the learner, or ``""``.

    Costs one look at a folder where there is nothing to do. Leaves a command at work alone.

    Raises:
        TreeError: recovering failed; see :meth:`Workspace.open`.
    """
    if not needs_recovery(project):
        return ""
    try:
        with Workspace.open(project) as workspace:
            return workspace.recovered
    except BusyError:
        return ""


def _already_applied(active: ActiveBreak) -> TreeError:
    if active.is_mystery:
        message = _("a mystery break is applied already; nothing was changed")
    else:
        message = _("{bug_id} is applied already; nothing was changed").format(bug_id=active.bug_id)
    return TreeError(message, hint=_("end it first: breaklab revert"))
