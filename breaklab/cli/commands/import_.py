"""``breaklab import``: breaks that a learner wrote down become drafts of specs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from breaklab.cli.drafting import keys_to_fill_in, print_keys_to_fill_in, schema_step, typed
from breaklab.cli.lookup import open_project
from breaklab.cli.options import examples, json_option
from breaklab.cli.render import Screen
from breaklab.errors import BreaklabError, ExitCode, ProjectError
from breaklab.i18n import _, language
from breaklab.model import LANGUAGES, Project

if TYPE_CHECKING:
    from breaklab.spec.notes import Note


def register(app: typer.Typer) -> None:
    """Add ``import`` to the app."""
    app.command(
        "import",
        short_help=_("Turn breaks that a learner wrote down into drafts of specs."),
        help=_(
            "Turn breaks that a learner wrote down, as the list of a notes/breaks.md, into drafts "
            "of specs. A fix that is a diff of the lab's source becomes the pattern, too."
        ),
        epilog=examples(
            "breaklab import learners/ada/phase-35/notes/breaks.md",
            "breaklab import breaks.md --entry 35-01 --as 35-40 --in es",
        ),
    )(import_)


@dataclass(frozen=True)
class _Imported:
    """What became of one note."""

    note: Note
    bug_id: str
    path: Path | None = None  # the draft, where one was written
    error: BreaklabError | None = None


def import_(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help=_("Markdown with the breaks."))],
    entry: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help=_("Only the break noted under this id; repeatable.")),
    ] = None,
    bug_id: Annotated[
        str, typer.Option("--as", metavar="ID", help=_("Another id for the draft of one break."))
    ] = "",
    note_language: Annotated[
        str | None,
        typer.Option(
            "--in",
            metavar="|".join(LANGUAGES),
            help=_("Language of the notes; default: that of the messages."),
        ),
    ] = None,
    json: Annotated[
        bool, json_option("drafts[] {bug_id, line, path, has_pattern, todo[], error}")
    ] = False,
) -> None:
    """Write one draft for each break; one whose id is taken does not keep the others from it."""
    from breaklab.spec.notes import load_notes

    screen: Screen = ctx.obj
    if note_language not in (None, *LANGUAGES):
        raise typer.BadParameter(
            _("{value!r} is not a language of breaklab; choose from {known}").format(
                value=note_language, known=", ".join(LANGUAGES)
            )
        )
    project = open_project(screen).project
    notes = _chosen(file, load_notes(file), entry or [])
    if bug_id and len(notes) > 1:
        raise BreaklabError(
            _("--as names one draft, but {file} notes {num} breaks").format(
                file=file, num=len(notes)
            ),
            hint=_("choose one with --entry ID"),
        )
    done = [_import(project, note, bug_id, note_language or language()) for note in notes]
    if json:
        screen.json({"drafts": [_as_json(each) for each in done]})
    else:
        for each in done:
            _print(screen, project, file, each)
        _print_next(screen, done)
    if any(each.error for each in done):
        raise typer.Exit(int(ExitCode.USAGE))


def _chosen(file: Path, notes: list[Note], entries: list[str]) -> list[Note]:
    if not notes:
        raise BreaklabError(
            _("{file} notes no break").format(file=file),
            hint=_("a break is an item of a list that begins with `- bug-id: 35-01`"),
        )
    for bug_id in entries:
        if bug_id not in [note.bug_id for note in notes]:
            known = ", ".join(note.bug_id for note in notes)
            raise BreaklabError(
                _("{file} notes no break {bug_id}").format(file=file, bug_id=bug_id),
                hint=_("it notes: {known}").format(known=known),
            )
    return [note for note in notes if not entries or note.bug_id in entries]


def _import(project: Project, note: Note, bug_id: str, note_language: str) -> _Imported:
    from breaklab.author.import_notes import draft_from_note
    from breaklab.author.new import free_path, write_new

    bug_id = bug_id or note.bug_id
    try:
        path = free_path(project, bug_id)
    except ProjectError as error:
        hint = error.hint or _("give the draft another id: --entry {bug_id} --as ID").format(
            bug_id=note.bug_id
        )
        return _Imported(note, bug_id, error=ProjectError(error.message, hint=hint))
    write_new(path, draft_from_note(project, note, language=note_language, bug_id=bug_id))
    return _Imported(note, bug_id, path)


def _has_pattern(path: Path) -> bool:
    return "inject.find" not in keys_to_fill_in(path)


def _as_json(each: _Imported) -> dict[str, Any]:
    return {
        "bug_id": each.bug_id,
        "line": each.note.line,
        "path": str(each.path) if each.path else None,
        "has_pattern": _has_pattern(each.path) if each.path else None,
        "todo": keys_to_fill_in(each.path) if each.path else [],
        "error": each.error.message if each.error else None,
    }


def _print(screen: Screen, project: Project, file: Path, each: _Imported) -> None:
    if each.error or each.path is None:
        assert each.error is not None
        screen.error(f"{file}:{each.note.line}", each.error.message, each.error.hint)
        return
    screen.prose(_("Written: {path}").format(path=each.path.relative_to(project.root)), "good")
    text = (
        _("Its fix is a diff of the lab's source: the pattern is made from it.")
        if _has_pattern(each.path)
        else _("Its fix is in words, kept as a comment: the pattern is yours to write.")
    )
    screen.prose(text, indent=2)
    print_keys_to_fill_in(screen, each.path)


def _print_next(screen: Screen, done: list[_Imported]) -> None:
    written = [each for each in done if each.path is not None]
    if not written:
        return
    ids = " ".join(each.bug_id for each in written)
    paths = [each.path for each in written if each.path is not None]
    screen.line()
    screen.run_next(
        *schema_step(paths[0]),
        (f"breaklab lint {' '.join(map(typed, paths))}", _("what is still missing or wrong")),
        (f"breaklab refresh --red {ids}", _("fill in the fix and the red tests")),
        (f"breaklab verify {ids}", _("prove it")),
    )
