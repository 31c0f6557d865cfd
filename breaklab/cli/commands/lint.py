"""``breaklab lint``: everything that can be said about specs without running anything."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from breaklab.cli.lookup import open_project
from breaklab.cli.render import Screen
from breaklab.errors import BreaklabError, ExitCode, Finding
from breaklab.i18n import _, ngettext

FORMATS = ("text", "json")


def register(app: typer.Typer) -> None:
    """Add ``lint`` to the app."""
    app.command(
        "lint",
        help=_("Check specs without running them: form, texts, site, fix, hard rules."),
        epilog="\b\n" + _("Example:") + "\n  breaklab lint breaks/35-01.yaml",
    )(lint)


def lint(
    ctx: typer.Context,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PATH]...", help=_("Specs or folders; default: all packs.")),
    ] = None,
    json: Annotated[
        bool,
        typer.Option(
            "--json", help=_("Print JSON: findings[] of path, line, column, rule, message, hint.")
        ),
    ] = False,
) -> None:
    """Print each finding with its place; exit 1 when there is one."""
    from breaklab.author.lint import lint_paths

    screen: Screen = ctx.obj
    opened = open_project(screen)
    for path in paths or []:
        if not path.exists():
            raise BreaklabError(_("{path} does not exist").format(path=path))
    findings, num_specs = lint_paths(opened.project, [path.resolve() for path in paths or []])
    if json:
        screen.json({"findings": [_as_json(finding) for finding in findings]})
    else:
        _print(screen, findings, num_specs)
    if findings:
        raise typer.Exit(int(ExitCode.NEGATIVE))


def _as_json(finding: Finding) -> dict[str, object]:
    place = finding.location
    return {
        "path": place.path,
        "line": place.line,
        "column": place.column,
        "rule": finding.rule,
        "message": finding.message,
        "hint": finding.hint,
    }


def _print(screen: Screen, findings: list[Finding], num_specs: int) -> None:
    for finding in findings:
        screen.prose(str(finding), "bad")
        if finding.hint:
            screen.prose(finding.hint, indent=2)
    specs = ngettext("{num} spec", "{num} specs", num_specs).format(num=num_specs)
    found = ngettext("{num} finding", "{num} findings", len(findings)).format(num=len(findings))
    screen.line(f"{specs}, {found}", "bad" if findings else "good")
