"""What becomes of a candidate for a break: do the lab's tests catch it?"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from enum import StrEnum

from breaklab.inject.operators.candidates import Candidate
from breaklab.model import Lab, Project
from breaklab.prove.controls import Controls
from breaklab.prove.observe import require_controls
from breaklab.prove.scratch import scratch_copy
from breaklab.ranks.jobs import TestReport
from breaklab.ranks.warm import WarmParent

_QUICK = 8  # tests tried first: most candidates fall there, and other files are not even read
_LIMIT_FACTOR, _LIMIT_FLOOR_S = 5.0, 60.0  # times what the tests take without the change


class Fate(StrEnum):
    """What became of a candidate, from the one that tells least to the one that tells most."""

    NO_IMPORT = "no-import"  # no test could be collected: nobody would commit it
    CAUGHT = "caught"
    NOT_REACHED = "not-reached"  # no test gets to the changed lines
    SURVIVED = "survived"  # tests ran the changed lines, and all were green


@dataclass(frozen=True)
class Trial:
    """The fate of one candidate.

    Attributes:
        candidate: which.
        fate: what became of it.
        red: node ids; only the first one where the trial stopped there.
        seconds: how long it took.
    """

    candidate: Candidate
    fate: Fate
    red: tuple[str, ...] = ()
    seconds: float = 0.0


def try_candidate(
    project: Project,
    lab: Lab,
    candidate: Candidate,
    warm: WarmParent,
    controls: Controls,
    *,
    first_red: bool = False,
) -> Trial:
    """Run the tests that get to a candidate's lines, the quickest first, on a scratch copy.

    Args:
        project: where the lab lives; not changed.
        lab: the lab.
        candidate: what to change.
        warm: the parent that the tests are forked from.
        controls: of the same lab.
        first_red: stop at the first test that goes red.

    Raises:
        RunError: the pristine lab is not green, so that nothing can be learnt from red tests.
    """
    require_controls(warm, controls)
    started = time.monotonic()
    path = lab.root / candidate.file
    in_source = path.relative_to(lab.source).as_posix()
    tests = controls.noticing(in_source, candidate.pristine, candidate.broken)
    if not tests:
        return Trial(candidate, Fate.NOT_REACHED, (), time.monotonic() - started)
    parts = [tests[:_QUICK], tests[_QUICK:]] if first_red else [tests]
    with scratch_copy(project, lab, overlay=controls.overlay, parent=warm.folder()) as scratch:
        (scratch.lab.root / candidate.file).write_bytes(candidate.broken)
        for part in filter(None, parts):
            report = warm.run_tests(
                replace(
                    scratch.tests(part),
                    timeout_s=_LIMIT_FLOOR_S + _LIMIT_FACTOR * controls.seconds(part),
                    pytest_args=("-x",) if first_red else (),
                )
            )
            if not report.green:
                break
    return Trial(candidate, _fate(report), report.red, time.monotonic() - started)


def _fate(report: TestReport) -> Fate:
    if any("::" not in node for node in report.red) or not report.results:
        return Fate.NO_IMPORT
    return Fate.SURVIVED if report.green else Fate.CAUGHT
