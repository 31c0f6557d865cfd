"""``breaklab verify``: prove breaks on scratch copies, several at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from breaklab.cli.complete import complete_bug_id
from breaklab.cli.lookup import OpenProject, label, open_project
from breaklab.cli.options import Trust, examples, json_option
from breaklab.cli.render import Screen
from breaklab.errors import BreaklabError, ExitCode
from breaklab.i18n import _, ngettext
from breaklab.model import BreakSpec

if TYPE_CHECKING:
    from breaklab.prove.proof import Proof
    from breaklab.ranks.warm import WarmParent

_DEFAULT_JOBS = 2


def register(app: typer.Typer) -> None:
    """Add ``verify`` to the app."""
    app.command(
        "verify",
        help=_(
            "Prove breaks on scratch copies; your tree is not changed. A proof is: green, apply, "
            "red as promised, each variant's outcome, the fix, revert, green again."
        ),
        epilog=examples("breaklab verify 35-01", "breaklab verify --all --jobs 4 --json"),
    )(verify)


def verify(
    ctx: typer.Context,
    bug_ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...",
            help=_("Which breaks; default: the applied one, else all."),
            autocompletion=complete_bug_id,
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help=_("All breaks, also with one applied."))
    ] = False,
    jobs: Annotated[
        int, typer.Option(metavar="N", min=1, help=_("How many proofs at a time."))
    ] = _DEFAULT_JOBS,
    trust: Trust = False,
    json: Annotated[
        bool, json_option("proven, proofs[] {bug_id, proven, checks[], phases[], red[]}, broken[]")
    ] = False,
) -> None:
    """Prove each break and print each verdict as it comes; exit 1 when one isn't proven."""
    screen: Screen = ctx.obj
    opened = open_project(screen, trust=trust)
    specs = _choose(opened, bug_ids or [], everything)
    broken = [] if bug_ids else list(opened.catalogue.broken.values())
    # With no ID, the applied break is proven: the verdict must not name a mystery.
    public_ids = {
        spec.bug_id: spec.bug_id if bug_ids or everything else opened.public_id(spec)
        for spec in specs
    }
    proofs = []
    for proof in _prove_all(opened, specs, jobs):
        proofs.append(proof)
        if not json:
            _print_proof(screen, proof, label(public_ids[proof.bug_id]))
    proven = not broken and all(proof.proven for proof in proofs)
    if json:
        screen.json(
            {
                "proven": proven,
                "proofs": [
                    _as_json(proof, public_ids[proof.bug_id])
                    for proof in sorted(proofs, key=lambda proof: proof.bug_id)
                ],
                "broken": [error.message for error in broken],
            }
        )
    else:
        for error in broken:
            screen.error(_("Not usable"), error.message, error.hint)
        _print_summary(screen, proofs, len(broken))
    if not proven:
        raise typer.Exit(int(ExitCode.NEGATIVE))


def _choose(opened: OpenProject, bug_ids: list[str], everything: bool) -> list[BreakSpec]:
    if bug_ids:
        return [opened.find(bug_id) for bug_id in bug_ids]
    applied = None if everything else opened.applied_spec()
    if applied:
        return [applied]
    specs = list(opened.catalogue.specs.values())
    if not specs and not opened.catalogue.broken:
        raise BreaklabError(_("this project has no breaks to verify"))
    return specs


def _prove_all(opened: OpenProject, specs: list[BreakSpec], jobs: int) -> Iterator[Proof]:
    """Yield proofs as they finish; proofs of one lab share its warm parent and its controls."""
    from breaklab.prove.controls import Controls
    from breaklab.prove.proof import prove
    from breaklab.ranks.launch import warm_parent

    overlay = {opened.active.file: opened.active.pristine} if opened.active else {}
    with ExitStack() as stack:
        shared: dict[str, tuple[WarmParent, Controls]] = {}
        pool = ThreadPoolExecutor(max_workers=jobs)
        # Entered last, so left first: no proof is running when the warm parents close.
        futures: list[Future[Proof]] = []
        for spec in specs:
            lab = opened.lab_of(spec)
            if lab.name not in shared:
                warm = stack.enter_context(warm_parent(lab))
                shared[lab.name] = warm, Controls(opened.project, lab, overlay)
        stack.callback(pool.shutdown, wait=True, cancel_futures=True)
        for spec in specs:
            lab = opened.lab_of(spec)
            warm, controls = shared[lab.name]
            futures.append(pool.submit(prove, opened.project, lab, spec, warm, controls))
        for future in as_completed(futures):
            yield future.result()


def _as_json(proof: Proof, public_id: str | None) -> dict[str, Any]:
    return {
        "bug_id": public_id,
        "proven": proof.proven,
        "checks": [asdict(check) for check in proof.checks],
        "phases": [{"name": each.name, "seconds": round(each.seconds, 3)} for each in proof.phases],
        "red": list(proof.red),
    }


def _print_proof(screen: Screen, proof: Proof, name: str) -> None:
    seconds = sum(phase.seconds for phase in proof.phases)
    word = _("proven") if proof.proven else _("NOT PROVEN")
    text = _("{name}  {word}  {checks} checks in {seconds:.1f} s").format(
        name=name, word=word, checks=len(proof.checks), seconds=seconds
    )
    screen.line(text, "good" if proof.proven else "bad")
    for check in proof.checks:
        if check.waived:
            waived = _("{name} waived: {reason} ({detail})")
            screen.prose(
                waived.format(name=check.name, reason=check.waived, detail=check.detail), indent=2
            )
        elif not check.kept:
            screen.prose(f"{check.name}: {check.detail}", "bad", indent=2)


def _print_summary(screen: Screen, proofs: Iterable[Proof], num_broken: int) -> None:
    verdicts = [proof.proven for proof in proofs]
    total = len(verdicts) + num_broken
    text = ngettext(
        "{proven} of {total} break proven", "{proven} of {total} breaks proven", total
    ).format(proven=sum(verdicts), total=total)
    screen.line(text, "good" if sum(verdicts) == total else "bad")
