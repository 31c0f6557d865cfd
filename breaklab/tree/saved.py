"""Copies of sources, made before a revert changes or forgets them."""

from __future__ import annotations

from pathlib import Path, PurePath

from breaklab.model import Project
from breaklab.tree.atomic import make_folder, write_file

_MAX_STEM = 200  # bytes of a file name that leave room for label, number and suffix


def save_copy(project: Project, file: str, label: str, content: bytes, mode: int) -> Path:
    """Save ``content`` under ``.breaklab/saved``; the caller holds the lock.

    Args:
        project: whose state folder to use.
        file: the name of the source that the bytes are of.
        label: what kind of copy it is, as part of its name.
        content: the bytes to save.
        mode: permission bits of the copy.

    Returns:
        The path of the copy; an older one if it holds the same bytes already.

    Raises:
        OSError: it could not be written.
    """
    folder = project.state_dir / "saved"
    make_folder(folder)
    name = PurePath(file)
    stem = name.stem.encode(errors="surrogateescape")[:_MAX_STEM].decode(errors="replace")
    number = 1
    while (path := folder / f"{stem}.{label}.{number}{name.suffix}").exists():
        if path.read_bytes() == content:
            return path
        number += 1
    temp = project.state_dir / "saved.tmp"
    write_file(path, content, temp=temp, mode=mode | 0o600, label="saved copy")
    return path
