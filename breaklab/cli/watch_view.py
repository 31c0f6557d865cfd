"""The full screen of ``watch``: symptom, tests, a message, keys; fits 80 by 24."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from breaklab.cli.render import Screen
from breaklab.cli.reports import useful_line
from breaklab.cli.text import clean, one_line
from breaklab.i18n import _, ngettext
from breaklab.learn.retest import Verdict
from breaklab.ranks.jobs import TestOutcome, TestReport

_SYMPTOM_LINES = 6
_MESSAGE_LINES = 8


@dataclass(frozen=True)
class WatchState:
    """What is to be seen."""

    title: str
    symptom: str
    testing: bool
    num_done: int  # of the tests that are running now
    num_red: int
    verdict: Verdict | None
    message: str = ""


def keys_line() -> str:
    """Return which key does what, in one line."""
    return _("h hint  r run  d diagnose  c check  l list  v revert  q quit")


class WatchView:
    """Draws a :class:`WatchState` on the whole terminal; use as a context manager."""

    def __init__(self, screen: Screen) -> None:
        self._console = Console(
            markup=False, highlight=False, emoji=False, no_color=screen.no_color
        )
        self._live = Live(console=self._console, screen=True, auto_refresh=False)
        self._shown: tuple[WatchState, int, int] | None = None

    def __enter__(self) -> Self:
        """Take the whole terminal."""
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the terminal back as it was."""
        self._live.stop()

    def show(self, state: WatchState) -> None:
        """Draw ``state``, cut to what fits, unless it is on screen already."""
        width, height = self._console.size
        if (state, width, height) == self._shown:
            return
        self._shown = (state, width, height)
        top = [
            Text(state.title, "bold"),
            Text(),
            *_wrapped(self._console, state.symptom, width, _SYMPTOM_LINES),
            Text(),
        ]
        message = _wrapped(self._console, state.message, width, _MESSAGE_LINES)
        bottom = [Text(), *message, *([Text()] if message else []), Text(keys_line(), "dim")]
        room = max(height - len(top) - len(bottom) - 1, 3)
        lines = [*top, *_verdict_lines(state, room), *bottom]
        for line in lines:
            line.truncate(width, overflow="ellipsis")
        self._live.update(Group(*lines[: height - 1]), refresh=True)


def _wrapped(console: Console, text: str, width: int, most: int) -> list[Text]:
    cleaned = clean(text).strip()
    if not cleaned:
        return []
    lines = list(Text(cleaned).wrap(console, min(width, 100)))
    if len(lines) > most:
        lines = lines[:most]
        lines[-1].append(" ...")
    return lines


def _verdict_lines(state: WatchState, room: int) -> list[Text]:
    lines = []
    if state.testing:
        text = _("testing ... {done} done, {red} red")
        lines.append(Text(text.format(done=state.num_done, red=state.num_red), "dim"))
    if state.verdict is not None:
        report = state.verdict.report
        lines.append(Text(_summary(state.verdict), "green" if report.green else "bold red"))
        lines += _failures(report, room - len(lines))
    return lines


def _summary(verdict: Verdict) -> str:
    report = verdict.report
    passed = sum(result.outcome is TestOutcome.PASSED for result in report.results)
    if report.green and verdict.whole:
        text = _("GREEN  all {passed} tests in {seconds:.1f} s; press c to have your fix judged")
    elif report.green:
        text = _("GREEN  {passed} that were red, in {seconds:.1f} s; the others follow")
    else:
        text = _("RED    {red} failed, {passed} passed in {seconds:.1f} s")
    return text.format(red=len(report.red), passed=passed, seconds=report.duration_s)


def _failures(report: TestReport, room: int) -> list[Text]:
    """Return name and first useful line of as many failures as there is room for."""
    red = set(report.red)
    failures = [result for result in report.results if result.nodeid in red]
    lines: list[Text] = []
    for number, result in enumerate(failures):
        if len(lines) + 2 > room - (number < len(failures) - 1):
            more = len(failures) - number
            lines.append(Text(ngettext("and {num} more", "and {num} more", more).format(num=more)))
            break
        lines.append(Text(one_line(result.nodeid.partition("::")[2] or result.nodeid), "bold"))
        lines.append(Text("  " + useful_line(result)))
    if not report.results and report.output.strip():
        lines.append(Text(one_line(report.output.strip().splitlines()[-1])))
    return lines
