"""Describes a call, as bytes for its record; each description is made once, for they repeat."""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Any

from breaklab.ranks.places import is_users, shown_path

_MAX_CACHED = 4096


class Cache(dict[Any, Any]):
    """A dict that starts anew when it gets large, as it would with code made at run time."""

    def put(self, key: Any, value: Any) -> Any:
        """Add a value and return it."""
        if len(self) >= _MAX_CACHED:
            self.clear()
        self[key] = value
        return value


def first_tensor(value: Any) -> tuple[Any, bool]:
    """Return the first tensor of a (nested) list, and whether there are others."""
    several = False
    while isinstance(value, list | tuple):
        several = several or len(value) > 1
        value = value[0] if value else None
    return value, several


def tensor_texts(shape: Any, dtype: Any) -> bytes:
    r"""Shape and dtype as people read them: ``(3, 4)``, ``float32``; separated by ``\x1f``."""
    return f"{tuple(shape)}\x1f{str(dtype).removeprefix('torch.')}".encode()


class Places:
    """Finds the user's line that led to a call."""

    def __init__(self) -> None:
        self._users: Cache = Cache()

    def find(self) -> tuple[CodeType, int] | None:
        """Return code and line of the innermost user's frame, for :func:`place_text`."""
        frame: FrameType | None = sys._getframe(3)
        users = self._users
        while frame is not None:
            code = frame.f_code
            found = users.get(code)
            if found is None:
                found = users.put(code, is_users(code.co_filename))
            if found:
                return code, frame.f_lineno
            frame = frame.f_back
        return None


def place_text(place: tuple[CodeType, int] | None) -> bytes:
    """``file:line`` of what :meth:`Places.find` found."""
    if place is None:
        return b""
    return f"{shown_path(place[0].co_filename)}:{place[1]}".encode(errors="replace")
