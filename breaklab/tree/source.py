"""The one file of the learner's that a break changes: name it, and replace it in one step."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from pathlib import Path

from breaklab.errors import TreeError
from breaklab.i18n import _
from breaklab.model import Lab, Project
from breaklab.tree.atomic import mode_of, os_errors_told, write_file
from breaklab.tree.bytecode import fresh_mtime_ns, set_mtime
from breaklab.tree.digest import tests_digest
from breaklab.tree.events import now
from breaklab.tree.record import ActiveBreak

_TEMP_NAME = ".breaklab.tmp"  # one file is written at a time, so one name is enough


def temp_path(source: Path) -> Path:
    """Return where new bytes of ``source`` lie until they are complete."""
    return source.with_name(_TEMP_NAME)


def write_source(source: Path, content: bytes, *, expected: bytes | None, mode: int) -> None:
    """Replace ``source`` by ``content`` if it still holds ``expected``.

    Its mtime moves to a second that no bytecode can hold.

    Args:
        source: a regular file, or a name that is free.
        content: all of the new bytes.
        expected: what the file holds now; None: there is no such file.
        mode: permission bits for a file that there is none of; else those of the file stay.

    Raises:
        TreeError: somebody changed the file meanwhile; it is left as they have it.
        OSError: it could not be written; it is as it was.
    """

    def complete(temp: Path) -> None:
        if expected is not None:
            _copy_attributes(source, temp)
        set_mtime(temp, fresh_mtime_ns(source))
        if _content(source) != expected:
            raise TreeError(
                _("{path} changed while breaklab worked on it; nothing was changed").format(
                    path=source
                ),
                hint=_("run the command again"),
            )

    mode = mode if expected is None else mode_of(source)
    temp = temp_path(source)
    write_file(source, content, temp=temp, mode=mode, label="source", before_rename=complete)


def _content(source: Path) -> bytes | None:
    try:
        return source.read_bytes()
    except FileNotFoundError:
        return None


def _copy_attributes(source: Path, temp: Path) -> None:
    """Give ``temp`` the owner, mode and extended attributes of ``source``, as far as we may."""
    status = source.stat()
    with contextlib.suppress(OSError):
        if (os.geteuid(), os.getegid()) != (status.st_uid, status.st_gid):
            os.chown(temp, status.st_uid, status.st_gid)
    shutil.copystat(source, temp)


def new_record(
    project: Project,
    lab: Lab,
    bug_id: str,
    file: Path,
    broken: bytes,
    pristine: bytes | None,
    hidden: bool,
) -> ActiveBreak:
    """Return the record of a break about to be put in ``file``; see ``Workspace.apply``.

    Raises:
        TreeError: the file is not what it should be.
    """
    current = read_source(lab, file)
    name = _name_in_project(project, file)
    path = project.root / name
    with os_errors_told(path):
        if pristine is not None and pristine != current:
            raise TreeError(
                _("{file} changed meanwhile; nothing was changed").format(file=name),
                hint=_("run the command again"),
            )
        if current == broken:
            raise TreeError(_("the break would change nothing; nothing was changed"))
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return ActiveBreak(
            bug_id=bug_id,
            lab=lab.name,
            file=name,
            pristine=current,
            broken=broken,
            mode=mode_of(path),
            hidden=hidden,
            applied_at=now(),
            tests_digest=tests_digest(project, lab),
        )


def read_source(lab: Lab, file: Path) -> bytes:
    """Return the bytes of a source file that a break is to go in.

    Raises:
        TreeError: there is no such file, it lies outside the lab's source, or can't be read.
    """
    try:
        if not file.is_file():
            message = _("there is no file {path} to put the break in; nothing was changed")
            raise TreeError(message.format(path=file))
        if not file.resolve().is_relative_to(lab.source.resolve()):
            message = _("{path} lies outside the lab's source {source}; nothing was changed")
            raise TreeError(message.format(path=file, source=lab.source))
        return file.read_bytes()
    except OSError as error:
        message = _("{path} can't be read ({reason}); nothing was changed")
        raise TreeError(message.format(path=file, reason=error.strerror)) from error


def _name_in_project(project: Project, file: Path) -> str:
    """Return how the record names ``file``: relative to the project's root where it can be.

    Links are followed for the file itself, so that a link stays a link.
    """
    if file.is_symlink():
        file = file.resolve()
    for path, root in ((file, project.root), (file.resolve(), project.root.resolve())):
        if path.is_relative_to(root) and ".." not in path.parts:
            return path.relative_to(root).as_posix()
    return str(file.resolve())
