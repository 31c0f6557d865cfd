"""One lane for each rank at the foot of a terminal: its step, what it does, how long it is still.

The ranks' lines scroll by above. When the run ends the lanes freeze into the final picture.
"""

from __future__ import annotations

import re
import time
from collections import deque
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from breaklab.cli.live import prefixed, stall_line
from breaklab.cli.render import Screen
from breaklab.cli.text import clean, one_line
from breaklab.i18n import _
from breaklab.ranks.jobs import Line, RankWait, RunEvent, RunReport

_REFRESH_PER_S = 8
_BAR_WIDTH = 16
_WIDE = 100  # columns from which the last line is repeated in the lane
_STILL_S = 1.0  # a rank that is still for less is not worth a remark


@dataclass
class Lane:
    """What is known of one rank."""

    rank: int
    step: int | None = None
    last_line: str = ""
    moved_at: float = field(default_factory=time.monotonic)
    wait: RankWait | None = None
    exit_code: int | None = None
    ended: bool = False

    def activity(self) -> str:
        """Return what the rank does, in a few words."""
        if self.ended:
            if self.exit_code == 0:
                return _("ended")
            return _("failed, exit {code}").format(code=self.exit_code)
        if self.wait is None or not self.wait.operation:
            return _("computing")
        number = "" if self.wait.sequence is None else f" #{self.wait.sequence}"
        return _("in {operation}").format(operation=self.wait.operation + number)


class _Scroll(Live):
    """A live picture under lines, which are printed when it is drawn anew, all at once.

    To draw for each line would cost milliseconds each: the picture would fall behind the ranks.
    """

    pending: deque[Text]

    def refresh(self) -> None:
        """Print the lines that came since the last time, and draw the picture below them."""
        with self._lock:  # of two threads that come at once, one finds nothing
            lines = [self.pending.popleft() for _line in range(len(self.pending))]
        if lines:
            self.console.print(Text("\n").join(lines), soft_wrap=True)
        super().refresh()


class LaneDisplay:
    """A live picture of the ranks; use as a context manager."""

    def __init__(self, screen: Screen, step_line: str, last_step: int | None) -> None:
        no_color = screen.no_color
        self._console = Console(
            markup=False, highlight=False, emoji=False, no_color=no_color, force_terminal=True
        )
        self._step = re.compile(step_line) if step_line else None
        self._last_step = last_step
        self._lanes: dict[int, Lane] = {}
        self._live = _Scroll(
            console=self._console,
            refresh_per_second=_REFRESH_PER_S,
            get_renderable=self._picture,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.pending = deque()

    def __enter__(self) -> Self:
        """Start to draw."""
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the last picture on screen."""
        self._live.stop()

    def line(self, line: Line) -> None:
        """Let one line scroll by above the lanes at the next look, and note its step."""
        lane = self._lane(line.rank)
        lane.last_line = one_line(line.text)
        lane.moved_at = time.monotonic()
        match = self._step.search(line.text) if self._step else None
        if match and match.groupdict().get("step"):
            lane.step = int(match["step"])
        self._live.pending.append(Text(clean(prefixed(line))))

    def event(self, event: RunEvent) -> None:
        """Take in which ranks there are, what they do, and which ended."""
        if event.kind == "started":
            for rank in range(len(event.pids)):
                self._lane(rank)
        elif event.kind == "ended" and event.rank is not None:
            lane = self._lane(event.rank)
            lane.ended, lane.exit_code = True, event.exit_code
        for wait in event.waits:
            self._lane(wait.rank).wait = wait
        now = time.monotonic()
        for rank, still_s in enumerate(event.still_s):
            self._lane(rank).moved_at = now - still_s

    def finish(self, report: RunReport) -> None:
        """Freeze the picture; below it, for a stall, the line that says so."""
        for wait in report.stall.waits if report.stall else ():
            self._lane(wait.rank).wait = wait
        self._live.refresh()
        self._live.stop()
        if report.stall:
            self._console.print(Text(stall_line(report.stall), "bold red"), soft_wrap=True)

    def _lane(self, rank: int) -> Lane:
        return self._lanes.setdefault(rank, Lane(rank))

    def _picture(self) -> Table | Text:
        if not self._lanes:
            return Text(_("starting the ranks ..."), "dim")
        grid = Table.grid(padding=(0, 2))
        bar = self._last_step is not None
        wide = self._console.width >= _WIDE
        for _column in range(3 + bar):
            grid.add_column(no_wrap=True)
        if wide:
            grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        grid.add_column(no_wrap=True, justify="right")
        for _rank, lane in sorted(self._lanes.items()):
            step = "" if lane.step is None else _("step {step}").format(step=lane.step)
            cells: list[Text | ProgressBar] = [
                Text(_("rank {rank}").format(rank=lane.rank), "bold"),
                Text(step),
            ]
            if self._last_step is not None:
                cells.append(ProgressBar(max(self._last_step, 1), lane.step or 0, width=_BAR_WIDTH))
            cells.append(Text(lane.activity()))
            if wide:
                cells.append(Text(lane.last_line, "dim"))
            cells.append(self._still(lane))
            grid.add_row(*cells)
        return grid

    def _still(self, lane: Lane) -> Text:
        seconds = time.monotonic() - lane.moved_at
        if lane.ended or seconds < _STILL_S:
            return Text("")
        return Text(_("still for {seconds:.0f} s").format(seconds=seconds), "yellow")
