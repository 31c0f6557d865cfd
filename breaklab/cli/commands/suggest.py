"""``breaklab suggest``: mine candidates for breaks, and find the holes in a lab's tests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from breaklab.cli.complete import complete_lab
from breaklab.cli.lookup import OpenProject, open_project
from breaklab.cli.options import examples, json_option
from breaklab.cli.render import Screen
from breaklab.cli.suggesting import Tries, draft_candidate, try_all
from breaklab.cli.suggestions import print_candidates, print_findings, report_of, row_of
from breaklab.errors import BreaklabError, ExitCode
from breaklab.i18n import _
from breaklab.model import Lab

_ROW = "key, file, line, function, operator, what, fate, red[], seconds, diff"


def register(app: typer.Typer) -> None:
    """Add ``suggest`` to the app."""
    app.command(
        "suggest",
        short_help=_("Mine candidates for breaks, and find the holes in a lab's tests."),
        help=_(
            "Break a lab in all the ways in which people break data-parallel code, one at a time, "
            "on scratch copies, and say which tests notice. A candidate that they catch may become "
            "a break; one that survives is a hole in the tests, or changes nothing that counts."
        ),
        epilog=examples(
            "breaklab suggest --list --file sampler.py",
            "breaklab suggest --first-red --limit 50 --record tried.jsonl",
            "breaklab suggest 1f0c2a3b --write 35-60",
        ),
    )(suggest)


def suggest(
    ctx: typer.Context,
    keys: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY]...", help=_("Only these candidates; default: all.")),
    ] = None,
    lab: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=_("Which lab; default: the applied break's, else the first."),
            autocompletion=complete_lab,
        ),
    ] = "",
    files: Annotated[
        list[str] | None,
        typer.Option("--file", metavar="FILE", help=_("Only in this file of the source.")),
    ] = None,
    operators: Annotated[
        list[str] | None,
        typer.Option("--operator", metavar="NAME", help=_("Only what this operator makes.")),
    ] = None,
    collectives: Annotated[
        list[str] | None,
        typer.Option(
            "--collective", metavar="PATTERN", help=_("Another name of a collective, as sync_*.")
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(metavar="N", min=0, help=_("Draw so many at random; 0: all."))
    ] = 0,
    seed: Annotated[int, typer.Option(metavar="S", help=_("Of that draw."))] = 0,
    only_list: Annotated[
        bool, typer.Option("--list", help=_("Show the candidates and run nothing."))
    ] = False,
    first_red: Annotated[
        bool, typer.Option("--first-red", help=_("Stop at the first red test; much quicker."))
    ] = False,
    jobs: Annotated[
        int, typer.Option(metavar="N", min=1, help=_("How many candidates at a time."))
    ] = 2,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help=_("Write results down; those that are in it are not run again.")
        ),
    ] = None,
    write: Annotated[
        str, typer.Option(metavar="ID", help=_("Begin a spec, as 35-60, for the one KEY."))
    ] = "",
    json: Annotated[
        bool,
        json_option(
            f"lab, candidates[] {{{_ROW}}}, groups[] {{fate, red[], keys[]}}, counts, interrupted"
        ),
    ] = False,
) -> None:
    """List, try, or write down candidates."""
    from breaklab.author.suggest import Choice, mine

    screen: Screen = ctx.obj
    opened = open_project(screen)
    chosen = _lab(opened, lab)
    overlay = {opened.active.file: opened.active.pristine} if opened.active else {}
    choice = Choice(
        files or (), operators or (), keys or (), collectives or (), limit=limit, seed=seed
    )
    if write and len(choice.keys) != 1:
        raise BreaklabError(
            _("--write needs the key of one candidate"), hint=_("see them: breaklab suggest --list")
        )
    candidates = mine(opened.project, chosen, choice, overlay)
    if write:
        draft_candidate(screen, opened.project, chosen, candidates[0], write)
        return
    if only_list:
        if json:
            screen.json(report_of(chosen.name, [row_of(each) for each in candidates]))
        else:
            print_candidates(screen, candidates)
        return
    tries = Tries(first_red=first_red, jobs=jobs, record=record, quiet=json)
    rows, interrupted = try_all(screen, opened, chosen, candidates, tries)
    report = report_of(chosen.name, rows, interrupted=interrupted)
    if json:
        screen.json(report)
    else:
        print_findings(screen, report, num_wanted=len(candidates))
    if interrupted:
        raise typer.Exit(int(ExitCode.INTERRUPTED))


def _lab(opened: OpenProject, name: str) -> Lab:
    from breaklab.spec.project import lab_named

    return lab_named(opened.project, name) if name else opened.default_lab()
