"""The loops of ``watch``: look for saves, take keys, show what the tests say."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from breaklab.cli.keys import read_key, single_keys
from breaklab.cli.lookup import OpenProject, label, open_project
from breaklab.cli.notes import note_event
from breaklab.cli.render import Screen
from breaklab.cli.reports import print_report
from breaklab.cli.watch_view import WatchState, WatchView
from breaklab.i18n import _, language
from breaklab.learn.hints import HINT_SHOWN, choose_hint, shown_levels
from breaklab.learn.retest import Retester, Verdict
from breaklab.model import BreakSpec
from breaklab.ranks.launch import warm_parent
from breaklab.tree.events import read_events

_LOOK_S = 0.1
# Key -> the command that it runs on the ordinary screen.
_COMMANDS = {"r": "run", "d": "diagnose", "c": "check", "l": "list", "v": "revert"}


@dataclass
class Watched:
    """The break that is being worked on."""

    screen: Screen
    opened: OpenProject
    spec: BreakSpec
    public_id: str | None  # None for a mystery

    @property
    def title(self) -> str:
        """Which break it is."""
        return _("breaklab watch: {name}, lab {lab}").format(
            name=label(self.public_id), lab=self.opened.default_lab().name
        )

    @property
    def symptom(self) -> str:
        """How the break shows; a mystery's would name it."""
        if self.public_id is None:
            return _("See for yourself what it does: press r.")
        return self.spec.symptom.get(language())

    def note(self, verdict: Verdict, before: Verdict | None) -> None:
        """Record a verdict where it is not the same as before; a save alone is no event."""
        green = verdict.report.green
        if before is None or green != before.report.green:
            note_event(
                self.screen,
                self.opened.project,
                "test",
                self.spec.bug_id,
                red=len(verdict.report.red),
                green=green,
            )

    def next_hint(self) -> str:
        """Return the next unseen hint and record it, as ``breaklab hint`` does."""
        project = self.opened.project
        shown = shown_levels(read_events(project), self.spec.bug_id)
        level = choose_hint(self.spec, shown, name=label(self.public_id)).level
        note_event(self.screen, project, HINT_SHOWN, self.spec.bug_id, level=level)
        head = _("Hint {level} of {num_levels}:").format(
            level=level, num_levels=len(self.spec.hints)
        )
        return f"{head} {self.spec.hints[level - 1].get(language())}"


def find_watched(screen: Screen) -> Watched:
    """Return the applied break, to be watched.

    Raises:
        BreaklabError: none is applied, or there is no project.
    """
    opened = open_project(screen)
    spec = opened.spec(None)
    return Watched(screen, opened, spec, opened.public_id(spec))


@contextmanager
def retesting(watched: Watched) -> Iterator[Retester]:
    """Give what runs the tests at every save; nothing of it is left at the end."""
    lab = watched.opened.default_lab()
    retester = None
    try:
        with warm_parent(lab) as warm:
            retester = Retester(watched.opened.project, lab, watched.spec, warm)
            yield retester
    finally:
        # After the warm parent: closing that ends tests which are still running.
        if retester is not None:
            retester.close()


def watch_plain(watched: Watched) -> None:
    """Print a report for every save until interrupted; for a pipe or a screen reader."""
    screen = watched.screen
    screen.heading(watched.title)
    screen.prose(watched.symptom)
    before: Verdict | None = None
    with retesting(watched) as retester:
        while True:
            verdict = retester.poll()
            if verdict is not None:
                screen.line()
                print_report(screen, verdict.report)
                watched.note(verdict, before)
                before = verdict
            time.sleep(_LOOK_S)


class FullScreen:
    """The whole terminal for one break, until ``q`` or until it is taken out."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._verdict: Verdict | None = None
        self._message = ""
        self._wants_revert = False

    def run(self) -> None:
        """Watch until the learner quits or the break is gone."""
        with retesting(self._watched) as retester:
            while True:
                with single_keys(), WatchView(self._watched.screen) as view:
                    command = self._until_command(view, retester)
                if command is None:
                    return
                retester.stop()  # two suites at once would take twice as long
                self._run_outside(command)
                if open_project().active is None:
                    return

    def _until_command(self, view: WatchView, retester: Retester) -> str | None:
        """Show what happens until a key asks for a command; None to quit."""
        while True:
            verdict = retester.poll()
            if verdict is not None:
                self._watched.note(verdict, self._verdict)
                self._verdict = verdict
            view.show(
                WatchState(
                    self._watched.title,
                    self._watched.symptom,
                    retester.is_testing,
                    retester.num_done if retester.is_testing else 0,
                    retester.num_red if retester.is_testing else 0,
                    self._verdict,
                    self._message,
                )
            )
            key = read_key(_LOOK_S)
            if key == "q":
                return None
            if key == "h":
                self._message = self._watched.next_hint()
            elif key == "v" and not self._wants_revert:
                self._message = _(
                    "Press v again to take the break out; a copy of your version is kept."
                )
                self._wants_revert = True
            elif key in _COMMANDS:
                return _COMMANDS[key]
            elif key:
                self._wants_revert = False

    def _run_outside(self, command: str) -> None:
        """Run a command on the ordinary screen, as if typed, and wait for a key."""
        self._wants_revert = False
        self._message = ""
        # A handler of ours, so that Ctrl-C ends the command, whose own handler is a new one.
        before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
        self._watched.screen.line()
        self._watched.screen.heading(f"breaklab {command}")
        try:
            subprocess.run(
                [sys.executable, "-m", "breaklab", "--lang", language(), command], check=False
            )
        finally:
            signal.signal(signal.SIGINT, before)
        self._watched.screen.line()
        with single_keys():  # first: the change of mode throws away what was typed before it
            self._watched.screen.line(_("Press any key to go on."), "quiet")
            while not read_key(60.0):
                pass
