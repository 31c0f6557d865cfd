"""``breaklab refresh``: bring specs up to date after the lab has changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from breaklab.cli.complete import complete_bug_id
from breaklab.cli.drafting import typed
from breaklab.cli.lookup import OpenProject, open_project
from breaklab.cli.options import Jobs, Trust, examples, json_option
from breaklab.cli.render import Screen
from breaklab.errors import BreaklabError, ExitCode
from breaklab.i18n import _, ngettext
from breaklab.model import BreakSpec

if TYPE_CHECKING:
    from breaklab.author.refresh import Refresh


def register(app: typer.Typer) -> None:
    """Add ``refresh`` to the app."""
    app.command(
        "refresh",
        short_help=_("Bring specs up to date after the lab has changed."),
        help=_(
            "Bring specs up to date after the lab has changed, and show what changes: the fix, the "
            "pattern where the lab only renamed something, with --red the tests that go red. "
            "Comments and layout stay."
        ),
        epilog=examples("breaklab refresh --dry-run", "breaklab refresh 35-01 --red"),
    )(refresh)


@dataclass(frozen=True)
class _Refreshed:
    """What became of one spec."""

    spec: BreakSpec
    refresh: Refresh | None = None
    error: BreaklabError | None = None


def refresh(
    ctx: typer.Context,
    bug_ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...",
            help=_("Which breaks; default: all."),
            autocompletion=complete_bug_id,
        ),
    ] = None,
    red: Annotated[
        bool, typer.Option("--red", help=_("Run the tests, and list those that go red."))
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help=_("Show what would change; write nothing."))
    ] = False,
    jobs: Jobs = 2,
    trust: Trust = False,
    json: Annotated[
        bool, json_option("specs[] {bug_id, path, changed[], diff, written, error}")
    ] = False,
) -> None:
    """Write each spec that is out of date; exit 1 when one can't be brought up to date."""
    screen: Screen = ctx.obj
    opened = open_project(screen, trust=trust)
    named = [opened.find(bug_id) for bug_id in dict.fromkeys(bug_ids or [])]
    specs = named or list(opened.catalogue.specs.values())
    broken = [] if bug_ids else list(opened.catalogue.broken.values())
    if red and not json:
        text = _("Running the tests of each break on scratch copies ...")
        screen.prose(text, "quiet", err=True)
    done = [_written(each, dry_run) for each in _refresh_all(opened, specs, red, jobs)]
    if json:
        screen.json({"specs": [_as_json(each, dry_run) for each in done]})
    else:
        for each in done:
            _print(screen, each)
        _print_summary(screen, done, dry_run)
    for error in broken:
        screen.error(_("Not usable"), error.message, error.hint)
    if broken or any(each.error for each in done):
        raise typer.Exit(int(ExitCode.NEGATIVE))


def _refresh_all(
    opened: OpenProject, specs: list[BreakSpec], red: bool, jobs: int
) -> list[_Refreshed]:
    """Return what brings each spec up to date, in their order; nothing is written."""
    if not red:
        return [_refreshed(opened, spec, None) for spec in specs]
    from breaklab.prove.observe import observe_red
    from breaklab.prove.workbench import Workbench

    overlay = {opened.active.file: opened.active.pristine} if opened.active else {}
    with Workbench(opened.project, overlay) as bench:

        def measure(spec: BreakSpec) -> _Refreshed:
            first = _refreshed(opened, spec, None)
            if first.refresh is None:
                return first
            lab = opened.lab_of(spec)
            broken = first.refresh.broken
            seen = observe_red(opened.project, lab, spec.inject.file, broken, *bench.of(lab))
            return _refreshed(opened, spec, seen)

        done = {each.spec.bug_id: each for each in bench.each(measure, specs, jobs)}
    return [done[spec.bug_id] for spec in specs]


def _refreshed(opened: OpenProject, spec: BreakSpec, red: tuple[str, ...] | None) -> _Refreshed:
    from breaklab.author.refresh import refresh as bring_up_to_date

    try:
        return _Refreshed(spec, bring_up_to_date(opened.project, spec, red=red))
    except BreaklabError as error:
        return _Refreshed(spec, error=error)


def _written(each: _Refreshed, dry_run: bool) -> _Refreshed:
    if each.refresh is None or dry_run:
        return each
    try:
        each.refresh.write()
    except BreaklabError as error:
        return _Refreshed(each.spec, each.refresh, error)
    return each


def _as_json(each: _Refreshed, dry_run: bool) -> dict[str, Any]:
    found, error = each.refresh, each.error
    changed = list(found.changed) if found else []
    return {
        "bug_id": each.spec.bug_id,
        "path": str(each.spec.path),
        "changed": changed,
        "diff": found.diff if found else "",
        "written": bool(changed) and error is None and not dry_run,
        "error": error.message if error else None,
    }


def _print(screen: Screen, each: _Refreshed) -> None:
    if each.error:
        screen.error(typed(each.spec.path), each.error.message, each.error.hint)
    elif each.refresh and each.refresh.changed:
        keys = ", ".join(each.refresh.changed)
        screen.line(f"{each.spec.bug_id}  {keys}", "strong")
        screen.listing(each.refresh.diff, {"+": "good", "-": "bad"})
        if "expect.red" in each.refresh.changed and "red: []" in each.refresh.after:
            screen.prose(_("no test goes red: nobody can observe this break"), "bad", indent=2)


def _print_summary(screen: Screen, done: list[_Refreshed], dry_run: bool) -> None:
    failed = sum(each.error is not None for each in done)
    changed = sum(bool(each.refresh and each.refresh.changed) for each in done if not each.error)
    text = (
        ngettext(
            "{changed} of {total} spec is out of date",
            "{changed} of {total} specs are out of date",
            len(done),
        )
        if dry_run
        else ngettext(
            "{changed} of {total} spec rewritten", "{changed} of {total} specs rewritten", len(done)
        )
    ).format(changed=changed, total=len(done))
    if failed:
        text += ", " + ngettext(
            "{num} can't be refreshed", "{num} can't be refreshed", failed
        ).format(num=failed)
    screen.line(text, "bad" if failed else "good")
