"""``breaklab new``: a spec to begin with, from a change that was made or from nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from breaklab.cli.complete import complete_lab
from breaklab.cli.drafting import (
    Draft,
    Wish,
    draft_from_change,
    keys_to_fill_in,
    print_keys_to_fill_in,
    schema_step,
    typed,
)
from breaklab.cli.lookup import open_project
from breaklab.cli.options import TrainingArgs, examples, json_option
from breaklab.cli.render import Screen
from breaklab.errors import BreaklabError
from breaklab.i18n import _, ngettext
from breaklab.model import Outcome, Project


def register(app: typer.Typer) -> None:
    """Add ``new`` to the app."""
    app.command(
        "new",
        short_help=_("Begin a spec, from a change that you made or from nothing."),
        help=_(
            "Begin a spec. With --from-diff, from the one change that you made in a lab's source "
            "since the last commit: its pattern and fix, the tests that go red and how a run ends. "
            "Without, a scaffold that explains each key."
        ),
        epilog=examples(
            "breaklab new 35-40 --from-diff --slug late-wait --restore",
            "breaklab new 35-40 --from-diff -- --sync micro-batch",
            "breaklab new 35-41",
        ),
    )(new)


def new(
    ctx: typer.Context,
    bug_id: Annotated[str, typer.Argument(metavar="ID", help=_("The new break, as 35-40."))],
    training_args: TrainingArgs = None,
    from_diff: Annotated[
        bool, typer.Option("--from-diff", help=_("Take the change that you made in the source."))
    ] = False,
    slug: Annotated[str, typer.Option(metavar="NAME", help=_("A short name, as late-wait."))] = "",
    lab: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=_("Its lab; default: the one that has the file."),
            autocompletion=complete_lab,
        ),
    ] = "",
    variant: Annotated[
        str, typer.Option(metavar="NAME", help=_("What to call the run; default: its outcome."))
    ] = "",
    no_run: Annotated[
        bool, typer.Option("--no-run", help=_("Run neither the tests nor the training."))
    ] = False,
    restore: Annotated[
        bool,
        typer.Option("--restore", help=_("Then put the source back; a copy of yours is saved.")),
    ] = False,
    json: Annotated[
        bool,
        json_option(
            "bug_id, path, file, inside, exact, red[], run {variant, args[], outcome, at_step, "
            "summary}, todo[], saved"
        ),
    ] = False,
) -> None:
    """Write the spec and say what is left to do; the source stays as it is unless told."""
    from breaklab.author.new import free_path, scaffold, write_new
    from breaklab.spec.project import lab_named

    screen: Screen = ctx.obj
    project = open_project(screen).project
    path = free_path(project, bug_id)
    if lab:
        lab_named(project, lab)
    wish = Wish(bug_id, slug, lab, variant, tuple(training_args or ()), run=not no_run)
    draft, saved = None, None
    if from_diff:
        draft = draft_from_change(project, wish, lambda: _say_that_it_takes_a_while(screen))
    elif restore or wish.args or variant:
        raise BreaklabError(_("without --from-diff nothing is run and nothing put back"))
    write_new(path, draft.text if draft else scaffold(bug_id, slug, lab))
    if draft and restore:
        from breaklab.author.change import put_back

        saved = put_back(project, draft.change, bug_id)
    if json:
        screen.json(_as_json(wish, path, draft, saved))
        return
    screen.prose(_("Written: {path}").format(path=path.relative_to(project.root)), "good")
    if draft:
        _print_seen(screen, draft)
    print_keys_to_fill_in(screen, path)
    _print_next(screen, project, path, bug_id, draft, saved)


def _say_that_it_takes_a_while(screen: Screen) -> None:
    text = _("Running the tests that can notice, and one training, on scratch copies ...")
    screen.prose(text, "quiet", err=True)


def _as_json(wish: Wish, path: Path, draft: Draft | None, saved: Path | None) -> dict[str, Any]:
    derived = draft.derivation.derived if draft else None
    seen = draft.seen if draft else None
    return {
        "bug_id": wish.bug_id,
        "path": str(path),
        "file": derived.injection.file if derived else None,
        "inside": derived.injection.inside if derived else None,
        "exact": derived.exact if derived else None,
        "red": list(seen.red) if seen else None,
        "run": {
            "variant": draft.variant,
            "args": list(wish.args),
            "outcome": seen.outcome.value,
            "at_step": seen.at_step,
            "summary": seen.summary,
        }
        if draft and seen
        else None,
        "todo": keys_to_fill_in(path),
        "saved": str(saved) if saved else None,
    }


def _print_seen(screen: Screen, draft: Draft) -> None:
    derived = draft.derivation.derived
    place = derived.injection.file
    if derived.injection.inside:
        place = _("{file}, in {function}").format(file=place, function=derived.injection.inside)
    screen.prose(_("The change is in {place}.").format(place=place), indent=2)
    if not derived.exact:
        text = _("The pattern makes the same program; comments or layout of your change are lost.")
        screen.prose(text, "warn", indent=2)
    seen = draft.seen
    if seen is None:
        return
    num_red = len(seen.red)
    if num_red:
        text = ngettext("{num} test goes red:", "{num} tests go red:", num_red).format(num=num_red)
        screen.prose(text, indent=2)
        for nodeid in seen.red:
            screen.line(f"    {nodeid}")
    else:
        text = _("No test goes red: nobody can observe this break. Mend the lab's tests first.")
        screen.prose(text, "bad", indent=2)
    style = "warn" if seen.outcome is Outcome.HEALTHY else ""
    text = _("A run is {outcome}: {summary}").format(outcome=seen.outcome, summary=seen.summary)
    screen.prose(text, style, indent=2)


def _print_next(
    screen: Screen,
    project: Project,
    path: Path,
    bug_id: str,
    draft: Draft | None,
    saved: Path | None,
) -> None:
    screen.line()
    if saved:
        text = _("The source is as it was; what you had is in {path}.")
        screen.prose(text.format(path=saved.relative_to(project.root)))
    steps = []
    if draft and not saved:
        command = f"git checkout -- {typed(draft.change.path)}"
        steps.append((command, _("put your source back; the spec has the change now")))
    steps += schema_step(path)
    steps.append((f"breaklab lint {typed(path)}", _("what is still missing or wrong")))
    if not draft:
        steps.append((f"breaklab refresh --red {bug_id}", _("fill in the fix and the red tests")))
    steps.append((f"breaklab verify {bug_id}", _("prove it")))
    screen.run_next(*steps)
