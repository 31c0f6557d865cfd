"""The record of the one break that is applied: enough to put every byte back."""

from __future__ import annotations

import base64
import hashlib
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from breaklab.errors import TreeError
from breaklab.i18n import _
from breaklab.model import Project
from breaklab.tree.state import active_path, check_schema, damaged, read_json


class SourceState(StrEnum):
    """What the source file of the applied break is like now."""

    BROKEN = "broken"  # as apply left it
    PRISTINE = "pristine"  # as it was before apply: fixed like the original
    EDITED = "edited"  # neither: the learner's
    MISSING = "missing"
    REPLACED = "replaced"  # a folder, a link or a device has its name


@dataclass(frozen=True)
class ActiveBreak:
    """The break that is applied, and the bytes on both sides of it."""

    bug_id: str
    lab: str  # name of the lab
    file: str  # relative to the project's root, or absolute where it lies outside
    pristine: bytes
    broken: bytes
    mode: int  # permission bits at apply
    hidden: bool = False  # a mystery break: its id stays hidden until it is solved
    solved: bool = False
    applied_at: str = ""  # ISO 8601, UTC; for people, nothing is decided by it
    tests_digest: Mapping[str, str] = field(default_factory=dict)  # path -> sha256, at apply

    def source_path(self, project: Project) -> Path:
        """Return the absolute path of the source file.

        Raises:
            TreeError: the path leads out of the project and its labs. A record that came with a
                stranger's project must not decide what revert overwrites.
        """
        path = project.root / self.file
        where = path.parent.resolve()
        if any(where.is_relative_to(root.resolve()) for root in (project.root, *project.labs)):
            return path
        raise damaged(
            active_path(project), _("{file} lies outside the project").format(file=self.file)
        )

    def read_source(self, project: Project) -> bytes:
        """Return the bytes of the source file as it is now.

        Raises:
            TreeError: the file is gone, is no file any more, or can't be read.
        """
        state, content = self.look(project)
        if content is None:
            raise TreeError(
                self._why_unreadable(state), hint=_("to get it back: breaklab revert --discard")
            )
        return content

    def source_state(self, project: Project) -> SourceState:
        """Return what the source file is like now.

        Raises:
            TreeError: the file is there but can't be read.
        """
        return self.look(project)[0]

    def look(self, project: Project) -> tuple[SourceState, bytes | None]:
        """Return the state of the source file and its bytes; None where it is no file.

        Raises:
            TreeError: the file is there but can't be read.
        """
        path = self.source_path(project)
        try:
            if not stat.S_ISREG(path.lstat().st_mode):
                return SourceState.REPLACED, None
            content = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return SourceState.MISSING, None
        except OSError as error:
            raise TreeError(
                _("{file} can't be read ({reason}); nothing was changed").format(
                    file=self.file, reason=error.strerror
                )
            ) from error
        if content == self.broken:
            return SourceState.BROKEN, content
        if content == self.pristine:
            return SourceState.PRISTINE, content
        return SourceState.EDITED, content

    @property
    def is_mystery(self) -> bool:
        """Whether the break's id must not be shown."""
        return self.hidden and not self.solved

    def _why_unreadable(self, state: SourceState) -> str:
        if state is SourceState.MISSING:
            return _("{file} is gone").format(file=self.file)
        return _("{file} is not a regular file any more").format(file=self.file)


def sha256(content: bytes) -> str:
    """Return the SHA-256 of ``content`` in hex."""
    return hashlib.sha256(content).hexdigest()


def to_json(active: ActiveBreak) -> dict[str, Any]:
    """Return the record as it is written to disk.

    The bytes are in base64: exact in any encoding, and a learner's ``grep -r`` doesn't stumble
    over the original line.
    """
    return {
        "bug_id": active.bug_id,
        "lab": active.lab,
        "file": active.file,
        "mode": f"{active.mode:o}",
        "hidden": active.hidden,
        "solved": active.solved,
        "applied_at": active.applied_at,
        "pristine_sha256": sha256(active.pristine),
        "broken_sha256": sha256(active.broken),
        "pristine": base64.b64encode(active.pristine).decode(),
        "broken": base64.b64encode(active.broken).decode(),
        "tests_digest": dict(active.tests_digest),
    }


def from_json(value: Mapping[str, Any], path: Path) -> ActiveBreak:
    """Return the record that ``path`` holds.

    Raises:
        TreeError: something is missing, of another type, or does not match its hash.
    """
    try:
        active = ActiveBreak(
            bug_id=_text(value["bug_id"]),
            lab=_text(value["lab"]),
            file=_text(value["file"]),
            pristine=_bytes(value, "pristine"),
            broken=_bytes(value, "broken"),
            mode=int(_text(value["mode"]), 8) & 0o7777,
            hidden=bool(value["hidden"]),
            solved=bool(value["solved"]),
            applied_at=_text(value["applied_at"]),
            tests_digest={_text(key): _text(each) for key, each in value["tests_digest"].items()},
        )
    except KeyError as error:
        raise damaged(path, _("{key} is missing").format(key=error)) from error
    except (TypeError, ValueError, AttributeError) as error:
        raise damaged(path, str(error)) from error
    return active


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(_("{value!r} is no text").format(value=value))
    if "\0" in value:
        raise ValueError(_("a NUL character in a text"))
    return value


def _bytes(value: Mapping[str, Any], key: str) -> bytes:
    content = base64.b64decode(_text(value[key]), validate=True)
    if sha256(content) != value[f"{key}_sha256"]:
        raise ValueError(_("{key} does not match its hash").format(key=key))
    return content


def read_record(path: Path) -> ActiveBreak | None:
    """Return the record in ``path``, or None where there is none.

    Raises:
        TreeError: the file holds no record that this breaklab can read.
    """
    value = read_json(path)
    return None if value is None else from_json(value, path)


def read_active(project: Project) -> ActiveBreak | None:
    """Return the break that is applied, or None; takes no lock and writes nothing.

    Call ``recover_if_needed`` first where a killed command could have left something.

    Raises:
        TreeError: the state is damaged or from a newer breaklab.
    """
    check_schema(project)
    return read_record(active_path(project))
