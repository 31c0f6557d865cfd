"""The full check of one break, on a scratch copy: green, apply, red, outcomes, revert, green.

A proof trusts nothing that it has not seen: the pristine lab is green and a lab made to fail is
red (:mod:`breaklab.prove.controls`), the tests ran the scratch copy, the break goes through the
same ``apply`` and ``revert`` as a learner's, and ``fix_diff`` is really applied with git.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from breaklab.errors import BreaklabError, Finding
from breaklab.i18n import _
from breaklab.inject.edit import inject
from breaklab.inject.rules import static_findings
from breaklab.model import BreakSpec, Lab, Project
from breaklab.prove.controls import Controls, tests_ran_copy
from breaklab.prove.repeat import Round, play_round, unsteady
from breaklab.prove.scratch import Scratch, scratch_copy
from breaklab.ranks.jobs import TestReport
from breaklab.ranks.warm import WarmParent
from breaklab.tree.patch import git_apply
from breaklab.tree.workspace import Workspace

_NUM_AGAIN = 3  # red tests that must be green again


@dataclass(frozen=True)
class Check:
    """One promise of a spec, or one hard rule, and whether it was kept."""

    name: str  # ``green``, ``site``, ``red``, ``run:VARIANT``, ``fix_diff``, ``revert``, ``R1`` ...
    kept: bool
    detail: str = ""
    waived: str = ""  # the spec's reason, where a broken rule is waived


@dataclass(frozen=True)
class Phase:
    """How long one part of a proof took, so that anyone can recompute the figures."""

    name: str
    seconds: float


@dataclass(frozen=True)
class Proof:
    """The verdict on one break, with the evidence for it."""

    bug_id: str
    checks: tuple[Check, ...]
    phases: tuple[Phase, ...]
    red: tuple[str, ...] = ()  # node ids that went red with the break applied

    @property
    def proven(self) -> bool:
        """Whether every promise was kept and every rule obeyed or waived."""
        return bool(self.checks) and all(check.kept or check.waived for check in self.checks)


@dataclass
class _Log:
    """Checks and phases as they come."""

    on_phase: Callable[[str, str], None] | None
    bug_id: str
    checks: list[Check] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    red: tuple[str, ...] = ()

    def check(self, name: str, kept: bool, detail: str = "") -> bool:
        self.checks.append(Check(name, kept, "" if kept else detail))
        return kept

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        if self.on_phase:
            self.on_phase(self.bug_id, name)
        started = time.monotonic()
        try:
            yield
        finally:
            self.phases.append(Phase(name, time.monotonic() - started))

    def proof(self) -> Proof:
        return Proof(self.bug_id, tuple(self.checks), tuple(self.phases), self.red)


def prove(
    project: Project,
    lab: Lab,
    spec: BreakSpec,
    warm: WarmParent,
    controls: Controls,
    *,
    repeat: int = 1,
    on_phase: Callable[[str, str], None] | None = None,
) -> Proof:
    """Prove ``spec`` on a scratch copy of ``lab``; never raises for a promise that isn't kept.

    Args:
        project: where the lab lives; not changed.
        lab: the lab that the break is for.
        spec: the break.
        warm: the parent that tests and ranks are forked from; shared by proofs in parallel.
        controls: the lab's pristine bytes and control runs, shared by all proofs of one lab.
        repeat: how many times its red tests and its variants are run; each time must be the same.
        on_phase: called with the bug id and the name of each phase as it begins.
    """
    log = _Log(on_phase, spec.bug_id)
    with scratch_copy(project, lab, overlay=controls.overlay, parent=warm.folder()) as scratch:
        try:
            _prove_in(scratch, spec, warm, controls, repeat, log)
        except BreaklabError as error:
            log.check("site", False, error.message)
    return log.proof()


def _prove_in(
    scratch: Scratch,
    spec: BreakSpec,
    warm: WarmParent,
    controls: Controls,
    repeat: int,
    log: _Log,
) -> None:
    file = scratch.lab.root / spec.inject.file
    with log.phase("controls"):
        for name, kept, detail in controls.checks(warm):
            log.check(name, kept, detail)
    with log.phase("transform"):
        pristine = file.read_bytes()
        broken = inject(pristine, spec.inject, path=spec.inject.file).source
        log.check("site", broken != pristine, _("the injection changes nothing"))
        _rules(spec, static_findings(spec, pristine, broken), log)
    with log.phase("apply"), Workspace.open(scratch.project) as workspace:
        workspace.apply(scratch.lab, spec.bug_id, file, broken)
    with log.phase("test"):
        report = warm.run_tests(scratch.tests(_targets(scratch, spec, controls, pristine, broken)))
        log.red = report.red
        _compare_red(spec, scratch, report, log)
    unmet = {}
    for promise in spec.runs:
        with log.phase(f"run {promise.variant}"):
            detail = unmet[promise.variant] = controls.run_promise(scratch, spec, promise, warm)
            log.check(f"run:{promise.variant}", not detail, detail)
    if repeat > 1:
        _repeat(scratch, spec, warm, controls, [Round(frozenset(log.red), unmet)], repeat, log)
    with log.phase("fix_diff"):
        _apply_fix_diff(spec, scratch, file, broken, pristine, log)
    with log.phase("revert"), Workspace.open(scratch.project) as workspace:
        workspace.revert()
        log.check("revert", file.read_bytes() == pristine, _("revert left other bytes"))
    with log.phase("green again"):
        # The bytes are the pristine ones; a few tests show that those are what runs again.
        some = controls.quickest(spec.red or log.red, _NUM_AGAIN)
        again = warm.run_tests(scratch.tests(some))
        detail = _("still red after revert: {tests}").format(tests=", ".join(again.red))
        log.check("green again", again.green, detail)


def _repeat(
    scratch: Scratch,
    spec: BreakSpec,
    warm: WarmParent,
    controls: Controls,
    rounds: list[Round],
    repeat: int,
    log: _Log,
) -> None:
    """Play more rounds like the first, and check that all are the same: R6."""
    tests = tuple(dict.fromkeys((*spec.red, *log.red)))
    for number in range(2, repeat + 1):
        with log.phase(f"repeat {number}"):
            rounds.append(play_round(scratch, spec, tests, warm, controls))
    detail = unsteady(rounds)
    log.checks.append(Check("R6", not detail, detail, spec.waive.get("R6", "") if detail else ""))


def _targets(
    scratch: Scratch, spec: BreakSpec, controls: Controls, pristine: bytes, broken: bytes
) -> tuple[str, ...]:
    """Return the tests to run on the broken lab: all that can notice, and all that are promised.

    A test that never gets to the change in the pristine lab stays green in the broken one.
    """
    file = (scratch.lab.root / spec.inject.file).relative_to(scratch.lab.source).as_posix()
    tests = controls.tests_of(file, pristine, broken)
    return tuple(dict.fromkeys((*tests, *spec.red))) if tests else ()


def _rules(spec: BreakSpec, findings: list[Finding], log: _Log) -> None:
    broken_rules = {finding.rule: finding.message for finding in findings}
    for rule in ("R1", "R2", "R4", "R7", "R8"):
        kept = rule not in broken_rules
        detail = broken_rules.get(rule, "")
        log.checks.append(Check(rule, kept, detail, "" if kept else spec.waive.get(rule, "")))


def _compare_red(spec: BreakSpec, scratch: Scratch, report: TestReport, log: _Log) -> None:
    """Check that exactly the promised tests are red, and that they tested the scratch copy."""
    promised, seen = set(spec.red), set(report.red)
    problems = []
    if report.timed_out:
        problems.append(_("the tests ran over their time limit"))
    if missing := sorted(promised - seen):
        problems.append(_("promised red but green: {tests}").format(tests=", ".join(missing)))
    if extra := sorted(seen - promised):
        problems.append(_("red but not promised: {tests}").format(tests=", ".join(extra)))
    log.check("red", not problems, "; ".join(problems))
    log.check("R3", bool(seen), _("no test goes red: nobody can observe this break"))
    log.check("copy", *tests_ran_copy(report, scratch))


def _apply_fix_diff(
    spec: BreakSpec, scratch: Scratch, file: Path, broken: bytes, pristine: bytes, log: _Log
) -> None:
    """Apply ``fix_diff`` with git to the broken source and compare with the pristine bytes."""
    try:
        done = git_apply(scratch.lab.root, spec.fix_diff)
    except FileNotFoundError:
        log.check("fix_diff", False, _("git is not installed"))
        return
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().splitlines()
        log.check("fix_diff", False, reason[0] if reason else _("git apply failed"))
        return
    same = file.read_bytes() == pristine
    log.check("fix_diff", same, _("fix_diff does not give the pristine bytes"))
    file.write_bytes(broken)
