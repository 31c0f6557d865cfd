"""From the arguments of ``verify`` to a report: choose breaks, prove them, show each verdict."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from breaklab.cli.lookup import OpenProject, label
from breaklab.cli.proof_bar import proof_bar
from breaklab.cli.proofs import print_proof
from breaklab.cli.render import Screen
from breaklab.errors import BreaklabError
from breaklab.i18n import _
from breaklab.model import BreakSpec

if TYPE_CHECKING:
    from breaklab.prove.proof import Proof
    from breaklab.prove.report import Report


@dataclass(frozen=True)
class Wanted:
    """Which breaks to prove, and how."""

    bug_ids: Sequence[str]  # none: the applied break, else all
    everything: bool
    shard: str  # as ``2/5``; "": no split
    jobs: int
    repeat: int


def prove_wanted(screen: Screen, opened: OpenProject, wanted: Wanted, *, quiet: bool) -> Report:
    """Prove breaks, several at a time; print each verdict as it comes, unless ``quiet``.

    Raises:
        BreaklabError: there is no such break or shard, or nothing to prove.
    """
    from breaklab.prove.proof import prove
    from breaklab.prove.report import Session, report_of, row_of
    from breaklab.prove.shards import Shard, parse_shard, specs_of
    from breaklab.prove.workbench import Workbench

    shard = parse_shard(wanted.shard) if wanted.shard else Shard()
    specs = _choose(opened, wanted)
    # With no ID, the applied break is proven: the verdict must not name a mystery.
    named = bool(wanted.bug_ids) or wanted.everything or bool(wanted.shard)
    names = {spec.bug_id: opened.public_id(spec, named=named) for spec in specs}
    mine = specs_of(shard, specs)
    overlay = {opened.active.file: opened.active.pristine} if opened.active else {}
    proofs: list[Proof] = []
    started = time.monotonic()
    with (
        proof_bar(screen, len(mine), hidden=quiet) as bar,
        Workbench(opened.project, overlay) as bench,
    ):

        def work(spec: BreakSpec) -> Proof:
            lab = opened.lab_of(spec)
            return prove(
                opened.project,
                lab,
                spec,
                *bench.of(lab),
                repeat=wanted.repeat,
                on_phase=lambda bug_id, phase: bar.phase(label(names[bug_id]), phase),
            )

        for proof in bench.each(work, mine, wanted.jobs):
            proofs.append(proof)
            bar.done(label(names[proof.bug_id]))
            if not quiet:
                with bar.aside():
                    print_proof(screen, row_of(proof, names[proof.bug_id]))
    seconds = time.monotonic() - started
    broken = [] if wanted.bug_ids else opened.catalogue.broken.values()
    session = Session([*names.values()], shard, wanted.jobs, wanted.repeat, seconds)
    return report_of(session, proofs, names, [error.message for error in broken])


def _choose(opened: OpenProject, wanted: Wanted) -> list[BreakSpec]:
    """Return the breaks that all shards together prove."""
    if wanted.bug_ids:
        specs = [opened.find(bug_id) for bug_id in wanted.bug_ids]
        return list({spec.bug_id: spec for spec in specs}.values())
    applied = None if wanted.everything or wanted.shard else opened.applied_spec()
    if applied:
        return [applied]
    specs = list(opened.catalogue.specs.values())
    if not specs and not opened.catalogue.broken:
        raise BreaklabError(_("this project has no breaks to verify"))
    return specs
