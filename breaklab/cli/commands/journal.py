"""``breaklab journal``: write a finished break down, the cause in the learner's own words."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from breaklab.cli.lookup import OpenProject, label, nothing_applied, open_project
from breaklab.cli.options import OptionalBugId, examples, json_option
from breaklab.cli.render import Screen
from breaklab.errors import BreaklabError
from breaklab.i18n import _, language
from breaklab.learn import journal as book
from breaklab.learn.who import as_folder_name, learner_name
from breaklab.model import BreakSpec
from breaklab.tree.events import read_events


def register(app: typer.Typer) -> None:
    """Add ``journal`` to the app."""
    app.command(
        "journal",
        help=_("Write a solved break into your journal, in your own words."),
        epilog=examples('breaklab journal 35-01 --cause "rank 0 dropped a sample"'),
    )(journal)


def journal(
    ctx: typer.Context,
    bug_id: OptionalBugId = None,
    cause: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help=_("What was wrong, as you say it; default: ask.")),
    ] = None,
    learner: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help=_("Whose journal; default: BREAKLAB_LEARNER, git's user.name.")
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help=_("Also if the break has an entry already."))
    ] = False,
    json: Annotated[bool, json_option("bug_id, learner, path, entry")] = False,
) -> None:
    """Append one entry to the learner's journal; what is there already keeps every byte."""
    screen: Screen = ctx.obj
    opened = open_project(screen)
    spec = _choose(opened, bug_id)
    name = label(opened.public_id(spec, named=bug_id is not None))
    book.require_finished(read_events(opened.project), spec, name)
    who = as_folder_name(learner) if learner else learner_name(opened.project.root)
    path = book.journal_path(opened.project, opened.lab_of(spec), who)
    if not again and book.has_entry(path, spec.bug_id):
        raise BreaklabError(
            _("{bug_id} is in the journal already: {path}").format(bug_id=spec.bug_id, path=path),
            hint=_("to add another entry: --again"),
        )
    entry = book.entry_for(spec, cause or _ask(spec.bug_id), language())
    book.append_entry(path, entry)
    if json:
        screen.json({"bug_id": spec.bug_id, "learner": who, "path": str(path), "entry": entry})
    else:
        screen.line(_("Written to {path}").format(path=path), "good")


def _choose(opened: OpenProject, bug_id: str | None) -> BreakSpec:
    """Return the break named, else the applied one, else the one solved last."""
    if bug_id is None and opened.active is None:
        bug_id = book.last_solved(read_events(opened.project))
        if bug_id is None:
            raise nothing_applied()
    return opened.spec(bug_id)


def _ask(bug_id: str) -> str:
    if not sys.stdin.isatty():
        raise BreaklabError(
            _("the journal wants the cause in your own words"),
            hint=_('give it with --cause "..."'),
        )
    question = _("In your own words: what was wrong in {bug_id}?").format(bug_id=bug_id)
    return str(typer.prompt(question, err=True))
