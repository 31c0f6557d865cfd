"""What ``list`` shows of each break, kept so that a whole catalogue need not be parsed each time.

A kept row counts as long as its file's time and size are the same. Only texts to look at come from
here: whatever is applied, run or proven is read from the spec itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from breaklab.errors import SpecError
from breaklab.model import BreakSpec, Project, Text
from breaklab.spec.catalogue import load_catalogue, spec_files
from breaklab.tree.state import prepare_state_dir

_FORMAT = 1

Stamps = dict[str, list[int]]


@dataclass(frozen=True)
class Row:
    """One break as ``list`` shows it."""

    bug_id: str
    family: str
    difficulty: int
    symptom: dict[str, str]  # by language

    def symptom_in(self, language: str) -> str:
        """Return the symptom in ``language``, else in another one."""
        return Text(self.symptom).get(language)


@dataclass(frozen=True)
class Overview:
    """All breaks of a project, and the specs that can't be used."""

    rows: tuple[Row, ...]
    broken: dict[Path, SpecError]


def load_overview(project: Project) -> Overview:
    """Return the rows of all breaks, from what was kept where no spec has changed since."""
    path = project.state_dir / "cache" / "overview.json"
    stamps = _stamps(spec_files(project))
    kept = _read(path, stamps)
    if kept is not None:
        return Overview(kept, {})
    catalogue = load_catalogue(project)
    rows = tuple(map(_row, catalogue.specs.values()))
    if not catalogue.broken:  # what is broken is told with its place, so it is read each time
        _write(project, path, stamps, rows)
    return Overview(rows, catalogue.broken)


def _row(spec: BreakSpec) -> Row:
    return Row(spec.bug_id, spec.family, spec.difficulty, dict(spec.symptom.by_language))


def _stamps(files: Iterable[Path]) -> Stamps:
    stamps = {}
    for file in files:
        with suppress(OSError):
            status = file.stat()
            stamps[str(file)] = [status.st_mtime_ns, status.st_size]
    return stamps


def _read(path: Path, stamps: Stamps) -> tuple[Row, ...] | None:
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept: dict[str, Any] = json.loads(path.read_bytes())
        if kept["format"] == _FORMAT and kept["stamps"] == stamps:
            return tuple(Row(**row) for row in kept["rows"])
    return None


def _write(project: Project, path: Path, stamps: Stamps, rows: tuple[Row, ...]) -> None:
    kept = {"format": _FORMAT, "stamps": stamps, "rows": [asdict(row) for row in rows]}
    with suppress(OSError):  # without it the next list is only slower
        prepare_state_dir(project)
        path.parent.mkdir(exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(kept), encoding="utf-8")
        partial.replace(path)
