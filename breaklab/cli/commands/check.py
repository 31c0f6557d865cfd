"""``breaklab check``: judge the learner's own fix, whatever it looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from breaklab.cli.lookup import nothing_applied, open_project
from breaklab.cli.notes import note_event
from breaklab.cli.options import examples, json_option
from breaklab.cli.render import Screen
from breaklab.cli.reports import print_report, report_as_json
from breaklab.cli.story import print_lesson
from breaklab.errors import ExitCode
from breaklab.i18n import _
from breaklab.model import BreakSpec

if TYPE_CHECKING:
    from breaklab.prove.check import FixVerdict


def register(app: typer.Typer) -> None:
    """Add ``check`` to the app."""
    app.command(
        "check",
        help=_("Judge your fix: tests green, tests untouched. Any fix that holds counts."),
        epilog=examples("breaklab check"),
    )(check)


def check(
    ctx: typer.Context,
    json: Annotated[
        bool, json_option("bug_id, solved, untouched, equals_original, changed_tests[], report")
    ] = False,
) -> None:
    """Run the tests on the learner's tree, say what the fix is, show the lesson once it holds."""
    from breaklab.prove.check import check_fix
    from breaklab.ranks.launch import warm_parent
    from breaklab.tree.workspace import Workspace

    screen: Screen = ctx.obj
    opened = open_project(screen)
    active, spec = opened.active, opened.applied_spec()
    if active is None or spec is None:
        raise nothing_applied()
    lab = opened.lab_of(spec)
    if not json:
        screen.line(_("judging: all tests of the lab, which takes a while ..."), "quiet", err=True)
    with warm_parent(lab) as warm:
        verdict = check_fix(opened.project, lab, active, warm)
    note_event(screen, opened.project, "checked", spec.bug_id, solved=verdict.solved)
    if verdict.solved:
        with Workspace.open(opened.project) as workspace:
            workspace.mark_solved(spec.bug_id, original=verdict.equals_original)
    if json:
        public_id = spec.bug_id if verdict.solved else opened.public_id(spec)
        screen.json(_as_json(public_id, verdict))
    else:
        _print(screen, spec, verdict)
    if not verdict.solved:
        raise typer.Exit(int(ExitCode.NEGATIVE))


def _as_json(public_id: str | None, verdict: FixVerdict) -> dict[str, object]:
    return {
        "bug_id": public_id,
        "solved": verdict.solved,
        "untouched": verdict.untouched,
        "equals_original": verdict.equals_original,
        "changed_tests": list(verdict.changed_tests),
        "report": report_as_json(verdict.report) if verdict.report else None,
    }


def _print(screen: Screen, spec: BreakSpec, verdict: FixVerdict) -> None:
    if verdict.report is not None:
        print_report(screen, verdict.report)
        screen.line()
    if not verdict.solved:
        screen.prose(_why_not(verdict), "bad")
        screen.line()
        screen.run_next(
            ("breaklab test", _("the tests again")), ("breaklab hint", _("the next hint"))
        )
        return
    kind = (
        _("Your fix is the original code, byte for byte.")
        if verdict.equals_original
        else _("Your fix is another one than the original, and it meets every invariant.")
    )
    screen.prose(
        _("Solved: {bug_id}.").format(bug_id=f"{spec.bug_id} {spec.slug}") + " " + kind, "good"
    )
    screen.line()
    print_lesson(screen, spec)
    screen.line()
    screen.run_next(("breaklab revert", _("put the original back; a copy of your version is kept")))


def _why_not(verdict: FixVerdict) -> str:
    if verdict.changed_tests:
        return _("Not solved: these tests were changed since apply: {tests}").format(
            tests=", ".join(verdict.changed_tests)
        )
    if verdict.untouched:
        return _("Not solved: the source is still exactly as apply left it.")
    return _("Not solved: tests are red.")
