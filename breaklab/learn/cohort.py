"""Many learners' progress as one table: where a class gets stuck."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from breaklab.errors import BreaklabError
from breaklab.i18n import _
from breaklab.learn.progress import State


@dataclass(frozen=True)
class CohortRow:
    """One break, over all learners who met it."""

    bug_id: str
    learners: int  # who applied it, or were given it as solved or revealed
    solved: int
    given_up: int
    median_minutes: float | None  # of those who solved it
    median_hints: float | None  # of those who met it


def read_progress(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Return the documents that ``breaklab progress --json`` printed.

    Raises:
        BreaklabError: a file can't be read or is no such document.
    """
    documents = []
    for path in paths:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            rows = document["breaks"]
            if not all(_is_row(row) for row in rows):
                raise TypeError
        except OSError as error:
            message = _("{path} can't be read: {reason}")
            raise BreaklabError(message.format(path=path, reason=error.strerror)) from error
        except (ValueError, KeyError, TypeError) as error:
            raise BreaklabError(
                _("{path} is not what breaklab progress --json prints").format(path=path),
                hint=_("each learner makes one: breaklab progress --json > NAME.json"),
            ) from error
        documents.append(document)
    return documents


def _is_row(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and isinstance(row.get("bug_id"), str | None)
        and row.get("state") in {state.value for state in State}
        and isinstance(row.get("minutes"), int | float)
        and isinstance(row.get("hints"), list)
    )


def merge_progress(documents: Sequence[Mapping[str, Any]]) -> list[CohortRow]:
    """Return one row for each break that somebody met; the least solved ones first."""
    by_break: dict[str, list[Mapping[str, Any]]] = {}
    for document in documents:
        for row in document["breaks"]:
            if row["bug_id"] and (row.get("applied_at") or row["state"] != State.OPEN):
                by_break.setdefault(row["bug_id"], []).append(row)
    rows = [_merge(bug_id, met) for bug_id, met in by_break.items()]
    return sorted(rows, key=lambda row: (row.solved / row.learners, row.bug_id))


def _merge(bug_id: str, met: Sequence[Mapping[str, Any]]) -> CohortRow:
    solved = [row for row in met if row["state"] == State.SOLVED]
    return CohortRow(
        bug_id=bug_id,
        learners=len(met),
        solved=len(solved),
        given_up=sum(row["state"] == State.GIVEN_UP for row in met),
        median_minutes=median(row["minutes"] for row in solved) if solved else None,
        median_hints=median(len(row["hints"]) for row in met),
    )
