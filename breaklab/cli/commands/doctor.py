"""``breaklab doctor``: what this machine and this folder offer, and what to do where they don't."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from breaklab.cli.machine import FAIL, Finding, examine_machine, examine_torch, project_findings
from breaklab.cli.options import examples, json_option
from breaklab.cli.render import Screen
from breaklab.errors import BreaklabError, ExitCode
from breaklab.i18n import _


def register(app: typer.Typer) -> None:
    """Add ``doctor`` to the app."""
    app.command(
        "doctor",
        help=_("Check this machine and this folder. Each line is ok, warn or FAIL, with a remedy."),
        epilog=examples("breaklab doctor"),
    )(doctor)


def doctor(
    ctx: typer.Context,
    json: Annotated[bool, json_option("findings[] {name, level, seen, remedy}")] = False,
) -> None:
    """Print every finding as it is made; exit 2 when one of them is a FAIL."""
    screen: Screen = ctx.obj
    findings: list[Finding] = []
    start = Path.cwd()
    for source in (examine_machine(), examine_torch(_lab_python()), project_findings(start)):
        for finding in source:
            findings.append(finding)
            if not json:
                _print(screen, finding)
    if json:
        screen.json({"findings": [asdict(finding) for finding in findings]})
    if any(finding.level == FAIL for finding in findings):
        raise typer.Exit(int(ExitCode.USAGE))


def _lab_python() -> str:
    from breaklab.cli.lookup import open_project

    try:
        return open_project().default_lab().python
    except (BreaklabError, IndexError):
        return ""


def _print(screen: Screen, finding: Finding) -> None:
    screen.marked(finding.level, finding.name, finding.seen)
    if finding.remedy:
        screen.prose(finding.remedy, indent=19)
