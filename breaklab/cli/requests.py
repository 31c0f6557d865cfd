"""From the arguments of ``run`` to one run of the lab, judged and recorded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from breaklab.cli.lookup import OpenProject
from breaklab.cli.notes import note_event
from breaklab.cli.render import Screen
from breaklab.cli.variants import find_variant
from breaklab.errors import BreaklabError
from breaklab.i18n import _
from breaklab.model import BreakSpec, Lab, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from breaklab.prove.reference import References
    from breaklab.ranks.jobs import Line, RunEvent, RunReport
    from breaklab.ranks.outcome import Judged
    from breaklab.ranks.warm import WarmParent


@dataclass(frozen=True)
class HowToRun:
    """What a learner may choose about a run, whatever is run."""

    hang_timeout_s: float
    total_timeout_s: float | None
    fault: str
    launcher: str


@dataclass(frozen=True)
class RunRequest:
    """What a learner asked for, completed from the spec and the lab."""

    lab: Lab
    spec: BreakSpec | None
    public_id: str | None  # None: no break, or one whose name is hidden
    variant: str
    args: tuple[str, ...]
    num_ranks: int
    how: HowToRun

    @property
    def promised(self) -> Outcome | None:
        """The outcome that the spec promises of this variant, on a source that is not fixed."""
        runs = self.spec.runs if self.spec else ()
        return next((run.outcome for run in runs if run.variant == self.variant), None)

    @property
    def title(self) -> str:
        """What is run, in one line."""
        ran = _("lab {lab}, {num_ranks} ranks {args}")
        args = " ".join(self.args)
        return ran.format(lab=self.lab.name, num_ranks=self.num_ranks, args=args).rstrip()


def complete_request(
    opened: OpenProject,
    variant: str | None,
    training_args: tuple[str, ...],
    num_ranks: int | None,
    how: HowToRun,
) -> RunRequest:
    """Return what to run: the applied break's variant, or the healthy lab where none is applied.

    Raises:
        BreaklabError: there is no such variant, or no break that it could belong to.
    """
    spec = opened.applied_spec()
    if spec is None and variant is not None:
        raise BreaklabError(
            _("a variant belongs to a break, and none is applied"),
            hint=_("apply one first: breaklab list;  breaklab apply ID"),
        )
    lab = opened.lab_of(spec) if spec else opened.default_lab()
    promise = find_variant(spec, variant) if spec else None
    promised_ranks = promise.num_ranks if promise else None
    fault = how.fault or (promise.fault if promise else "")
    return RunRequest(
        lab=lab,
        spec=spec,
        public_id=opened.public_id(spec) if spec else None,
        variant=promise.variant if promise else "",
        args=(*(promise.args if promise else ()), *training_args),
        num_ranks=num_ranks or promised_ranks or lab.entrypoint.num_ranks,
        how=HowToRun(how.hang_timeout_s, how.total_timeout_s, fault, how.launcher),
    )


def references_for(opened: OpenProject, request: RunRequest) -> References | None:
    """Return where reference runs of the pristine source come from; None where it isn't known."""
    from breaklab.prove.reference import References

    active = opened.active
    if active is None or request.lab.metrics is None:
        return None
    return References(opened.project, request.lab, {active.file: active.pristine})


def run_request(
    request: RunRequest,
    warm: WarmParent,
    references: References | None,
    *,
    on_line: Callable[[Line], None],
    on_event: Callable[[RunEvent], None] | None = None,
) -> RunReport:
    """Run the ranks; the report holds the numbers that they wrote.

    Raises:
        RunError: the ranks could not be started.
    """
    from breaklab.ranks.launch import lab_job, time_limit

    limit_s = request.how.total_timeout_s
    if limit_s is None and references is not None:
        healthy = references.known(request.args, request.num_ranks)
        limit_s = time_limit(healthy.duration_s) if healthy is not None else None
    with TemporaryDirectory(dir=warm.folder(), ignore_cleanup_errors=True) as folder:
        job = lab_job(
            request.lab,
            args=request.args,
            num_ranks=request.num_ranks,
            hang_timeout_s=request.how.hang_timeout_s,
            total_timeout_s=limit_s,
            metrics_dir=Path(folder),
            fault=request.how.fault,
            launcher=request.how.launcher,
        )
        return warm.run_ranks(job, on_line, on_event)


def judge_run(
    request: RunRequest,
    report: RunReport,
    references: References | None,
    warm: WarmParent,
    *,
    on_reference: Callable[[], None],
) -> Judged:
    """Judge a run; only one that ended by itself is compared with a run of the pristine source.

    Raises:
        RunError: the ranks of the reference could not be started.
    """
    from breaklab.ranks.outcome import judge

    reference = None
    ended = report.stall is None and all(end.exit_code == 0 for end in report.ends)
    if ended and references is not None and not report.interrupted and not report.over_time:
        reference = references.get(request.args, request.num_ranks, warm, on_start=on_reference)
    return judge(report, request.lab.metrics, reference)


def record_run(
    screen: Screen,
    opened: OpenProject,
    request: RunRequest,
    judged: Judged,
    report: RunReport,
    *,
    diagnosed: bool,
) -> None:
    """Note in the project's events what was run and how it went; without a break, nothing."""
    if request.spec is None:
        return
    note_event(
        screen,
        opened.project,
        "run",
        request.spec.bug_id,
        variant=request.variant,
        outcome=judged.outcome.value,
        duration_s=round(report.duration_s, 3),
        diagnosed=diagnosed,
    )
