"""Reads the numbers that ranks wrote, as JSON lines; a file may be missing, torn, or too long."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

MAX_ROWS = 100_000
MAX_BYTES = 64_000_000  # of one rank's file
_MAX_ROW_BYTES = 1_000_000


def read_metrics(folder: Path | None, num_ranks: int) -> dict[int, tuple[Mapping[str, Any], ...]]:
    """Return the rows of ``folder/rank{rank}.jsonl`` for each rank that wrote a file.

    A rank that is killed leaves a torn last line; such lines are left out.
    """
    if folder is None:
        return {}
    found = {}
    for rank in range(num_ranks):
        path = folder / f"rank{rank}.jsonl"
        if path.is_file():
            found[rank] = tuple(_rows(path))
    return found


def _rows(path: Path) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = []
    with path.open("rb") as file:
        lines = iter(lambda: file.readline(_MAX_ROW_BYTES), b"")
        for line in islice(lines, MAX_ROWS):
            if file.tell() > MAX_BYTES:
                break
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(row, dict):
                rows.append(row)
    return rows
