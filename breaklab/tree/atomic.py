"""Files that are either as they were or wholly new, whatever step a kill strikes.

Each step of a write passes :func:`step`, so that a test can walk all of them and kill there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from breaklab.errors import TreeError
from breaklab.i18n import _

# Tests put a function here that kills the process at the nth step; nothing else uses it.
on_step: Callable[[str], None] | None = None


def step(name: str) -> None:
    """Mark a point where a kill leaves the disk in a state of its own."""
    if on_step is not None:
        on_step(name)


def write_file(
    path: Path,
    content: bytes,
    *,
    temp: Path,
    mode: int = 0o644,
    label: str = "",
    before_rename: Callable[[Path], None] | None = None,
) -> None:
    """Write ``content`` to ``temp``, sync it, and rename it over ``path``.

    Args:
        path: the file to create or replace; its folder exists.
        content: all of the new bytes.
        temp: a path on the same file system that belongs to us; what lies there is replaced. Where
            this raises it stays, and tells whoever recovers that ``path`` was not changed.
        mode: permission bits of the new file, the umask notwithstanding.
        label: what the file is, for the names of the steps.
        before_rename: called with ``temp`` once it is on disk; what it raises ends the write.

    Raises:
        OSError: the file could not be written; ``path`` is as it was.
    """
    label = label or path.name
    with contextlib.suppress(FileNotFoundError):
        temp.unlink()
    descriptor = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    step(f"{label}: temporary file made")
    try:
        _write_all(descriptor, content)
        step(f"{label}: written")
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    step(f"{label}: on disk")
    if before_rename is not None:
        before_rename(temp)
    temp.replace(path)
    step(f"{label}: renamed")
    sync_folder(path.parent)
    step(f"{label}: folder on disk")


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def rename_file(source: Path, target: Path, *, label: str = "") -> None:
    """Rename within one folder and sync the folder; needs no free space.

    Raises:
        OSError: the file could not be renamed.
    """
    source.replace(target)
    step(f"{label or target.name}: renamed")
    sync_folder(target.parent)
    step(f"{label or target.name}: folder on disk")


def remove_file(path: Path, *, label: str = "") -> None:
    """Remove ``path`` if it is there, and sync its folder.

    Raises:
        OSError: the file is there and could not be removed.
    """
    try:
        path.unlink()
    except FileNotFoundError:
        return
    step(f"{label or path.name}: removed")
    sync_folder(path.parent)
    step(f"{label or path.name}: removal on disk")


def make_folder(folder: Path) -> None:
    """Create ``folder`` in a folder that exists, unless it is there, and bring it to disk.

    Raises:
        OSError: it can't be created, or something else has its name.
    """
    if not folder.is_dir():
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Bring renames and removals in ``folder`` to disk, where the file system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def mode_of(path: Path) -> int:
    """Return the permission bits of ``path``.

    Raises:
        OSError: there is no such file.
    """
    return stat.S_IMODE(path.stat().st_mode)


def replace_file(path: Path, content: bytes, *, keep_mode: bool = False) -> None:
    """Write a file of the user's by way of a hidden one beside it.

    Args:
        path: the file to create or replace; its folder exists.
        content: all of the new bytes.
        keep_mode: keep the permission bits that ``path`` has; it exists.

    Raises:
        TreeError: it could not be written; ``path`` is as it was.
    """
    with os_errors_told(path):
        mode = mode_of(path) if keep_mode else 0o644
        write_file(path, content, temp=path.with_name(f".{path.name}.tmp"), mode=mode)


@contextlib.contextmanager
def os_errors_told(path: Path) -> Iterator[None]:
    """Turn an OSError into a :class:`TreeError` of one line; ``path`` if it names no file.

    Raises:
        TreeError: in place of any OSError; says that nothing was changed, which is the caller's
            promise to keep.
    """
    try:
        yield
    except OSError as error:
        name = os.fsdecode(error.filename) if error.filename else str(path)
        raise TreeError(_reason(error).format(path=name), hint=_hint(error)) from error


def _reason(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return _("no permission to write {path}; nothing was changed")
    if error.errno == errno.EROFS:
        return _("{path} is on a read-only file system; nothing was changed")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _("the disk is full: {path} could not be written; nothing was changed")
    reason = error.strerror or type(error).__name__
    escaped = reason.replace("{", "{{").replace("}", "}}")
    return _("{path} could not be written ({reason}); nothing was changed").replace(
        "{reason}", escaped
    )


def _hint(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return _("work on a copy of the project that you may write to")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _("free some space, then run the command again")
    return ""
