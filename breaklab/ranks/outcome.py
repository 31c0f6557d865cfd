"""Draws the conclusion from a run: healthy, stall, crash, diverged, wrong or slow. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from breaklab.i18n import _
from breaklab.model import Metrics, Outcome
from breaklab.ranks import differences
from breaklab.ranks.differences import Difference
from breaklab.ranks.ends import first_failure, is_peer_noise
from breaklab.ranks.jobs import RankEnd, RunReport, Stall


@dataclass(frozen=True)
class Judged:
    """What a run turned out to be, and the evidence."""

    outcome: Outcome
    step: int | None  # first step that is not right; for stall, crash and healthy the last reached
    summary: str  # one sentence
    details: tuple[str, ...] = ()  # further evidence, one sentence each
    difference: Difference | None = None  # for diverged, wrong and slow: the first one


def judge(report: RunReport, metrics: Metrics | None, reference: RunReport | None) -> Judged:
    """Return what ``report`` shows.

    A stall or a crash is seen in the report alone. The ranks' numbers are compared with each other
    if ``metrics`` names keys to ``agree``, and with ``reference``, the same run of the pristine
    lab, if there is one. An interrupted run is judged by what it showed until then.
    """
    if report.stall is not None:
        # The reason is a diagnosis: whoever wants only the symptom must not be told it.
        details = (report.stall.reason,) if report.stall.reason else ()
        summary = _stall_summary(report.stall, report)
        return Judged(Outcome.STALL, report.last_step, summary, details)
    failure = first_failure(report.ends)
    if failure is not None:
        return _crash(failure, report)
    if metrics is not None:
        judged = _by_numbers(report, metrics, reference)
        if judged is not None:
            return judged
    if report.over_time:
        summary = _("the limit on the total time struck after {seconds:.0f} s, at step {step}")
        return Judged(
            Outcome.SLOW,
            report.last_step,
            summary.format(seconds=report.duration_s, step=_step_text(report)),
        )
    if report.interrupted:
        summary = _("interrupted at step {step}; the numbers were not compared with a healthy run")
    elif reference is not None and report.metrics and reference.metrics:
        summary = _("every rank ended by itself, the numbers equal the reference's")
    else:
        summary = _("every rank ended by itself")
    return Judged(Outcome.HEALTHY, report.last_step, summary.format(step=_step_text(report)))


def _step_text(report: RunReport) -> str:
    return "?" if report.last_step is None else str(report.last_step)


def _stall_summary(stall: Stall, report: RunReport) -> str:
    text = _("no rank printed anything for {seconds:.0f} s; the last step was {step}")
    if stall.kind == "proven":
        text = _("no rank can ever go on, proven after {seconds:.1f} s; the last step was {step}")
    if report.last_step is None:
        text = _("no rank printed anything for {seconds:.0f} s; no step was printed")
        if stall.kind == "proven":
            text = _("no rank can ever go on, proven after {seconds:.1f} s; no step was printed")
    return text.format(seconds=stall.seconds, step=_step_text(report))


def _crash(failure: RankEnd, report: RunReport) -> Judged:
    left = [end for end in report.ends if end.exit_code == 0 and end.seconds < failure.seconds]
    if left and is_peer_noise(failure.error):
        summary = _("rank {rank} lost its peer: rank {left} had already ended by itself").format(
            rank=failure.rank, left=min(left, key=lambda end: end.seconds).rank
        )
    else:
        summary = _("rank {rank} failed first: {error}").format(
            rank=failure.rank, error=failure.error or _("it said nothing")
        )
    return Judged(
        Outcome.CRASH,
        report.last_step,
        summary,
        tuple(_end_sentence(end) for end in report.ends if end is not failure),
    )


def _end_sentence(end: RankEnd) -> str:
    if end.exit_code is None:
        text = _("rank {rank} was still running and was stopped")
    elif end.exit_code == 0:
        text = _("rank {rank} ended by itself")
    elif is_peer_noise(end.error):
        text = _("rank {rank} lost its peer")
    else:
        text = _("rank {rank} failed too: {error}")
    return text.format(rank=end.rank, error=end.error)


def _by_numbers(report: RunReport, metrics: Metrics, reference: RunReport | None) -> Judged | None:
    """Return diverged, wrong or slow, in this order, or None when the numbers are right."""
    complete = not report.over_time and not report.interrupted
    ranks = range(len(report.ends)) if complete else report.metrics.keys()
    found = differences.between_ranks(report.metrics, metrics.agree, ranks, complete=complete)
    if found is not None:
        return _judged(Outcome.DIVERGED, found)
    if reference is None:
        return None
    found = differences.from_reference(
        report.metrics, reference.metrics, metrics.compare, metrics.tolerance, complete=complete
    )
    if found is not None:
        return _judged(Outcome.WRONG, found)
    found = differences.above_reference(report.metrics, reference.metrics, metrics.count)
    if found is not None:
        return _judged(Outcome.SLOW, found)
    return None


def _judged(outcome: Outcome, found: Difference) -> Judged:
    return Judged(outcome, found.step, found.sentence, found.details, found)
