"""The lab's source as it is without the break that may be applied now."""

from __future__ import annotations

from pathlib import Path

from breaklab.model import Project
from breaklab.tree.workspace import read_active


def pristine_sources(project: Project) -> dict[Path, bytes]:
    """Return the pristine bytes of the file that has a break in it now; empty if none has."""
    active = read_active(project)
    return {active.source_path(project).resolve(): active.pristine} if active else {}


def pristine_source(project: Project, path: Path) -> bytes:
    """Return the bytes of one source file without a break; ``path`` is absolute, links resolved."""
    known = pristine_sources(project).get(path)
    return path.read_bytes() if known is None else known
