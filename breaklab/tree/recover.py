"""Finish or undo what a killed command left half done.

The order of writes makes the disk tell how far it got:

- ``applying.json`` there: ``apply`` wrote the record; the source is changed if it holds the broken
  bytes. Renaming the record to ``active.json`` is the last step.
- ``reverting.json`` there: ``revert`` decided what to write; it did if the source's hash is the one
  announced. Removing ``active.json``, then ``reverting.json``, are the last steps.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from breaklab.errors import TreeError
from breaklab.i18n import _
from breaklab.model import Project
from breaklab.tree.atomic import remove_file, rename_file
from breaklab.tree.bytecode import remove_bytecode
from breaklab.tree.events import APPLIED, REVERTED, SOLVED, append_event, read_events
from breaklab.tree.record import ActiveBreak, SourceState, read_record, sha256
from breaklab.tree.revert import RevertKind, RevertReport
from breaklab.tree.source import temp_path
from breaklab.tree.state import (
    active_path,
    applying_path,
    damaged,
    read_json,
    remove_temporary_files,
    reverting_path,
)

_TREE_EVENTS = (APPLIED, REVERTED, SOLVED)


@dataclass(frozen=True)
class Recovery:
    """What was found half done, and what became of it."""

    message: str = ""
    report: RevertReport | None = None  # of a revert that had only to be finished


def needs_recovery(project: Project) -> bool:
    """Tell whether a command was killed half-way, or is at work; takes no lock."""
    try:
        names = os.listdir(project.state_dir)  # noqa: PTH208 - names are all that is needed
    except OSError:
        return False
    half_done = (applying_path(project).name, reverting_path(project).name)
    return any(name in half_done or name.endswith(".tmp") for name in names)


def recover(project: Project) -> Recovery:
    """Finish or undo what is half done; the caller holds the lock.

    Raises:
        TreeError: a state file can't be read, or the source can't.
        OSError: a file can't be written or removed.
    """
    remove_temporary_files(project)
    applying = read_record(applying_path(project))
    if applying is not None:
        return _recover_apply(project, applying)
    reverting = read_json(reverting_path(project))
    if reverting is not None:
        return _recover_revert(project, reverting)
    return Recovery()


def _recover_apply(project: Project, record: ActiveBreak) -> Recovery:
    state, _content = record.look(project)
    # The temporary file turns into the source; while it is there, the source was not changed.
    temp_is_there = temp_path(record.source_path(project)).exists()
    untouched = state is SourceState.PRISTINE or (state is SourceState.EDITED and temp_is_there)
    _remove_temp(record.source_path(project))
    if untouched:
        remove_file(applying_path(project), label="undone record")
        return Recovery(
            _("The last apply was interrupted before it changed the source; it is undone.")
        )
    finish_apply(project, record)
    return Recovery(_("The last apply was interrupted half-way; it is finished now."))


def _remove_temp(source: Path) -> None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        temp_path(source).unlink()


def finish_apply(project: Project, record: ActiveBreak) -> None:
    """Do what follows the change of the source: bytecode, event, and the record's last name."""
    remove_bytecode(record.source_path(project))
    _append_once(project, APPLIED, record.bug_id, lab=record.lab, hidden=record.hidden)
    rename_file(applying_path(project), active_path(project), label="record in force")


def _recover_revert(project: Project, reverting: dict[str, Any]) -> Recovery:
    record = read_record(active_path(project))
    if record is None:
        remove_file(reverting_path(project), label="announcement")
        return Recovery()
    report, target = _announced(project, record, reverting)
    # Even where the source is as announced: the learner may have fixed it meanwhile.
    _remove_temp(record.source_path(project))
    _state, content = record.look(project)
    if (sha256(content) if content is not None else "") == target:
        finish_revert(project, record, report)
        return Recovery(_("The last revert was interrupted half-way; it is finished now."), report)
    remove_file(reverting_path(project), label="announcement")
    return Recovery(
        _(
            "The last revert was interrupted before it changed the source; "
            "the break is still applied."
        )
    )


def finish_revert(project: Project, record: ActiveBreak, report: RevertReport) -> None:
    """Do what follows the change of the source: bytecode, event, and the record's end."""
    remove_bytecode(record.source_path(project))
    _append_once(project, REVERTED, record.bug_id, how=report.kind.value, saved=report.saved)
    remove_file(active_path(project), label="record")
    remove_file(reverting_path(project), label="announcement")


def announcement(report: RevertReport, target: bytes | None) -> dict[str, Any]:
    """Return what ``reverting.json`` says; ``target``: the source's bytes at the end."""
    return {
        "kind": report.kind.value,
        "saved": report.saved,
        "target_sha256": sha256(target) if target is not None else "",
    }


def _announced(
    project: Project, record: ActiveBreak, reverting: dict[str, Any]
) -> tuple[RevertReport, str]:
    try:
        kind = RevertKind(reverting["kind"])
        saved, target = str(reverting["saved"]), str(reverting["target_sha256"])
    except (KeyError, ValueError) as error:
        raise damaged(reverting_path(project), str(error)) from error
    return RevertReport(kind, record.bug_id, record.file, saved, record.is_mystery), target


def _append_once(project: Project, kind: str, bug_id: str, **data: Any) -> None:
    """Append an event unless the killed command got that far already.

    History is for hints and progress; a tree that was changed must not fail for want of it.
    """
    with contextlib.suppress(TreeError):
        tree_events = [each for each in read_events(project) if each.kind in _TREE_EVENTS]
        last = tree_events[-1] if tree_events else None
        if last is None or (last.kind, last.bug_id) != (kind, bug_id):
            append_event(project, kind, bug_id, **data)
