"""The two runs that are compared, each in a scratch copy of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from breaklab.compare.comparison import Comparison, Subject, compare_reports
from breaklab.errors import BreaklabError
from breaklab.i18n import _
from breaklab.model import Lab, Outcome, Project
from breaklab.prove.scratch import scratch_copy
from breaklab.ranks.jobs import RunReport
from breaklab.ranks.launch import lab_job, time_limit
from breaklab.ranks.outcome import judge
from breaklab.ranks.warm import WarmParent

Overlay = Mapping[str, bytes]  # bytes of files, by path relative to the project's root


@dataclass(frozen=True)
class Plan:
    """What to run twice: the same lab and arguments, and what differs in the source."""

    project: Project
    lab: Lab
    subject: Subject
    healthy: Overlay
    broken: Overlay  # empty: the learner's tree as it stands
    fault: str  # of the broken run, as in a spec; ``""`` for none
    hang_timeout_s: float


def run_both(plan: Plan, warm: WarmParent, on_start: Callable[[str], None]) -> Comparison:
    """Run the healthy lab and the broken one, and lay them side by side.

    The learner's tree is read, never written. The broken run may end in any way; it is compared up
    to where it got, and stopped after five times what the healthy one took.

    Args:
        plan: what to run.
        warm: the lab's warm parent.
        on_start: called with a sentence as each run begins.

    Raises:
        BreaklabError: the healthy run is not healthy.
        KeyboardInterrupt: Ctrl-C ended one of them.
        RunError: the ranks could not be started.
    """
    metrics = plan.lab.metrics
    on_start(_("running the healthy lab ..."))
    healthy = _run(plan, plan.healthy, warm)
    judged = judge(healthy, metrics, None)
    if judged.outcome is not Outcome.HEALTHY:
        raise BreaklabError(
            _("there is nothing to compare with, the healthy lab's run is {outcome}: {why}").format(
                outcome=judged.outcome.value, why=judged.summary
            ),
            hint=_("run the lab without a break first: breaklab revert;  breaklab run"),
        )
    on_start(_("running the broken lab ..."))
    limit_s = time_limit(healthy.duration_s)
    broken = _run(plan, plan.broken, warm, limit_s=limit_s, fault=plan.fault)
    return compare_reports(
        plan.subject, metrics, (healthy, judged), (broken, judge(broken, metrics, healthy))
    )


def _run(
    plan: Plan, overlay: Overlay, warm: WarmParent, *, limit_s: float | None = None, fault: str = ""
) -> RunReport:
    parent = warm.folder()
    with (
        scratch_copy(plan.project, plan.lab, overlay=overlay, parent=parent) as scratch,
        TemporaryDirectory(dir=parent, ignore_cleanup_errors=True) as metrics_dir,
    ):
        job = lab_job(
            scratch.lab,
            args=plan.subject.args,
            num_ranks=plan.subject.num_ranks,
            hang_timeout_s=plan.hang_timeout_s,
            total_timeout_s=limit_s,
            metrics_dir=Path(metrics_dir),
            fault=fault,
        )
        report = warm.run_ranks(replace(job, history=True))
    if report.interrupted:
        raise KeyboardInterrupt
    return report
