"""Starts the record of a rank's communication as soon as the rank has torch.distributed."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from breaklab.ranks.records import Page

_MODULE = "torch.distributed"


def record_into(page: Page) -> None:
    """Record what this process communicates in ``page``, without importing torch for it.

    A rank that never imports torch.distributed has nothing to record; one that does so later is
    recorded from then on.
    """
    if _MODULE in sys.modules:
        _install(page)
    else:
        sys.meta_path.insert(0, _AfterImport(lambda: _install(page)))


def _install(page: Page) -> None:
    from breaklab.ranks.records_install import install

    reason = install(page)
    if reason:
        print(reason, file=sys.stderr)


class _AfterImport(MetaPathFinder):
    """Finds one module as it would be found anyway, and calls back once it is imported."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module's own spec with a loader that calls back; None for other modules."""
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _CallingBack(spec.loader, self._callback)
        return spec


class _CallingBack(Loader):
    """A loader that calls back when its module has been executed."""

    def __init__(self, loader: Loader, callback: Callable[[], None]) -> None:
        self._loader = loader
        self._callback = callback

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Create the module as its own loader does."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module, give it its own loader back, and call back."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._callback()
