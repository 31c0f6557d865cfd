"""Breaks that learners wrote down in Markdown, as ``- bug-id: ...`` lists of YAML."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from breaklab.i18n import _
from breaklab.spec.breaks import BUG_ID
from breaklab.spec.reader import Reader
from breaklab.spec.yamltree import parse_yaml, read_text

KEYS = ("bug-id", "concept", "symptom", "hidden_cause", "fix_diff", "date", "lesson")
REQUIRED = ("bug-id", "concept", "symptom", "hidden_cause", "hint_1", "fix_diff")
_HINTS = tuple(f"hint_{level}" for level in range(1, 10))
_FENCE = re.compile(r"^\s*(```|~~~)")
_START = re.compile(r"^- +[\"']?[\w-]+[\"']?:")


@dataclass(frozen=True)
class Note:
    """One break as a learner wrote it down."""

    path: Path
    line: int  # from 1
    bug_id: str
    concept: str
    symptom: str
    hidden_cause: str
    hints: tuple[str, ...]
    fix: str  # a diff, or words


def load_notes(path: Path) -> list[Note]:
    """Return the breaks written down in a Markdown file.

    Raises:
        SpecError: with every finding: file, line, column, and the repaired line where a text only
            lacks quotes.
    """
    return [note for block in _blocks(read_text(path)) for note in _notes(path, block)]


def _blocks(text: str) -> list[str]:
    """Return each list of YAML in a Markdown text, on the lines that it has in the file.

    A list begins at a line such as ``- bug-id: 35-01`` and ends before the next line that is
    neither indented nor another item: a heading, a paragraph, the end of a fence.
    """
    blocks: list[str] = []
    current: list[str] = []
    for number, line in enumerate(text.split("\n")):
        continues = bool(current) and (not line.strip() or line.startswith((" ", "\t")))
        if _START.match(line) or (continues and not _FENCE.match(line)):
            if not current:
                current = [""] * number
            current.append(line)
        elif current:
            blocks.append("\n".join(current))
            current = []
    return blocks + (["\n".join(current)] if current else [])


def _notes(path: Path, block: str) -> list[Note]:
    reader = Reader(path, parse_yaml(path, block))
    notes = reader.items(reader.root, _("the list"), lambda node, _name: _note(reader, node))
    reader.finish()
    return [note for note in notes if note.bug_id]


def _note(reader: Reader, node: yaml.Node) -> Note:
    fields = reader.fields(node, (*KEYS, *_HINTS), REQUIRED, _("an entry"))
    texts = {key: reader.string(fields.get(key), key) for key in KEYS}
    bug_id = texts["bug-id"]
    if bug_id and not BUG_ID.fullmatch(bug_id):
        message = _("`{what}` is `{bug_id}`; it must look like 35-01")
        reader.add(fields["bug-id"], "bug-id", message.format(what="bug-id", bug_id=bug_id))
    return Note(
        path=reader.path,
        line=node.start_mark.line + 1,
        bug_id=bug_id,
        concept=texts["concept"],
        symptom=texts["symptom"],
        hidden_cause=texts["hidden_cause"],
        hints=tuple(reader.string(fields[key], key) for key in _HINTS if key in fields),
        fix=texts["fix_diff"],
    )
