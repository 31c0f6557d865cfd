"""From a break that a learner wrote down to the draft of a spec."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from breaklab.author.change import Change, Derivation, derivation
from breaklab.author.new import draft, scaffold
from breaklab.author.pristine import pristine_source
from breaklab.errors import SiteError
from breaklab.model import LANGUAGES, Lab, Project
from breaklab.spec.notes import Note
from breaklab.spec.project import load_labs
from breaklab.spec.rewrite import rewritten
from breaklab.tree.patch import git_apply

_TARGET = re.compile(r"^\+\+\+ (?:b/)?(\S+)", re.MULTILINE)
_NUM_HINTS = 3  # that a draft has room for


def draft_from_note(project: Project, note: Note, *, language: str, bug_id: str = "") -> str:
    """Return a spec that holds what the note says; the rest is left to be written.

    Where the note's fix is a diff that can be taken back on the lab's source, the draft has the
    pattern, too; where it is words, they stand as a comment above the place for the pattern.

    Args:
        project: whose labs the break is for.
        note: what the learner wrote.
        language: of the note, ``en`` or ``es``.
        bug_id: of the new break; default: the note's own.
    """
    bug_id = bug_id or note.bug_id
    derivation = _derivation(project, note)
    text = draft(bug_id, derivation) if derivation else scaffold(bug_id)
    changes = {
        f"concept.{language}": note.concept,
        f"symptom.{language}": note.symptom,
        f"hidden_cause.{language}": note.hidden_cause,
    }
    text = _with_hints(text, len(note.hints))
    for level, hint in enumerate(note.hints):
        changes[f"hints[{level}].{language}"] = hint
    text = rewritten(text, changes, Path(f"{bug_id}.yaml"))
    if derivation is None:
        words = "".join(f"# {line}\n" for line in note.fix.strip().splitlines())
        text = text.replace("inject:\n", f"{words}inject:\n", 1)
    return text


def _with_hints(text: str, count: int) -> str:
    """Give the draft as many hints as the note has."""
    one = "  - " + "\n    ".join(f"{language}: TODO" for language in LANGUAGES) + "\n"
    return text.replace(one * _NUM_HINTS, one * max(count, 1))


def _derivation(project: Project, note: Note) -> Derivation | None:
    """Return what the note's diff says about the lab, None where it is no diff that applies."""
    match = _TARGET.search(note.fix)
    if match is None or ".." in Path(match[1]).parts or Path(match[1]).is_absolute():
        return None
    for lab in load_labs(project):
        for root in (lab.root, project.root):
            path = (root / match[1]).resolve()
            if path.is_file() and path.is_relative_to(lab.source.resolve()):
                return _taken_back(project, lab, path, match[1], note.fix)
    return None


def _taken_back(project: Project, lab: Lab, path: Path, name: str, diff: str) -> Derivation | None:
    pristine = pristine_source(project, path)
    broken = _without_fix(pristine, name, diff)
    if broken is None:
        return None
    try:
        return derivation(Change(lab, path, pristine, broken))
    except SiteError:
        return None


def _without_fix(pristine: bytes, name: str, diff: str) -> bytes | None:
    """Return the bytes before a fix, made by taking its diff back with git; None if it can't be."""
    with tempfile.TemporaryDirectory(prefix="breaklab-") as folder:
        file = Path(folder) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(pristine)
        whole = diff if diff.endswith("\n") else diff + "\n"
        try:
            done = git_apply(Path(folder), whole, "--reverse")
        except FileNotFoundError:
            return None
        return file.read_bytes() if done.returncode == 0 else None
