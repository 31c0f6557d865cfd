"""Describes a call, as bytes for its record; each description is made once, for they repeat."""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Any

from breaklab.ranks.places import is_users, shown_path

_MAX_CACHED = 4096
_SEQUENCES = (list, tuple)


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
    while value.__class__ in _SEQUENCES:
        several = several or len(value) > 1
        value = value[0] if value else None
    return value, several


def tensor_texts(shape: Any, dtype: Any) -> bytes:
    r"""Shape and dtype as people read them: ``(3, 4)``, ``float32``; separated by ``\x1f``."""
    return f"{tuple(shape)}\x1f{str(dtype).removeprefix('torch.')}".encode()


class Places:
    """Finds the user's line that led to a call.

    Code objects are told apart by id and kept alive, for to hash one is to hash all its bytecode.
    """

    def __init__(self) -> None:
        self._codes: dict[int, tuple[CodeType, bool]] = {}

    def find(self) -> tuple[int, int]:
        """Return the id of the code and the line of the innermost frame that is the user's."""
        frame: FrameType | None = sys._getframe(3)
        codes = self._codes
        while frame is not None:
            code = frame.f_code
            entry = codes.get(id(code))
            if entry is None:
                entry = codes[id(code)] = (code, is_users(code.co_filename))
            if entry[1]:
                return id(code), frame.f_lineno
            frame = frame.f_back
        return 0, 0

    def text(self, place: tuple[int, int]) -> bytes:
        """``file:line`` of what :meth:`find` returned."""
        entry = self._codes.get(place[0])
        if entry is None:
            return b""
        return f"{shown_path(entry[0].co_filename)}:{place[1]}".encode(errors="replace")
