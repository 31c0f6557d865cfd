r"""Unified diffs that ``git apply`` accepts, whatever the file's newlines.

Lines end at ``\n`` only, as for git: a form feed, a lone ``\r`` or U+2028 belongs to its line.
"""

from __future__ import annotations

import difflib

_NO_NEWLINE = b"\\ No newline at end of file\n"


def fix_diff(broken: bytes, pristine: bytes, path: str, context: int = 3) -> str:
    """Return the unified diff from ``broken`` to ``pristine``; empty where they are equal.

    Args:
        broken: what ``git apply`` will find.
        pristine: what it will leave.
        path: the file, relative to where the diff is applied, with ``/``.
        context: unchanged lines around each change.

    Raises:
        UnicodeDecodeError: the file is not UTF-8; a text can't hold such a diff.
    """
    lines = difflib.diff_bytes(
        difflib.unified_diff,
        _lines(broken),
        _lines(pristine),
        b"a/" + path.encode(),
        b"b/" + path.encode(),
        n=context,
    )
    out = [line if line.endswith(b"\n") else line + b"\n" + _NO_NEWLINE for line in lines]
    return b"".join(out).decode("utf-8")


def changed_lines(broken: bytes, pristine: bytes) -> tuple[list[bytes], list[bytes]]:
    """Return the lines that only ``broken`` has, and those that only ``pristine`` has."""
    removed: list[bytes] = []
    added: list[bytes] = []
    old, new = _lines(broken), _lines(pristine)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            removed.extend(old[i1:i2])
            added.extend(new[j1:j2])
    return removed, added


def _lines(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    ended = [line + b"\n" for line in lines[:-1]]
    return ended + ([lines[-1]] if lines[-1] else [])
