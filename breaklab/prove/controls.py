"""What all proofs of one lab share: its pristine bytes, two control runs, reference runs.

A proof means nothing if the tests are not being run at all. So the pristine lab must be green,
and a lab made to fail on purpose must be red, before any break is judged.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from breaklab.i18n import _
from breaklab.inject.scope import can_notice, telling_lines
from breaklab.model import BreakSpec, Lab, Outcome, Project, RunPromise
from breaklab.prove.scratch import Scratch, scratch_copy
from breaklab.prove.suite import run_suite
from breaklab.ranks.jobs import RunReport, TestReport
from breaklab.ranks.launch import run_lab, time_limit
from breaklab.ranks.outcome import judge
from breaklab.ranks.warm import WarmParent

_FAIL_ON_PURPOSE = b'\nraise RuntimeError("made to fail on purpose")\n'

ControlCheck = tuple[str, bool, str]


@dataclass
class Controls:
    """Control and reference runs of one lab, each made once and shared by proofs in parallel.

    Args:
        project: where the lab lives.
        lab: the lab under proof.
        overlay: pristine bytes by path relative to the project's root, where the learner's tree
            has a break applied.
        hang_timeout_s: after how many silent seconds a run counts as stalled if no proof of a
            deadlock comes first.
    """

    project: Project
    lab: Lab
    overlay: Mapping[str, bytes] = field(default_factory=dict)
    hang_timeout_s: float = 15.0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _checks: tuple[ControlCheck, ...] = ()
    _pristine_report: TestReport | None = None
    _references: dict[tuple[tuple[str, ...], int | None], RunReport] = field(default_factory=dict)

    def checks(self, warm: WarmParent) -> tuple[ControlCheck, ...]:
        """Return the control checks, as (name, kept, detail); run them at the first call."""
        with self._lock:
            if not self._checks:
                self._checks = (*self._pristine(warm), self._made_to_fail(warm))
            return self._checks

    def _pristine(self, warm: WarmParent) -> tuple[ControlCheck, ControlCheck]:
        with self._copy(warm) as scratch:
            report = run_suite(warm, scratch.tests(trace_lines=True))
            self._pristine_report = report
            detail = _("pristine lab is not green: {reason}").format(reason=why_not_green(report))
            return ("green", report.green, detail), (
                "control:copy",
                *tests_ran_copy(report, scratch),
            )

    def _made_to_fail(self, warm: WarmParent) -> ControlCheck:
        with self._copy(warm) as scratch:
            for module in scratch.lab.source.rglob("*.py"):
                module.write_bytes(module.read_bytes() + _FAIL_ON_PURPOSE)
            report = warm.run_tests(scratch.tests())  # nothing can be imported: one job is quick
            failed = bool(report.red) or report.exit_code not in (0, 5)
            return "control:red", failed, _("a lab made to fail is not red: its tests are not run")

    def tests_of(self, file: str, pristine: bytes, broken: bytes) -> tuple[str, ...]:
        """Return the node ids of the tests that a change of ``file`` can affect.

        Those that ran a line which tells the change in the pristine control run, or of which no
        line is known; empty, meaning all, when something changed that runs at import. ``file`` is
        relative to the source.
        """
        lines = telling_lines(pristine, broken)
        return () if lines is None else self._running(file, lines)

    def noticing(self, file: str, pristine: bytes, broken: bytes) -> tuple[str, ...]:
        """Return the tests that :meth:`tests_of` means, each by name, the quickest first.

        Empty where no test gets to the changed lines.
        """
        return self.quickest(self._running(file, telling_lines(pristine, broken)))

    def _running(self, file: str, lines: frozenset[int] | None) -> tuple[str, ...]:
        """Return the tests that ran one of ``lines`` or may have; None stands for any line."""
        report = self._pristine_report
        if report is None:
            return ()
        runs = ((each.nodeid, report.lines_run.get(each.nodeid)) for each in report.results)
        return tuple(
            node
            for node, run in runs
            if lines is None or run is None or can_notice(run, file, lines)
        )

    def quickest(self, nodeids: Sequence[str], count: int | None = None) -> tuple[str, ...]:
        """Return the tests, those first that took least time in the pristine control run.

        Args:
            nodeids: which tests.
            count: how many of them at most; default: all.
        """
        seconds = self._durations()
        return tuple(sorted(nodeids, key=lambda node: seconds.get(node, 0.0))[:count])

    def seconds(self, tests: Collection[str]) -> float:
        """Return how long tests took in the pristine control run."""
        seconds = self._durations()
        return sum(seconds.get(node, 0.0) for node in tests)

    def _durations(self) -> dict[str, float]:
        results = self._pristine_report.results if self._pristine_report else ()
        return {each.nodeid: each.duration_s for each in results}

    def reference(self, promise: RunPromise, warm: WarmParent) -> RunReport:
        """Return the pristine lab's run with the arguments of ``promise``."""
        key = (promise.args, promise.num_ranks)
        with self._lock:
            if key not in self._references:
                with self._copy(warm) as scratch:
                    self._references[key] = self._run(scratch, promise, warm, None)
            return self._references[key]

    def run_promise(
        self, scratch: Scratch, spec: BreakSpec, promise: RunPromise, warm: WarmParent
    ) -> str:
        """Run one variant of a broken lab; return what differs from the promise, or ``""``."""
        reference = self.reference(promise, warm)
        metrics = self.lab.metrics
        healthy = judge(reference, metrics, None)
        if healthy.outcome is not Outcome.HEALTHY:
            return _("the pristine lab's own run is {outcome}: {summary}").format(
                outcome=healthy.outcome, summary=healthy.summary
            )
        report = self._run(scratch, promise, warm, time_limit(reference.duration_s))
        judged = judge(report, metrics, reference)
        return _difference(promise, judged.outcome, judged.summary, report)

    def _run(
        self, scratch: Scratch, promise: RunPromise, warm: WarmParent, limit_s: float | None
    ) -> RunReport:
        return run_lab(
            warm,
            scratch.lab,
            args=promise.args,
            num_ranks=promise.num_ranks,
            hang_timeout_s=self.hang_timeout_s,
            total_timeout_s=limit_s,
            fault=promise.fault if limit_s is not None else "",  # the reference runs without
        )

    def _copy(self, warm: WarmParent) -> AbstractContextManager[Scratch]:
        return scratch_copy(self.project, self.lab, overlay=self.overlay, parent=warm.folder())


def _difference(promise: RunPromise, outcome: Outcome, summary: str, report: RunReport) -> str:
    problems = []
    if outcome is not promise.outcome:
        problems.append(
            _("promised {promised}, was {outcome}: {summary}").format(
                promised=promise.outcome, outcome=outcome, summary=summary
            )
        )
    if promise.at_step is not None and report.last_step != promise.at_step:
        problems.append(
            _("promised at step {promised}, was at step {step}").format(
                promised=promise.at_step, step=report.last_step
            )
        )
    if promise.output and not any(promise.output in line.text for line in report.lines):
        problems.append(_("no rank printed {text!r}").format(text=promise.output))
    return "; ".join(problems)


def why_not_green(report: TestReport) -> str:
    """Say in one line why a test report is not green."""
    if report.timed_out:
        return _("over the time limit")
    if report.red:
        return ", ".join(report.red[:5])
    last = report.output.strip().splitlines()
    return last[-1] if last else _("no test was run")


def tests_ran_copy(report: TestReport, scratch: Scratch) -> tuple[bool, str]:
    """Return whether all that was imported of the lab came from the copy, and if not, what."""
    source = scratch.lab.source.resolve()
    strangers = [
        f"{package} from {origin}"
        for package, origin in report.origins.items()
        if not Path(origin).resolve().is_relative_to(source)
    ]
    if not report.origins:
        return False, _("the tests imported nothing from the lab's source")
    return not strangers, _("the tests ran another copy: {what}").format(what=", ".join(strangers))
