"""What a revert will do, decided before anything is written."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from breaklab.errors import ExitCode, TreeError
from breaklab.i18n import _
from breaklab.model import Project
from breaklab.tree.merge import merge
from breaklab.tree.record import ActiveBreak, SourceState


class RevertHow(StrEnum):
    """What to do with the edits that the learner made to the source."""

    MERGE = "merge"  # keep them beside the original, or say that they conflict
    KEEP = "keep"  # leave the file as it is
    DISCARD = "discard"  # put the original back


class RevertKind(StrEnum):
    """What a revert turned out to be."""

    RESTORED = "restored"  # the pristine bytes are back; there were no edits
    MERGED = "merged"  # the original is back, with the learner's other edits
    ALREADY_PRISTINE = "already_pristine"  # the learner had put it back already
    KEPT = "kept"  # the file stays as the learner has it
    DISCARDED = "discarded"  # the pristine bytes are back, the learner's are in a saved copy


@dataclass(frozen=True)
class Plan:
    """What to save, what to write, and how to call it."""

    kind: RevertKind
    before: bytes | None  # what the source holds; None: it is no file
    after: bytes | None  # what it is to hold; None: leave it alone
    saves: tuple[tuple[str, bytes], ...] = ()  # label and bytes of each copy to make first

    @property
    def writes(self) -> bool:
        """Whether the source changes."""
        return self.after is not None and self.after != self.before


def plan_revert(project: Project, active: ActiveBreak, how: RevertHow) -> Plan:
    """Decide what reverting ``active`` does; changes nothing.

    Raises:
        TreeError: the learner has to choose, or to move something out of the way, first.
        OSError: the merge could not be prepared.
    """
    state, content = active.look(project)
    if state is SourceState.PRISTINE:
        return Plan(RevertKind.ALREADY_PRISTINE, content, None)
    if how is RevertHow.KEEP:
        return Plan(RevertKind.KEPT, content, None, (("original", active.pristine),))
    if state is SourceState.REPLACED:
        raise _in_the_way(active)
    if content is None:
        if how is RevertHow.MERGE and not active.source_path(project).parent.is_dir():
            raise _folder_gone(active)
        return Plan(RevertKind.RESTORED, None, active.pristine)
    if state is SourceState.BROKEN:
        return Plan(RevertKind.RESTORED, content, active.pristine)
    if how is RevertHow.DISCARD:
        return _discard(active, content)
    return _merge(project, active, content)


def _discard(active: ActiveBreak, content: bytes) -> Plan:
    return Plan(RevertKind.DISCARDED, content, active.pristine, (("edited", content),))


def _merge(project: Project, active: ActiveBreak, content: bytes) -> Plan:
    merged = merge(active.broken, content, active.pristine, project.state_dir)
    if merged is None:
        if active.solved:
            # Solved by another fix than the original's: that is no reason to ask back.
            return _discard(active, content)
        raise _conflict(active)
    saves = (("edited", content),) if merged != content else ()
    return Plan(RevertKind.MERGED, content, merged, saves)


def _conflict(active: ActiveBreak) -> TreeError:
    message = _(
        "{file}: your edits and the original overlap, so they can't be merged; nothing was changed"
    )
    return TreeError(message.format(file=active.file), hint=_choices(), exit_code=ExitCode.NEGATIVE)


def _choices() -> str:
    return _(
        "`breaklab revert --keep` ends the break and leaves the file as you have it; "
        "`breaklab revert --discard` puts the original back; both save a copy first"
    )


def _in_the_way(active: ActiveBreak) -> TreeError:
    message = _("{file} is not a regular file any more; nothing was changed")
    return TreeError(
        message.format(file=active.file),
        hint=_(
            "move it out of the way and run `breaklab revert` again, or leave it there with "
            "`breaklab revert --keep`, which saves the original under .breaklab/saved"
        ),
    )


def _folder_gone(active: ActiveBreak) -> TreeError:
    message = _("the folder of {file} is gone; nothing was changed")
    return TreeError(
        message.format(file=active.file),
        hint=_(
            "`breaklab revert --discard` makes it again with the original in it; "
            "`breaklab revert --keep` leaves things as they are and saves the original"
        ),
    )


@dataclass(frozen=True)
class RevertReport:
    """What a revert did."""

    kind: RevertKind
    bug_id: str
    file: str  # relative to the project's root
    saved: str = ""  # the copy that was saved, relative to the project's root
    hidden: bool = False  # the break was a mystery and was not solved: don't name it

    @property
    def message(self) -> str:
        """What happened, for the learner; names the file only where they edited it."""
        message = {
            RevertKind.RESTORED: _("The source is as it was before the break."),
            RevertKind.MERGED: _("The original is back in {file}, and your other edits are kept."),
            RevertKind.ALREADY_PRISTINE: _(
                "You had put the original back yourself; the source is as it was before the break."
            ),
            RevertKind.KEPT: _("The break is over; {file} stays as you have it."),
            RevertKind.DISCARDED: _("The original is back in {file}; your edits are out of it."),
        }[self.kind].format(file=self.file)
        if not self.saved:
            return message
        saved = {
            RevertKind.MERGED: _("What you had before is saved in {saved}."),
            RevertKind.KEPT: _("The original is saved in {saved}."),
            RevertKind.DISCARDED: _("Your version is saved in {saved}."),
        }[self.kind]
        return f"{message} {saved.format(saved=self.saved)}"
