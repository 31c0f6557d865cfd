"""``breaklab hint``: one level of help at a time, from the symptom towards the cause."""

from __future__ import annotations

from typing import Annotated

import typer

from breaklab.cli.lookup import label, open_project
from breaklab.cli.notes import note_event
from breaklab.cli.options import OptionalBugId, examples, json_option
from breaklab.cli.render import Screen
from breaklab.i18n import _, language
from breaklab.learn.hints import HINT_SHOWN, choose_hint, shown_levels
from breaklab.tree.events import read_events


def register(app: typer.Typer) -> None:
    """Add ``hint`` to the app."""
    app.command(
        "hint",
        help=_("Show the next hint that you have not seen; each is recorded."),
        epilog=examples("breaklab hint", "breaklab hint 35-01 --level 2"),
    )(show_hint)


def show_hint(
    ctx: typer.Context,
    bug_id: OptionalBugId = None,
    level: Annotated[
        int | None, typer.Option(metavar="N", help=_("Show exactly this level."))
    ] = None,
    json: Annotated[bool, json_option("bug_id, level, levels, text, seen_before")] = False,
) -> None:
    """Print one hint and record that it was shown."""
    screen: Screen = ctx.obj
    opened = open_project(screen)
    spec = opened.spec(bug_id)
    public_id = opened.public_id(spec, named=bug_id is not None)
    shown = shown_levels(read_events(opened.project), spec.bug_id)
    chosen = choose_hint(spec, shown, level, name=label(public_id))
    text = spec.hints[chosen.level - 1].get(language())
    note_event(screen, opened.project, HINT_SHOWN, spec.bug_id, level=chosen.level)
    num_levels = len(spec.hints)
    if json:
        screen.json(
            {
                "bug_id": public_id,
                "level": chosen.level,
                "levels": num_levels,
                "text": text,
                "seen_before": chosen.seen_before,
            }
        )
        return
    heading = _("Hint {level} of {num_levels} for {name}")
    screen.heading(heading.format(level=chosen.level, num_levels=num_levels, name=label(public_id)))
    screen.prose(text, indent=2)
    screen.line()
    screen.prose(_what_next(shown | {chosen.level}, num_levels, bug_id), "quiet")


def _what_next(shown: frozenset[int], num_levels: int, bug_id: str | None) -> str:
    named = f" {bug_id}" if bug_id else ""
    if len(shown) < num_levels:
        text = _("Still stuck after trying that? The next level: {command}")
        return text.format(command=f"breaklab hint{named}")
    text = _("That was every hint. To give up and read the answer: {command}")
    return text.format(command=f"breaklab reveal{named}")
