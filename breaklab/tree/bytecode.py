"""Cached bytecode of a changed source must never run.

Python trusts a ``.pyc`` whose stored second and size equal its source's; a change of the same
length within the same second therefore runs the old code.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import time
from pathlib import Path

_NS = 1_000_000_000
_HEADER = 16  # bytes: magic, flags, mtime, size


def fresh_mtime_ns(source: Path) -> int:
    """Return an mtime for new bytes of ``source``, in a second that no cache can hold yet.

    It is the present, unless the old file or a cache of it lies in the present or the future.
    """
    seconds = [_cached_second(cache) for cache in _caches(source)]
    with contextlib.suppress(OSError):
        seconds.append(source.stat().st_mtime_ns // _NS)
    now = time.time_ns()
    newest = max(seconds, default=0)
    return now if now // _NS > newest else (newest + 1) * _NS


def set_mtime(path: Path, mtime_ns: int) -> None:
    """Set the mtime of ``path``, leaving when it was last read.

    Raises:
        OSError: it can't be set.
    """
    os.utime(path, ns=(path.stat().st_atime_ns, mtime_ns))


def remove_bytecode(source: Path) -> None:
    """Remove every cached bytecode of ``source``, of any interpreter; what can't go, stays.

    The fresh mtime has made them stale already, except those that Python trusts unchecked.
    """
    for cache in _caches(source):
        with contextlib.suppress(OSError):
            cache.unlink()


def _caches(source: Path) -> list[Path]:
    """Return the existing ``.pyc`` files of ``source``."""
    folders = {source.parent / "__pycache__"}
    with contextlib.suppress(NotImplementedError, ValueError):
        # Elsewhere, where PYTHONPYCACHEPREFIX is set.
        folders.add(Path(importlib.util.cache_from_source(str(source))).parent)
    found = []
    for folder in folders:
        with contextlib.suppress(OSError):
            found += [path for path in folder.iterdir() if _is_cache(path.name, source.stem)]
    return found


def _is_cache(name: str, stem: str) -> bool:
    """Tell ``stem.TAG.pyc`` and ``stem.TAG.opt-N.pyc`` from another module's ``stem.x.TAG.pyc``."""
    rest = name.removeprefix(f"{stem}.")
    if rest == name or not rest.endswith(".pyc"):
        return False
    tag, _, optimisation = rest.removesuffix(".pyc").partition(".")
    return bool(tag) and (not optimisation or optimisation.startswith("opt-"))


def _cached_second(cache: Path) -> int:
    """Return the second that ``cache`` stores for its source; 0 where it stores none."""
    with contextlib.suppress(OSError):
        with cache.open("rb") as file:
            header = file.read(_HEADER)
        if len(header) == _HEADER and not header[4] & 1:
            return int.from_bytes(header[8:12], "little")
    return 0
