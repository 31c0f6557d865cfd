"""What work on many breaks shares: for each lab one warm parent and its controls; a few threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from types import TracebackType
from typing import Self, TypeVar

from breaklab.model import Lab, Project
from breaklab.prove.controls import Controls
from breaklab.ranks.launch import warm_parent
from breaklab.ranks.warm import WarmParent

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workbench:
    """Warm parents and controls of a project's labs; use as a context manager.

    Args:
        project: whose labs.
        overlay: pristine bytes by path relative to the project's root, where the tree has others.
    """

    def __init__(self, project: Project, overlay: Mapping[str, bytes]) -> None:
        self.project = project
        self._overlay = overlay
        self._stack = ExitStack()
        self._pools: list[ThreadPoolExecutor] = []
        self._lock = threading.Lock()
        self._labs: dict[str, tuple[WarmParent, Controls]] = {}

    def __enter__(self) -> Self:
        """Start nothing yet: a lab's warm parent starts when the lab is first asked for."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Wait for the work that has begun, drop the rest, then end the warm parents.

        After Ctrl-C nothing is waited for: without its warm parent, work that has begun ends.
        """
        hurried = kind is not None and issubclass(kind, KeyboardInterrupt)
        for pool in self._pools:
            pool.shutdown(wait=not hurried, cancel_futures=True)
        self._stack.close()
        for pool in self._pools:
            pool.shutdown(wait=True)

    def of(self, lab: Lab) -> tuple[WarmParent, Controls]:
        """Return the warm parent and the controls of a lab; callable from several threads."""
        with self._lock:
            if lab.name not in self._labs:
                warm = self._stack.enter_context(warm_parent(lab))
                self._labs[lab.name] = warm, Controls(self.project, lab, self._overlay)
            return self._labs[lab.name]

    def each(
        self, work: Callable[[Item], Result], items: Iterable[Item], jobs: int
    ) -> Iterator[Result]:
        """Yield what ``work`` makes of each item, whichever is ready first.

        Args:
            work: called from several threads; what it raises is raised here.
            items: what to work on.
            jobs: how many at a time.
        """
        pool = ThreadPoolExecutor(max_workers=jobs)
        self._pools.append(pool)
        futures = [pool.submit(work, item) for item in items]
        for future in as_completed(futures):
            yield future.result()
