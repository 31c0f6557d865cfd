"""``breaklab list``: the breaks of this project and where the learner stands with each."""

from __future__ import annotations

from typing import Annotated

import typer

from breaklab.cli.lookup import OpenProject, open_project
from breaklab.cli.options import examples, json_option
from breaklab.cli.render import Column, Screen
from breaklab.cli.text import first_sentence, one_line
from breaklab.i18n import _, language
from breaklab.learn.overview import Overview, Row, load_overview
from breaklab.learn.progress import State, state_label, state_of
from breaklab.tree.events import read_events


def register(app: typer.Typer) -> None:
    """Add ``list`` to the app."""
    app.command(
        "list",
        help=_("Show the breaks and where you stand with each."),
        epilog=examples("breaklab list --json | jq '.breaks[].bug_id'"),
    )(list_breaks)


def list_breaks(
    ctx: typer.Context,
    json: Annotated[
        bool,
        json_option(
            "breaks[] {bug_id, family, difficulty, symptom, state}, broken[] {path, message}"
        ),
    ] = False,
) -> None:
    """Print every break of the project with its state."""
    screen: Screen = ctx.obj
    opened = open_project(screen)
    overview = load_overview(opened.project)
    rows = _rows(opened, overview)
    broken = [
        {"path": str(path), "message": error.message} for path, error in overview.broken.items()
    ]
    if json:
        screen.json({"breaks": rows, "broken": broken})
        return
    _print(screen, rows)
    for path in overview.broken:
        root = opened.project.root
        name = path.relative_to(root) if path.is_relative_to(root) else path
        screen.prose(
            _("{path} can't be used; see why: breaklab lint {path}").format(path=name),
            "warn",
            err=True,
        )


def _rows(opened: OpenProject, overview: Overview) -> list[dict[str, object]]:
    events = read_events(opened.project)
    applied = opened.active
    # A mystery's row must look like any other; a solved break is no task any more.
    active = applied.bug_id if applied and not applied.solved and not opened.hides_name else None
    return [_row(row, state_of(events, row.bug_id, active)) for row in overview.rows]


def _row(row: Row, state: State) -> dict[str, object]:
    return {
        "bug_id": row.bug_id,
        "family": row.family,
        "difficulty": row.difficulty,
        "symptom": one_line(row.symptom_in(language())),
        "state": state.value,
    }


def _print(screen: Screen, rows: list[dict[str, object]]) -> None:
    if not rows:
        screen.prose(_("This project has no breaks yet."))
        return
    columns = [
        Column(_("ID"), "strong"),
        Column(_("FAMILY")),
        Column(_("LEVEL")),
        Column(_("STATE")),
        Column(_("SYMPTOM"), wrap=True),
    ]
    screen.table(columns, [_cells(row) for row in rows])
    screen.line()
    screen.prose(_("Put one in with: breaklab apply ID"))


def _cells(row: dict[str, object]) -> list[str]:
    state = state_label(State(str(row["state"])))
    return [
        *(str(row[key]) for key in ("bug_id", "family", "difficulty")),
        state,
        first_sentence(str(row["symptom"])),
    ]
