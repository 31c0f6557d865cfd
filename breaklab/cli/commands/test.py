"""``breaklab test``: the lab's tests on the learner's tree, from a warm parent."""

from __future__ import annotations

from typing import Annotated

import typer

from breaklab.cli.lookup import OpenProject, open_project
from breaklab.cli.notes import note_event
from breaklab.cli.options import examples, json_option
from breaklab.cli.render import Screen
from breaklab.cli.reports import print_report, report_as_json
from breaklab.errors import ExitCode
from breaklab.i18n import _

_TIMEOUT_S = 600.0


def register(app: typer.Typer) -> None:
    """Add ``test`` to the app."""
    app.command(
        "test",
        help=_("Run the lab's tests: what is red, and why, in a line each."),
        epilog=examples("breaklab test -- -k step_zero"),
    )(run_tests)


def run_tests(
    ctx: typer.Context,
    pytest_args: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- ARGS]", help=_("Arguments for pytest, or tests to run.")),
    ] = None,
    json: Annotated[
        bool,
        json_option("green, timed_out, duration_s, tests[] {nodeid, outcome, duration_s, reason}"),
    ] = False,
) -> None:
    """Run the tests and print a compact report; exit 1 when one is red."""
    from breaklab.ranks.jobs import TestJob
    from breaklab.ranks.launch import warm_parent

    screen: Screen = ctx.obj
    opened = open_project(screen)
    lab = opened.default_lab()
    root = opened.project.root
    targets, options = _split(opened, pytest_args or [])
    everything = (lab.tests.relative_to(root).as_posix(),)
    job = TestJob(root, lab.source, targets or everything, _TIMEOUT_S, options)
    with warm_parent(lab) as warm:
        report = warm.run_tests(job)
    if opened.active:
        num_red = len(report.red)
        bug_id = opened.active.bug_id
        note_event(screen, opened.project, "test", bug_id, red=num_red, green=report.green)
    if json:
        screen.json(report_as_json(report))
    else:
        print_report(screen, report)
    if not report.green:
        raise typer.Exit(int(ExitCode.NEGATIVE))


def _split(opened: OpenProject, args: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Part pytest's arguments into what names an existing test file or folder, and the rest."""
    root = opened.project.root
    targets = tuple(arg for arg in args if (root / arg.split("::")[0]).exists())
    return targets, tuple(arg for arg in args if arg not in targets)
