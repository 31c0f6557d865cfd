"""``breaklab lint``: everything that can be said about specs without running anything."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from breaklab.cli.lookup import open_project
from breaklab.cli.options import examples, json_option
from breaklab.cli.render import Screen
from breaklab.errors import BreaklabError, ExitCode, Finding
from breaklab.i18n import _, ngettext


class Format(StrEnum):
    """How findings are written."""

    TEXT = "text"
    GITHUB = "github"  # workflow commands, shown beside the changed lines
    SARIF = "sarif"


def register(app: typer.Typer) -> None:
    """Add ``lint`` to the app."""
    app.command(
        "lint",
        help=_("Check specs without running them. Looks at form, texts, site, fix and hard rules."),
        epilog=examples("breaklab lint breaks/35-01.yaml"),
    )(lint)


def lint(
    ctx: typer.Context,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PATH]...", help=_("Specs or folders; default: all packs.")),
    ] = None,
    json: Annotated[
        bool, json_option("findings[] {path, line, column, rule, message, hint}")
    ] = False,
    form: Annotated[
        Format, typer.Option("--format", help=_("How to write findings; the others are for CI."))
    ] = Format.TEXT,
) -> None:
    """Print each finding with its place; exit 1 when there is one."""
    from breaklab.author.lint import lint_paths
    from breaklab.author.report import github_annotations, sarif

    screen: Screen = ctx.obj
    opened = open_project(screen)
    for path in paths or []:
        if not path.exists():
            raise BreaklabError(_("{path} does not exist").format(path=path))
    findings, num_specs = lint_paths(opened.project, [path.resolve() for path in paths or []])
    root = opened.project.root
    if form is Format.GITHUB:
        for line in github_annotations(findings, root):
            screen.line(line)
    elif form is Format.SARIF:
        screen.json(sarif(findings, root))
    elif json:
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
