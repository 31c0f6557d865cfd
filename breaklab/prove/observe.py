"""What a changed source does, where nothing was promised yet: red tests, and how a run ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from breaklab.errors import RunError
from breaklab.i18n import _
from breaklab.model import Lab, Outcome, Project, RunPromise
from breaklab.prove.controls import Controls
from breaklab.prove.scratch import Scratch, scratch_copy
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
        RunError: the pristine lab is not green, so that nothing can be learnt from red tests; or
            the tests ran over their time limit.
    """
    require_controls(warm, controls)
    with _changed_copy(project, lab, file, broken, warm, controls) as (scratch, pristine):
        red = _red(scratch, file, pristine, broken, warm, controls)
        promise = RunPromise("observed", Outcome.HEALTHY, args)
        reference = controls.reference(promise, warm)
        healthy = judge(reference, lab.metrics, None)
        if healthy.outcome is not Outcome.HEALTHY:
            text = _("the pristine lab's own run is {outcome}: {summary}")
            raise RunError(text.format(outcome=healthy.outcome, summary=healthy.summary))
        report = run_lab(
            warm,
            scratch.lab,
            args=args,
            hang_timeout_s=controls.hang_timeout_s,
            total_timeout_s=time_limit(reference.duration_s),
        )
        judged = judge(report, lab.metrics, reference)
    return Observation(red, judged.outcome, report.last_step, judged.summary)


def observe_red(
    project: Project, lab: Lab, file: str, broken: bytes, warm: WarmParent, controls: Controls
) -> tuple[str, ...]:
    """Return which tests go red with ``broken`` in place of ``file``; as :func:`observe`, no run.

    Raises:
        RunError: the pristine lab is not green, or the tests ran over their time limit.
    """
    require_controls(warm, controls)
    with _changed_copy(project, lab, file, broken, warm, controls) as (scratch, pristine):
        return _red(scratch, file, pristine, broken, warm, controls)


def require_controls(warm: WarmParent, controls: Controls) -> None:
    """Run the controls of a lab, unless that was done before.

    Raises:
        RunError: one of them failed, so that nothing can be learnt from red tests.
    """
    for _name, kept, detail in controls.checks(warm):
        if not kept:
            raise RunError(detail)


@contextmanager
def _changed_copy(
    project: Project, lab: Lab, file: str, broken: bytes, warm: WarmParent, controls: Controls
) -> Iterator[tuple[Scratch, bytes]]:
    """Give a copy of the lab with ``broken`` in it, and the bytes that it replaced."""
    with scratch_copy(project, lab, overlay=controls.overlay, parent=warm.folder()) as scratch:
        path = scratch.lab.root / file
        pristine = path.read_bytes()
        path.write_bytes(broken)
        yield scratch, pristine


def _red(
    scratch: Scratch,
    file: str,
    pristine: bytes,
    broken: bytes,
    warm: WarmParent,
    controls: Controls,
) -> tuple[str, ...]:
    in_source = (scratch.lab.root / file).relative_to(scratch.lab.source).as_posix()
    tests = controls.tests_of(in_source, pristine, broken)
    report = warm.run_tests(scratch.tests(tests))
    if report.timed_out:
        raise RunError(_("the tests ran over their time limit"))
    return report.red
