"""A test report for a learner: red or green, and the first useful line of each failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from breaklab.cli.render import Screen
from breaklab.cli.text import clean, one_line
from breaklab.i18n import _

if TYPE_CHECKING:
    from breaklab.ranks.jobs import TestReport, TestResult

_OUTPUT_LINES = 20


def report_as_json(report: TestReport) -> dict[str, Any]:
    """Return a test report as a JSON object."""
    return {
        "green": report.green,
        "timed_out": report.timed_out,
        "duration_s": round(report.duration_s, 3),
        "tests": [
            {
                "nodeid": result.nodeid,
                "outcome": result.outcome.value,
                "duration_s": round(result.duration_s, 3),
                "reason": clean(result.reason),
            }
            for result in report.results
        ],
    }


def print_report(screen: Screen, report: TestReport) -> None:
    """Print one line for each failure with its reason below, then the count."""
    from breaklab.ranks.jobs import TestOutcome

    failures = [result for result in report.results if result.nodeid in set(report.red)]
    for result in failures:
        screen.line(f"{_('RED')}    {result.nodeid}", "bad")
        screen.prose(useful_line(result), indent=7)
    if report.timed_out:
        screen.prose(_("The tests ran over their time limit and were stopped."), "bad")
    elif not report.results:
        _print_tail(screen, report.output)
    num_passed = sum(result.outcome is TestOutcome.PASSED for result in report.results)
    style = "good" if report.green else "bad"
    screen.line(_summary(len(failures), num_passed, report), style)


def _summary(num_red: int, num_passed: int, report: TestReport) -> str:
    if report.green:
        return _("GREEN  {passed} passed in {seconds:.1f} s").format(
            passed=num_passed, seconds=report.duration_s
        )
    return _("RED    {red} failed, {passed} passed in {seconds:.1f} s").format(
        red=num_red, passed=num_passed, seconds=report.duration_s
    )


def useful_line(result: TestResult) -> str:
    """Return what a failure says itself: its own message, or the end of a failed import."""
    lines = [line for line in clean(result.message).splitlines() if line.strip()]
    said = [line.removeprefix("E").strip() for line in lines if line.startswith("E  ")]
    if result.outcome.value == "error" and said:
        return said[-1]
    return one_line(result.reason) or (said or [line.strip() for line in lines[-1:]] or [""])[0]


def _print_tail(screen: Screen, output: str) -> None:
    """Print the end of what pytest said, where no test was run at all."""
    screen.prose(_("No test was run. pytest said:"), "bad")
    for line in clean(output).rstrip().splitlines()[-_OUTPUT_LINES:]:
        screen.line("  " + line)
