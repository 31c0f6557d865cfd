"""What happened in a project, in order: an append-only file of JSON lines.

Order is the order of lines; the time is for people, since clocks jump. A line that a kill or a
full disk tore is skipped by the reader and stays in the file.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from breaklab.model import Project
from breaklab.tree.atomic import os_errors_told, step
from breaklab.tree.state import check_schema, damaged, prepare_state_dir

# Written by the workspace itself; other kinds belong to whoever appends them.
APPLIED = "applied"
REVERTED = "reverted"
SOLVED = "solved"


@dataclass(frozen=True)
class Event:
    """One thing that happened."""

    kind: str
    bug_id: str
    time: str = ""  # ISO 8601, UTC
    data: Mapping[str, Any] = field(default_factory=dict)


def append_event(project: Project, kind: str, bug_id: str, /, **data: Any) -> None:
    """Append one event; needs no lock, and one write holds the whole line.

    Raises:
        TreeError: the state is from a newer breaklab, or the file could not be written.
    """
    check_schema(project)
    path = _path(project)
    with os_errors_told(path):
        prepare_state_dir(project)
        line = {"time": now(), "kind": kind, "bug_id": bug_id, "data": data}
        _append_line(path, json.dumps(line).encode() + b"\n")


def _append_line(path: Path, line: bytes) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        content = b"\n" + line if torn else line
        if os.write(descriptor, content) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(descriptor)
    step("event: written")


def read_events(project: Project) -> list[Event]:
    """Return all events, oldest first; lines that are torn or hold something else are skipped.

    Raises:
        TreeError: the state is from a newer breaklab, or the file can't be read.
    """
    check_schema(project)
    path = _path(project)
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise damaged(path, error.strerror or str(error)) from error
    events = (_parse(line) for line in content.split(b"\n") if line.strip())
    return [event for event in events if event is not None]


def _parse(line: bytes) -> Event | None:
    try:
        value = json.loads(line)
        kind, bug_id, data = value["kind"], value["bug_id"], value.get("data", {})
        time = value.get("time", "")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if not (isinstance(kind, str) and isinstance(bug_id, str) and isinstance(data, dict)):
        return None
    return Event(kind, bug_id, str(time), data)


def now() -> str:
    """Return the time in UTC, ISO 8601 to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _path(project: Project) -> Path:
    return project.state_dir / "events.jsonl"
