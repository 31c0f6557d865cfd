"""How far proofs are, on a terminal: a bar, the time so far, and what each proof does just now."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from breaklab.cli.render import Screen


class Bar(Protocol):
    """Shows how far a number of proofs are."""

    def phase(self, name: str, phase: str) -> None:
        """Take in that a proof begins a phase; called from any thread."""

    def done(self, name: str) -> None:
        """Take in that a proof is done."""

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Keep the bar off the screen while something else is printed."""
        yield


class NoBar:
    """For a pipe, or for ``--json``."""

    def phase(self, name: str, phase: str) -> None:
        """Show nothing."""

    def done(self, name: str) -> None:
        """Show nothing."""

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Let it be printed."""
        yield


class TerminalBar:
    """A bar at the foot of standard error; it leaves nothing behind."""

    def __init__(self, screen: Screen, total: int) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )
        from rich.table import Column

        console = Console(
            stderr=True, markup=False, highlight=False, emoji=False, no_color=screen.no_color
        )
        self._progress = Progress(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn(
                "{task.description}",
                markup=False,
                table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
            ),
            console=console,
            transient=True,
            expand=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._progress.add_task("", total=total)
        self._running: dict[str, str] = {}
        self._lock = threading.Lock()

    def phase(self, name: str, phase: str) -> None:
        """Say what a proof does now."""
        with self._lock:
            self._running[name] = phase
            self._describe()

    def done(self, name: str) -> None:
        """Move the bar on."""
        with self._lock:
            self._running.pop(name, None)
            self._describe()
        self._progress.advance(self._task)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Take the bar off the screen, and draw it anew below what was printed."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def start(self) -> None:
        """Begin to draw."""
        self._progress.start()

    def stop(self) -> None:
        """Take the bar off the screen."""
        self._progress.stop()

    def _describe(self) -> None:
        text = ", ".join(f"{name} {phase}" for name, phase in sorted(self._running.items()))
        self._progress.update(self._task, description=text)


@contextmanager
def proof_bar(screen: Screen, total: int, *, hidden: bool) -> Iterator[Bar]:
    """Give a bar for ``total`` proofs; one that shows nothing where no terminal sees it."""
    if hidden or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield NoBar()
        return
    bar = TerminalBar(screen, total)
    bar.start()
    try:
        yield bar
    finally:
        bar.stop()
