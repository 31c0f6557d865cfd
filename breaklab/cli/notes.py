"""Record what a learner did; where that can't be written, say so and go on."""

from __future__ import annotations

from breaklab.cli.render import Screen
from breaklab.errors import TreeError
from breaklab.i18n import _
from breaklab.model import Project
from breaklab.tree.events import append_event


def note_event(
    screen: Screen, project: Project, kind: str, bug_id: str, /, **data: str | float | bool
) -> None:
    """Append one event; a tree that can't be written must not keep a learner from reading."""
    try:
        append_event(project, kind, bug_id, **data)
    except TreeError as error:
        message = _("This could not be recorded: {reason}").format(reason=error.message)
        screen.prose(message, "warn", err=True)
