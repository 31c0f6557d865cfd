"""``breaklab reveal``: the cause, the fix and the lesson, for a learner who gives up."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from breaklab.cli.lookup import label, open_project
from breaklab.cli.options import OptionalBugId, examples, json_option
from breaklab.cli.render import Screen
from breaklab.cli.story import print_lesson
from breaklab.errors import BreaklabError
from breaklab.i18n import _, language
from breaklab.learn.progress import REVEALED, State, state_of
from breaklab.model import BreakSpec
from breaklab.tree.events import append_event, read_events


def register(app: typer.Typer) -> None:
    """Add ``reveal`` to the app."""
    app.command(
        "reveal",
        help=_("Give up: show the cause, the fix and the lesson. It is recorded."),
        epilog=examples("breaklab reveal 35-01 --yes"),
    )(reveal)


def reveal(
    ctx: typer.Context,
    bug_id: OptionalBugId = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help=_("Do not ask."))] = False,
    json: Annotated[
        bool, json_option("bug_id, concept, cause, fix_diff, lesson, sources[]")
    ] = False,
) -> None:
    """Print the answer; without a terminal, only after ``--yes``."""
    screen: Screen = ctx.obj
    opened = open_project(screen)
    spec = opened.spec(bug_id)
    # The answer is no spoiler, and reading it no giving up, once the learner has found it.
    if state_of(read_events(opened.project), spec.bug_id) is State.OPEN:
        _confirm(label(opened.public_id(spec, named=bug_id is not None)), yes)
        append_event(opened.project, REVEALED, spec.bug_id)
    if json:
        screen.json(_as_json(spec))
    else:
        _print(screen, spec)


def _confirm(name: str, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise BreaklabError(
            _("reveal shows the answer to {name} and records that you gave up").format(name=name),
            hint=_("if you want that, add --yes"),
        )
    question = _("Give up on {name} and see the answer?").format(name=name)
    if not typer.confirm(question, err=True):
        raise typer.Exit


def _as_json(spec: BreakSpec) -> dict[str, object]:
    lang = language()
    return {
        "bug_id": spec.bug_id,
        "concept": spec.concept.get(lang),
        "cause": spec.hidden_cause.get(lang),
        "fix_diff": spec.fix_diff,
        "lesson": spec.lesson.get(lang),
        "sources": list(spec.sources),
    }


def _print(screen: Screen, spec: BreakSpec) -> None:
    screen.heading(f"{spec.bug_id} {spec.slug}")
    screen.line()
    screen.heading(_("Cause"))
    screen.prose(spec.hidden_cause.get(language()), indent=2)
    screen.line()
    screen.heading(_("Fix"))
    screen.listing(spec.fix_diff, {"+": "good", "-": "bad"})
    screen.line()
    print_lesson(screen, spec)
