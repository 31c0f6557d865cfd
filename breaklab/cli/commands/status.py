"""``breaklab status``: which break is applied, how far the learner is, what to do next."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from breaklab.cli.lookup import OpenProject, label, open_project
from breaklab.cli.options import examples, json_option
from breaklab.cli.render import Screen
from breaklab.cli.text import one_line
from breaklab.i18n import _, language
from breaklab.learn.hints import shown_levels
from breaklab.learn.progress import State, state_of
from breaklab.spec.catalogue import claimed_ids
from breaklab.tree.events import read_events
from breaklab.tree.record import ActiveBreak


def register(app: typer.Typer) -> None:
    """Add ``status`` to the app."""
    app.command(
        "status",
        help=_("Show which break is applied and how far you are."),
        epilog=examples("breaklab status --json"),
    )(status)


def status(
    ctx: typer.Context,
    json: Annotated[
        bool,
        json_option(
            "project, applied {bug_id, lab, symptom, source, hints_shown[], num_hints, solved}, "
            "counts"
        ),
    ] = False,
) -> None:
    """Print the state of this project; takes no lock and changes nothing."""
    screen: Screen = ctx.obj
    opened = open_project(screen)
    applied = _applied(opened)
    counts = _counts(opened)
    if json:
        screen.json({"project": str(opened.project.root), "applied": applied, "counts": counts})
        return
    _print(screen, opened, applied, counts)


def _applied(opened: OpenProject) -> dict[str, Any] | None:
    active, spec = opened.active, opened.applied_spec()
    if active is None or spec is None:
        return None
    events = read_events(opened.project)
    hidden = opened.public_id(spec) is None
    return {
        "bug_id": opened.public_id(spec),
        "lab": active.lab,
        "symptom": None if hidden else one_line(spec.symptom.get(language())),
        "source": _state_told(active, opened),
        "hints_shown": sorted(shown_levels(events, spec.bug_id)),
        "num_hints": len(spec.hints),
        "solved": active.solved,
    }


def _state_told(active: ActiveBreak, opened: OpenProject) -> str:
    """Return the state of the source; not, before it is judged, that it is the original again."""
    state = active.source_state(opened.project).value
    return "edited" if state == "pristine" and not active.solved else state


def _counts(opened: OpenProject) -> dict[str, int]:
    events = read_events(opened.project)
    states = [state_of(events, bug_id) for bug_id in claimed_ids(opened.project)]
    return {
        state.value: states.count(state) for state in (State.SOLVED, State.GIVEN_UP, State.OPEN)
    }


def _print(
    screen: Screen, opened: OpenProject, applied: dict[str, Any] | None, counts: dict[str, int]
) -> None:
    tally = _("{solved} solved, {given_up} given up, {open} open").format(
        solved=counts["solved"], given_up=counts["given up"], open=counts["open"]
    )
    pairs = [(_("Project"), str(opened.project.root)), (_("Breaks"), tally)]
    if applied is None:
        screen.fields([*pairs, (_("Applied"), _("none"))])
        screen.line()
        screen.run_next(
            ("breaklab list", _("choose a break")), ("breaklab apply ID", _("put it in"))
        )
        return
    hints = _("{shown} of {num_hints} shown").format(
        shown=len(applied["hints_shown"]), num_hints=applied["num_hints"]
    )
    screen.fields(
        [
            *pairs,
            (_("Applied"), f"{label(applied['bug_id'])} ({applied['lab']})"),
            (_("Symptom"), applied["symptom"] or _("see for yourself: breaklab run")),
            (_("Source"), _source_words()[applied["source"]]),
            (_("Hints"), hints),
        ]
    )
    screen.line()
    screen.run_next(*_next_steps(applied))


def _source_words() -> dict[str, str]:
    return {
        "broken": _("as apply left it"),
        "pristine": _("like the original again"),
        "edited": _("edited by you"),
        "missing": _("the file is gone"),
        "replaced": _("something else has the file's name"),
    }


def _next_steps(applied: dict[str, Any]) -> list[tuple[str, str]]:
    if applied["solved"]:
        return [
            ("breaklab revert", _("put the original back; a copy of your version is kept")),
            ("breaklab list", _("choose the next break")),
        ]
    if applied["source"] == "broken":
        return [("breaklab run", _("see it happen")), ("breaklab hint", _("the next hint"))]
    return [("breaklab check", _("let your fix be judged")), ("breaklab hint", _("the next hint"))]
