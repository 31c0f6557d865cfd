"""``breaklab apply``: put a break into the lab's source, and say only how it shows."""

from __future__ import annotations

from typing import Annotated

import typer

from breaklab.cli.complete import complete_bug_id, complete_family
from breaklab.cli.lookup import OpenProject, open_project
from breaklab.cli.options import Trust, examples, json_option
from breaklab.cli.render import Screen
from breaklab.errors import BreaklabError
from breaklab.i18n import _, language
from breaklab.model import BreakSpec, Lab, Outcome, RunPromise


def register(app: typer.Typer) -> None:
    """Add ``apply`` to the app."""
    app.command(
        "apply",
        help=_(
            "Put a break into the lab's source. Shows the symptom, never the place; your own "
            "bytes are kept and come back with revert."
        ),
        epilog=examples(
            "breaklab apply 35-01 && breaklab run", "breaklab apply --random --max-difficulty 2"
        ),
    )(apply_break)


def apply_break(
    ctx: typer.Context,
    bug_id: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]", help=_("The break, as in list."), autocompletion=complete_bug_id
        ),
    ] = None,
    surprise: Annotated[
        bool,
        typer.Option(
            "--random", help=_("A mystery: a break that is open, its name hidden until solved.")
        ),
    ] = False,
    family: Annotated[
        str | None,
        typer.Option(help=_("With --random: of this family."), autocompletion=complete_family),
    ] = None,
    max_difficulty: Annotated[
        int | None,
        typer.Option(metavar="1..5", min=1, max=5, help=_("With --random: no harder than this.")),
    ] = None,
    trust: Trust = False,
    json: Annotated[bool, json_option("bug_id, lab, symptom, variants[]")] = False,
) -> None:
    """Inject the break and record what is needed to take it out again."""
    screen: Screen = ctx.obj
    opened = open_project(screen, trust=trust)
    if (bug_id is None) is not surprise or (not surprise and (family or max_difficulty)):
        raise BreaklabError(
            _("name one break, or let --random choose one"),
            hint=_("see them all: breaklab list"),
        )
    spec = opened.find(bug_id) if bug_id else _mystery(opened, family, max_difficulty)
    lab = opened.lab_of(spec)
    _inject(opened, spec, lab, hidden=surprise)
    if json:
        screen.json(
            {
                "bug_id": None if surprise else spec.bug_id,
                "lab": lab.name,
                "symptom": None if surprise else spec.symptom.get(language()),
                "variants": [run.variant for run in spec.runs],
            }
        )
    else:
        _print(screen, spec, lab.name, hidden=surprise)


def _mystery(opened: OpenProject, family: str | None, max_difficulty: int | None) -> BreakSpec:
    from breaklab.learn.mystery import choose_mystery
    from breaklab.tree.events import read_events

    specs = list(opened.catalogue.specs.values())
    events = read_events(opened.project)
    return choose_mystery(specs, events, family=family, max_difficulty=max_difficulty)


def _inject(opened: OpenProject, spec: BreakSpec, lab: Lab, *, hidden: bool) -> None:
    """Put the break in; refuses while another one is there that is not solved."""
    from breaklab.inject.edit import inject
    from breaklab.tree.workspace import Workspace, read_source

    path = lab.root / spec.inject.file
    with Workspace.open(opened.project) as workspace:
        workspace.require_room()
        pristine = read_source(lab, path)
        broken = inject(pristine, spec.inject, path=spec.inject.file).source
        workspace.apply(lab, spec.bug_id, path, broken, pristine=pristine, hidden=hidden)


def _print(screen: Screen, spec: BreakSpec, lab_name: str, *, hidden: bool) -> None:
    if hidden:
        screen.line(_("A mystery break is in lab {lab}.").format(lab=lab_name), "strong")
    else:
        applied = _("Break {bug_id} is in lab {lab}.").format(bug_id=spec.bug_id, lab=lab_name)
        screen.line(applied, "strong")
        screen.line()
        screen.heading(_("Symptom"))
        screen.prose(spec.symptom.get(language()), indent=2)
    screen.line()
    screen.heading(_("Next"))
    screen.run_next(
        ("breaklab run", _("see it happen on real ranks")),
        *((f"breaklab run --variant {run.variant}", _another_way(run)) for run in spec.runs[1:]),
        ("breaklab test", _("see which invariants it breaks")),
        ("breaklab hint", _("one hint, when you are stuck")),
        ("breaklab check", _("once you have fixed it")),
    )


def _another_way(run: RunPromise) -> str:
    if run.outcome is Outcome.HEALTHY:
        return _("to compare: run so that the bug does not show")
    return _("the same bug, run another way")
