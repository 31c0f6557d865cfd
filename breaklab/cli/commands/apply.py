"""``breaklab apply``: put a break into the lab's source, and say only how it shows."""

from __future__ import annotations

from typing import Annotated

import typer

from breaklab.cli.lookup import open_project
from breaklab.cli.options import BugId, examples, json_option
from breaklab.cli.render import Screen
from breaklab.i18n import _, language
from breaklab.model import BreakSpec


def register(app: typer.Typer) -> None:
    """Add ``apply`` to the app."""
    app.command(
        "apply",
        help=_(
            "Put a break into the lab's source. Shows the symptom, never the place; your own "
            "bytes are kept and come back with revert."
        ),
        epilog=examples("breaklab apply 35-01 && breaklab run"),
    )(apply_break)


def apply_break(
    ctx: typer.Context,
    bug_id: BugId,
    json: Annotated[bool, json_option("bug_id, lab, symptom, variants[]")] = False,
) -> None:
    """Inject the break and record what is needed to take it out again."""
    from breaklab.inject.edit import inject
    from breaklab.tree.workspace import Workspace, read_source

    screen: Screen = ctx.obj
    opened = open_project(screen)
    spec = opened.catalogue.find(bug_id)
    lab = opened.lab_of(spec)
    path = lab.root / spec.inject.file
    with Workspace.open(opened.project) as workspace:
        workspace.require_room()
        pristine = read_source(lab, path)
        broken = inject(pristine, spec.inject, path=spec.inject.file).source
        workspace.apply(lab, spec.bug_id, path, broken, pristine=pristine)
    if json:
        screen.json(
            {
                "bug_id": spec.bug_id,
                "lab": lab.name,
                "symptom": spec.symptom.get(language()),
                "variants": [run.variant for run in spec.runs],
            }
        )
        return
    _print(screen, spec, lab.name)


def _print(screen: Screen, spec: BreakSpec, lab_name: str) -> None:
    applied = _("Break {bug_id} is in lab {lab}.").format(bug_id=spec.bug_id, lab=lab_name)
    screen.line(applied, "strong")
    screen.line()
    screen.heading(_("Symptom"))
    screen.prose(spec.symptom.get(language()), indent=2)
    screen.line()
    screen.heading(_("Next"))
    screen.run_next(
        ("breaklab run", _("see it happen on real ranks")),
        *(
            (f"breaklab run --variant {run.variant}", _("the same bug, run another way"))
            for run in spec.runs[1:]
        ),
        ("breaklab test", _("see which invariants it breaks")),
        ("breaklab hint", _("one hint, when you are stuck")),
        ("breaklab check", _("once you have fixed it")),
    )
