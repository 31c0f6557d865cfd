"""What a running lab prints: the ranks' lines as they come, and the line that says it stalled."""

from __future__ import annotations

from breaklab.cli.render import Screen
from breaklab.ranks.jobs import Line, Stall


def prefixed(line: Line) -> str:
    """Return a rank's line with its ``[rank=R]`` prefix, added only where the lab printed none."""
    prefix = f"[rank={line.rank}]"
    return line.text if line.text.startswith(prefix) else f"{prefix} {line.text}"


def stall_line(stall: Stall) -> str:
    """Return the line for a stall; the same in every language, so that programs can wait for it."""
    if stall.kind == "proven":
        return f"[STALL: proven after {stall.seconds:.1f} s, no further output possible]"
    return f"[STALL: {stall.seconds:.0f} seconds, no further output]"


class LivePrinter:
    """Prints each line the moment a rank has written it."""

    def __init__(self, screen: Screen, *, err: bool) -> None:
        self._screen = screen
        self._err = err

    def __call__(self, line: Line) -> None:
        """Print one line of one rank."""
        self._screen.line(prefixed(line), err=self._err)

    def stalled(self, stall: Stall) -> None:
        """Print that nothing will come any more."""
        self._screen.line(stall_line(stall), "bad", err=self._err)
