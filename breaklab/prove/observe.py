"""What a changed source does, where nothing was promised yet: red tests, and how a run ends."""

from __future__ import annotations

from dataclasses import dataclass

from breaklab.errors import RunError
from breaklab.i18n import _
from breaklab.model import Lab, Outcome, Project, RunPromise
from breaklab.prove.controls import Controls
from breaklab.prove.scratch import scratch_copy
from breaklab.ranks.launch import run_lab, time_limit
from breaklab.ranks.outcome import judge
from breaklab.ranks.warm import WarmParent


@dataclass(frozen=True)
class Observation:
    """Facts for a new spec."""

    red: tuple[str, ...]  # node ids
    outcome: Outcome
    at_step: int | None  # the last step that any rank reached
    summary: str


def observe(
    project: Project,
    lab: Lab,
    file: str,
    broken: bytes,
    warm: WarmParent,
    controls: Controls,
    *,
    args: tuple[str, ...] = (),
) -> Observation:
    """Return which tests go red and how a run ends with ``broken`` in place of ``file``.

    Args:
        project: where the lab lives; not changed.
        lab: the lab.
        file: what is changed, relative to the lab's root.
        broken: its bytes with the change.
        warm: the parent that tests and ranks are forked from.
        controls: of the same lab; its overlay holds the pristine bytes of a file that is changed
            in the project.
        args: for the training entrypoint.

    Raises:
        RunError: the pristine lab is not green, so that nothing can be learnt from red tests.
    """
    for _name, kept, detail in controls.checks(warm):
        if not kept:
            raise RunError(detail)
    with scratch_copy(project, lab, overlay=controls.overlay, parent=warm.folder()) as scratch:
        path = scratch.lab.root / file
        pristine = path.read_bytes()
        path.write_bytes(broken)
        in_source = path.relative_to(scratch.lab.source).as_posix()
        tests = controls.tests_of(in_source, pristine, broken)
        red = warm.run_tests(scratch.tests(tests)).red
        promise = RunPromise("observed", Outcome.HEALTHY, args)
        reference = controls.reference(promise, warm)
        if judge(reference, lab.metrics, None).outcome is not Outcome.HEALTHY:
            raise RunError(_("the pristine lab's own run is not healthy"))
        report = run_lab(
            warm,
            scratch.lab,
            args=args,
            hang_timeout_s=controls.hang_timeout_s,
            total_timeout_s=time_limit(reference.duration_s),
        )
        judged = judge(report, lab.metrics, reference)
    return Observation(red, judged.outcome, report.last_step, judged.summary)
