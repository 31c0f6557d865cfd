"""Say what a run turned out to be, and what to do next; as sentences, as JSON, as an exit code."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from breaklab.cli.render import Column, Screen
from breaklab.errors import ExitCode
from breaklab.i18n import _
from breaklab.model import Outcome

if TYPE_CHECKING:
    from breaklab.cli.requests import RunRequest
    from breaklab.ranks.jobs import RankWait, RunReport
    from breaklab.ranks.outcome import Judged

_EXIT_CODES = {
    Outcome.HEALTHY: ExitCode.OK,
    Outcome.STALL: ExitCode.STALL,
    Outcome.CRASH: ExitCode.CRASH,
    Outcome.DIVERGED: ExitCode.WRONG,
    Outcome.WRONG: ExitCode.WRONG,
    Outcome.SLOW: ExitCode.WRONG,
}


def exit_code_of(outcome: Outcome, report: RunReport) -> ExitCode:
    """Return the documented exit code for an outcome."""
    return ExitCode.INTERRUPTED if report.interrupted else _EXIT_CODES[outcome]


def outcome_word(outcome: Outcome) -> str:
    """Return the word for an outcome in the language in force."""
    words = {
        Outcome.HEALTHY: _("healthy"),
        Outcome.STALL: _("stall"),
        Outcome.CRASH: _("crash"),
        Outcome.DIVERGED: _("diverged"),
        Outcome.WRONG: _("wrong"),
        Outcome.SLOW: _("slow"),
    }
    return words[outcome]


def outcome_sentence(outcome: Outcome) -> str:
    """Return what an outcome means, in one sentence."""
    sentences = {
        Outcome.HEALTHY: _("The run is healthy."),
        Outcome.STALL: _("The run stalled: no rank makes progress any more."),
        Outcome.CRASH: _("The run crashed: a rank ended with an error."),
        Outcome.DIVERGED: _("The run diverged: the ranks disagree with each other."),
        Outcome.WRONG: _("The run is wrong: the ranks agree, but not with the healthy lab."),
        Outcome.SLOW: _("The run is slow: right, but with more work than the healthy lab."),
    }
    return sentences[outcome]


def run_as_json(
    request: RunRequest, judged: Judged, report: RunReport, code: ExitCode, *, diagnose: bool
) -> dict[str, Any]:
    """Return a run as a JSON object; where ranks wait only for who asked for a diagnosis."""
    return {
        "bug_id": request.public_id,
        "lab": request.lab.name,
        "variant": request.variant or None,
        "args": list(request.args),
        "num_ranks": request.num_ranks,
        **ends_as_json(judged, report, code, diagnose=diagnose),
    }


def ends_as_json(
    judged: Judged, report: RunReport, code: ExitCode, *, diagnose: bool
) -> dict[str, Any]:
    """Return how a run ended, lab or not, as part of a JSON object."""
    stall = report.stall
    return {
        "outcome": judged.outcome.value,
        "summary": judged.summary,
        "details": list(_details(judged, diagnose)),
        "exit_code": int(code),
        "interrupted": report.interrupted,
        "duration_s": round(report.duration_s, 3),
        "last_step": report.last_step,
        "stall": {"kind": stall.kind, "seconds": stall.seconds} if stall else None,
        "ends": [
            {"rank": end.rank, "exit_code": end.exit_code, "error": end.error}
            for end in report.ends
        ],
        "waits": [asdict(wait) for wait in stall.waits] if stall and diagnose else [],
    }


def print_outcome(
    screen: Screen, request: RunRequest, judged: Judged, report: RunReport, *, diagnose: bool
) -> None:
    """Print the outcome, the evidence for it, and what to run next."""
    print_judged(screen, judged, report, diagnose=diagnose)
    screen.line(f"  {request.title}", "quiet")
    if judged.outcome is Outcome.HEALTHY and not report.interrupted:
        if request.spec is None:
            screen.prose(_("its numbers were compared with nothing: no break is applied"), indent=2)
        elif request.promised is Outcome.HEALTHY:
            screen.prose(_("in this variant the bug does not show, fixed or not"), indent=2)
    screen.line()
    if report.interrupted and judged.outcome is Outcome.HEALTHY:
        screen.run_next(("breaklab run", _("again, to its end")))
        return
    screen.run_next(*_next_steps(request, judged.outcome, diagnose))


def print_judged(screen: Screen, judged: Judged, report: RunReport, *, diagnose: bool) -> None:
    """Print the outcome and the evidence for it."""
    screen.line()
    good = judged.outcome is Outcome.HEALTHY
    if good and report.interrupted:
        screen.prose(_("The run was interrupted."))
    else:
        screen.prose(outcome_sentence(judged.outcome), "good" if good else "bad")
    if judged.summary:
        screen.prose(judged.summary, indent=2)
    for detail in _details(judged, diagnose):
        screen.prose(detail, indent=2)
    if diagnose and report.stall:
        print_waits(screen, report.stall.waits)


def _details(judged: Judged, diagnose: bool) -> tuple[str, ...]:
    """Return the further evidence; for a stall it names the reason, so only for a diagnosis."""
    return judged.details if diagnose or judged.outcome is not Outcome.STALL else ()


def print_waits(screen: Screen, waits: tuple[RankWait, ...]) -> None:
    """Print for each rank the step, the operation it waits in, and where in the source."""
    screen.line()
    if not waits:
        screen.prose(_("Nothing is known about where the ranks wait."), indent=2)
        return
    columns = [
        Column(heading)
        for heading in (_("RANK"), _("STEP"), _("WAITS IN"), _("SHAPE"), _("DTYPE"), _("PLACE"))
    ]
    screen.table(columns, [_wait_cells(wait) for wait in waits])


def _wait_cells(wait: RankWait) -> list[str]:
    operation = wait.operation or _("computing or unknown")
    if wait.sequence is not None:
        operation += f" #{wait.sequence}"
    if wait.peer is not None:
        operation += " " + _("with rank {peer}").format(peer=wait.peer)
    step = "" if wait.step is None else str(wait.step)
    return [str(wait.rank), step, operation, wait.shape, wait.dtype, wait.place]


def _next_steps(request: RunRequest, outcome: Outcome, diagnosed: bool) -> list[tuple[str, str]]:
    if request.spec is None:
        return [("breaklab list", _("choose a break"))] if outcome is Outcome.HEALTHY else []
    if outcome is Outcome.HEALTHY and request.promised is Outcome.HEALTHY:
        return [("breaklab run", _("the variant that shows it"))]
    if outcome is Outcome.HEALTHY:
        return [("breaklab check", _("let your fix be judged"))]
    steps = []
    if outcome in (Outcome.STALL, Outcome.CRASH) and not diagnosed:
        steps.append(("breaklab diagnose", _("see where each rank waits")))
    return [
        *steps,
        ("breaklab test", _("see which invariants are broken")),
        ("breaklab hint", _("the next hint")),
        ("breaklab check", _("once you have fixed it")),
    ]
