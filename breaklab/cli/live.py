"""What is on screen while ranks run: their lines, and on a terminal one moving lane for each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from breaklab.cli.render import Screen

if TYPE_CHECKING:
    from breaklab.ranks.jobs import Line, RunEvent, RunReport, Stall


class Display(Protocol):
    """Shows a run while it goes on."""

    def line(self, line: Line) -> None:
        """Show one line that a rank printed."""

    def event(self, event: RunEvent) -> None:
        """Take in what happened to a rank, or what it does."""

    def finish(self, report: RunReport) -> None:
        """Show how it ended: for a stall, that nothing will come any more."""


def prefixed(line: Line) -> str:
    """Return a rank's line with its ``[rank=R]`` prefix, added only where the lab printed none."""
    prefix = f"[rank={line.rank}]"
    return line.text if line.text.startswith(prefix) else f"{prefix} {line.text}"


def stall_line(stall: Stall) -> str:
    """Return the line for a stall; the same in every language, so that programs can wait for it."""
    if stall.kind == "proven":
        return f"[STALL: proven after {stall.seconds:.1f} s, no further output possible]"
    return f"[STALL: {stall.seconds:.0f} seconds, no further output]"


class PlainDisplay:
    """Prints each line the moment a rank has written it."""

    def __init__(self, screen: Screen, *, err: bool) -> None:
        self._screen = screen
        self._err = err

    def line(self, line: Line) -> None:
        """Print one line of one rank."""
        self._screen.line(prefixed(line), err=self._err)

    def event(self, event: RunEvent) -> None:
        """Show nothing: plain lines are what the ranks printed."""

    def finish(self, report: RunReport) -> None:
        """Print that nothing will come any more, if so."""
        if report.stall:
            self._screen.line(stall_line(report.stall), "bad", err=self._err)


@contextmanager
def live_display(
    screen: Screen, step_line: str, last_step: int | None, *, err: bool, plain: bool
) -> Iterator[Display]:
    """Give the display for a run: lanes on a terminal, else plain lines.

    Args:
        screen: where to print.
        step_line: the lab's regular expression for a step, with a group `step`.
        last_step: the last step of a healthy run, where it is known.
        err: print to standard error, because standard output is for a JSON document.
        plain: plain lines, also on a terminal.
    """
    if plain or err or not screen.is_terminal:
        yield PlainDisplay(screen, err=err)
        return
    from breaklab.cli.lanes import LaneDisplay

    with LaneDisplay(screen, step_line, last_step) as display:
        yield display
