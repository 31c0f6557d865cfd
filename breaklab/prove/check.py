"""Judge a learner's own fix, in their tree: any fix that meets every invariant counts."""

from __future__ import annotations

from dataclasses import dataclass

from breaklab.model import Lab, Project
from breaklab.prove.scratch import TESTS_TIMEOUT_S
from breaklab.prove.suite import run_suite
from breaklab.ranks.jobs import TestJob, TestReport
from breaklab.ranks.warm import WarmParent
from breaklab.tree.workspace import ActiveBreak, changed_tests


@dataclass(frozen=True)
class FixVerdict:
    """Whether the learner's fix holds, and what kind of fix it is."""

    report: TestReport | None  # None where the source is untouched: nothing to run
    changed_tests: tuple[str, ...]  # test files changed since apply, relative to the project root
    untouched: bool  # the source is still exactly as apply left it
    equals_original: bool  # the fix gives the pristine bytes

    @property
    def solved(self) -> bool:
        """Whether the tests are green, and are the tests that were there at apply."""
        green = self.report is not None and self.report.green
        return green and not self.changed_tests


def check_fix(project: Project, lab: Lab, active: ActiveBreak, warm: WarmParent) -> FixVerdict:
    """Run the lab's tests on the learner's tree and judge the fix; changes nothing.

    Raises:
        TreeError: the source file that the break is in is gone.
        RunError: the tests could not be started.
    """
    current = active.read_source(project)
    untouched = current == active.broken
    return FixVerdict(
        report=None if untouched else run_suite(warm, _all_tests(project, lab)),
        changed_tests=changed_tests(project, lab, active),
        untouched=untouched,
        equals_original=current == active.pristine,
    )


def _all_tests(project: Project, lab: Lab) -> TestJob:
    tests = lab.tests.relative_to(project.root).as_posix()
    return TestJob(project.root, lab.source, (tests,), timeout_s=TESTS_TIMEOUT_S)
