"""Imports of a lab's source that always read the source itself, never bytecode of an older one.

A learner's plain ``pytest`` leaves ``.pyc`` files; one that was written in the same second as an
edit of the same length would be taken for current, and the old code would run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.abc import PathEntryFinder
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
)
from pathlib import Path
from types import CodeType


class FreshSourceLoader(SourceFileLoader):
    """Compiles the source at each import; neither reads nor writes bytecode."""

    def get_code(self, fullname: str) -> CodeType:
        """Return the code object of the source as it is on disk now."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def run_from(source: Path) -> None:
    """Put ``source`` first on ``sys.path`` and import what lies in it from its source only."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(source))
    sys.path_hooks.insert(0, _hook_for(source))
    sys.path_importer_cache.clear()


def _hook_for(source: Path) -> Callable[[str], PathEntryFinder]:
    make_finder = FileFinder.path_hook(
        (ExtensionFileLoader, EXTENSION_SUFFIXES), (FreshSourceLoader, SOURCE_SUFFIXES)
    )

    def hook(entry: str) -> PathEntryFinder:
        path = Path(entry)
        # An environment may lie inside the source; it is not edited, and bytecode speeds it up.
        if not path.is_relative_to(source) or "site-packages" in path.parts:
            raise ImportError(f"{entry} is not in {source}")
        return make_finder(entry)

    return hook


def top_level_names(source: Path) -> list[str]:
    """Return the names of packages and modules directly in ``source``, sorted."""
    names = set()
    for entry in source.iterdir() if source.is_dir() else ():
        name = entry.stem if entry.suffix == ".py" else entry.name
        if name.isidentifier() and (entry.suffix == ".py" or (entry / "__init__.py").is_file()):
            names.add(name)
    return sorted(names)


def imported_before(source: Path) -> list[str]:
    """Return what is in ``source`` and already imported, so that an edit of it could not count.

    Names of the standard library don't count: a folder may hold a ``queue.py`` that nothing uses.
    """
    ours = {"breaklab", *sys.stdlib_module_names}
    return [name for name in top_level_names(source) if name in sys.modules and name not in ours]


def origins(source: Path) -> dict[str, str]:
    """Return, for each package or module in ``source`` that is imported, the file it came from."""
    found = {}
    for name in top_level_names(source):
        module = sys.modules.get(name)
        if module is not None:
            found[name] = getattr(module, "__file__", None) or ""
    return found
