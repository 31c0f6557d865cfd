"""Where breaklab's state lies on disk, which version of it, and how it is read.

``.breaklab/`` in the project's root holds, besides a ``.gitignore`` that hides it from git:

- ``schema.json``: the version of all that follows; absent means 1
- ``active.json``: the break that is applied; ``applying.json`` and ``reverting.json`` exist only
  while a command works, or after one was killed
- ``events.jsonl``: what happened, append-only
- ``saved/``: copies of sources, made before a revert changed them
- ``lock`` and ``holder.json``: who works on the tree right now
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from breaklab.errors import TreeError
from breaklab.i18n import _
from breaklab.model import Project
from breaklab.tree.atomic import make_folder, write_file

SCHEMA = 1


def active_path(project: Project) -> Path:
    """Return the file that holds the record of the applied break."""
    return project.state_dir / "active.json"


def applying_path(project: Project) -> Path:
    """Return the file that holds the record while ``apply`` works."""
    return project.state_dir / "applying.json"


def reverting_path(project: Project) -> Path:
    """Return the file that says, while ``revert`` works, what it is about to write."""
    return project.state_dir / "reverting.json"


def prepare_state_dir(project: Project) -> None:
    """Create the state folder, invisible to git.

    Raises:
        OSError: it can't be created, or something else has its name.
    """
    make_folder(project.state_dir)
    ignore = project.state_dir / ".gitignore"
    if not ignore.exists() or not ignore.stat().st_size:
        ignore.write_bytes(b"*\n")


def write_schema(project: Project) -> None:
    """Note the version of the state, once; the caller holds the lock.

    Raises:
        OSError: it could not be written.
    """
    if not (project.state_dir / "schema.json").exists():
        write_json(project.state_dir / "schema.json", {"schema": SCHEMA})


def check_schema(project: Project) -> None:
    """Refuse a state that another version of breaklab wrote and this one can't read.

    Raises:
        TreeError: the state is newer, or its version can't be read.
    """
    found = read_json(project.state_dir / "schema.json")
    if found is None:
        return
    schema = found.get("schema")
    if not isinstance(schema, int):
        raise damaged(project.state_dir / "schema.json", _("no version number in it"))
    if schema > SCHEMA:
        raise TreeError(
            _(
                "{path} was written by a newer breaklab (state version {found}, "
                "this one knows {known}); nothing was changed"
            ).format(path=project.state_dir, found=schema, known=SCHEMA),
            hint=_("update breaklab: pip install --upgrade breaklab"),
        )


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in ``path``, or None where there is no such file.

    Raises:
        TreeError: the file can't be read, or holds something else.
    """
    try:
        value = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise damaged(path, error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise damaged(path, _("not JSON")) from error
    if not isinstance(value, dict):
        raise damaged(path, _("not a JSON object"))
    return value


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write ``value`` to ``path`` so that a kill leaves the old file or the new one.

    Raises:
        OSError: it could not be written; the old file is as it was.
    """
    content = json.dumps(value, indent=2).encode() + b"\n"
    write_file(path, content, temp=path.with_name(path.name + ".tmp"))


def remove_temporary_files(project: Project) -> None:
    """Remove what a killed command left half-written; the caller holds the lock."""
    for temp in project.state_dir.glob("*.tmp"):
        with contextlib.suppress(OSError):
            temp.unlink()


def damaged(path: Path, reason: str) -> TreeError:
    """Return the error for a state file that this breaklab can't make sense of."""
    return TreeError(
        _("{path} can't be read ({reason}); nothing was changed").format(path=path, reason=reason),
        hint=_(
            "breaklab never writes such a file: put it back from a backup, or move it away and put "
            "your source back yourself (git diff shows what differs)"
        ),
    )
