"""A learner's journal: one entry for each break, in YAML inside Markdown, only ever appended to."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from breaklab.errors import BreaklabError
from breaklab.i18n import _
from breaklab.learn.progress import State, state_of
from breaklab.model import BreakSpec, Lab, Project
from breaklab.spec.entry import dump_entry
from breaklab.tree.events import SOLVED, Event

_DEFAULT = "learners/{learner}/{lab}/notes/breaks.md"
_TITLE = "# Breaks\n"


def journal_path(project: Project, lab: Lab, learner: str) -> Path:
    """Return where the journal of ``learner`` for ``lab`` lies.

    Raises:
        BreaklabError: the manifest's path leads out of the project.
    """
    pattern = lab.journal or _DEFAULT
    relative = pattern.replace("{learner}", learner).replace("{lab}", lab.name)
    path = project.root / relative
    if not path.resolve().is_relative_to(project.root.resolve()):
        raise BreaklabError(
            _("the journal of lab {lab} lies outside the project: {path}").format(
                lab=lab.name, path=relative
            )
        )
    return path


def require_finished(events: Sequence[Event], spec: BreakSpec, name: str) -> None:
    """Refuse to write down a break before the learner is done with it.

    Raises:
        BreaklabError: it was neither solved nor revealed.
    """
    if state_of(events, spec.bug_id) not in (State.SOLVED, State.GIVEN_UP):
        raise BreaklabError(
            _("the journal is for breaks you have solved; {name} is still open").format(name=name),
            hint=_("let your fix be judged: breaklab check"),
        )


def last_solved(events: Sequence[Event]) -> str | None:
    """Return the bug id that was solved last, if any."""
    solved = [event.bug_id for event in events if event.kind == SOLVED]
    return solved[-1] if solved else None


def has_entry(path: Path, bug_id: str) -> bool:
    """Return whether the journal has an entry for ``bug_id`` already.

    Raises:
        BreaklabError: the journal can't be read.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unusable(path, error) from error
    return bool(re.search(rf"^\s*-?\s*bug-id:\s*['\"]?{re.escape(bug_id)}\b", text, re.MULTILINE))


def entry_for(spec: BreakSpec, cause: str, language: str) -> str:
    """Return the Markdown of one entry: the course's keys, the learner's own words for the cause.

    Args:
        spec: the break.
        cause: what was wrong, as the learner says it.
        language: of the spec's texts.
    """
    hints = {
        f"hint_{level}": hint.get(language).strip() for level, hint in enumerate(spec.hints, 1)
    }
    fields = {
        "bug-id": spec.bug_id,
        "concept": spec.concept.get(language).strip(),
        "symptom": spec.symptom.get(language).strip(),
        "hidden_cause": cause.strip(),
        **hints,
        "fix_diff": spec.fix_diff,
    }
    yaml_text = dump_entry(fields)
    # A text that holds a fence of its own must not end ours.
    longest = max((len(run) for run in re.findall(r"`{3,}", yaml_text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}yaml\n{yaml_text}{fence}\n"


def append_entry(path: Path, entry: str) -> None:
    """Append ``entry``; what is in the journal already keeps every byte.

    Raises:
        BreaklabError: the journal can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as journal:
            size = journal.seek(0, os.SEEK_END)
            journal.seek(max(size - 1, 0))
            ends_line = journal.read(1) in (b"\n", b"")
            head = _TITLE if size == 0 else "" if ends_line else "\n"
            journal.write(f"{head}\n{entry}".encode())
    except OSError as error:
        raise _unusable(path, error) from error


def _unusable(path: Path, error: OSError) -> BreaklabError:
    return BreaklabError(
        _("the journal {path} can't be used: {reason}").format(path=path, reason=error.strerror)
    )
