"""Try candidates for breaks, several at a time, and begin a spec for one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breaklab.cli.drafting import Wish, draft_of, print_keys_to_fill_in, typed
from breaklab.cli.lookup import OpenProject
from breaklab.cli.proof_bar import proof_bar
from breaklab.cli.render import Screen
from breaklab.cli.suggestions import place_of, print_row, row_of
from breaklab.i18n import _
from breaklab.model import Lab, Project

if TYPE_CHECKING:
    from breaklab.inject.operators.candidates import Candidate
    from breaklab.prove.trial import Trial

Row = dict[str, Any]


@dataclass(frozen=True)
class Tries:
    """How candidates are tried."""

    first_red: bool
    jobs: int
    record: Path | None
    quiet: bool


def try_all(
    screen: Screen, opened: OpenProject, lab: Lab, candidates: Sequence[Candidate], tries: Tries
) -> tuple[list[Row], bool]:
    """Try candidates; print each result as it comes, unless ``quiet``.

    Returns:
        A row for each that was tried, and whether Ctrl-C came before all were.

    Raises:
        RunError: nothing can be learnt: the lab is not green without any change.
    """
    from breaklab.author.suggest import record_at
    from breaklab.prove.trial import try_candidate
    from breaklab.prove.workbench import Workbench

    record = None
    if tries.record:
        record = record_at(tries.record, opened.project, lab, first_red=tries.first_red)
    known = record.read() if record else {}
    rows: list[Row] = [known[each.key] for each in candidates if each.key in known]
    todo = [each for each in candidates if each.key not in known]
    overlay = {opened.active.file: opened.active.pristine} if opened.active else {}
    if not todo:
        return rows, False
    try:
        with (
            proof_bar(screen, len(todo), hidden=tries.quiet) as bar,
            Workbench(opened.project, overlay) as bench,
        ):

            def work(candidate: Candidate) -> Trial:
                bar.phase(candidate.key, place_of(candidate.file, candidate.line))
                return try_candidate(
                    opened.project, lab, candidate, *bench.of(lab), first_red=tries.first_red
                )

            for trial in bench.each(work, todo, tries.jobs):
                row = row_of(trial.candidate, trial)
                rows.append(row)
                if record:
                    record.add(row)
                bar.done(trial.candidate.key)
                if not tries.quiet:
                    with bar.aside():
                        print_row(screen, row)
    except KeyboardInterrupt:
        return rows, True
    return rows, False


def draft_candidate(
    screen: Screen, project: Project, lab: Lab, candidate: Candidate, bug_id: str
) -> None:
    """Write the spec of a candidate, with its red tests and how a run with it ends.

    Raises:
        ProjectError: the id is taken.
        SiteError: no pattern makes the change.
        RunError: nothing can be learnt from runs: the lab is not green or not healthy without it.
    """
    from breaklab.author.change import Change
    from breaklab.author.new import free_path, write_new

    path = free_path(project, bug_id)
    change = Change(
        lab, (lab.root / candidate.file).resolve(), candidate.pristine, candidate.broken
    )
    wish = Wish(bug_id, candidate.operator, "", "", (), run=True)

    def say() -> None:
        text = _("Running the tests that can notice, and one training, on scratch copies ...")
        screen.prose(text, "quiet", err=True)

    draft = draft_of(project, wish, change, say)
    write_new(path, draft.text)
    screen.prose(_("Written: {path}").format(path=path.relative_to(project.root)), "good")
    print_keys_to_fill_in(screen, path)
    screen.run_next(
        (f"breaklab lint {typed(path)}", _("what is still missing or wrong")),
        (f"breaklab verify {bug_id}", _("prove it")),
    )
