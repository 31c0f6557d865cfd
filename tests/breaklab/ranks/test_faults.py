"""Sick machines on purpose: read from a text, and played on real ranks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from breaklab.errors import BreaklabError
from breaklab.model import Outcome
from breaklab.ranks.faults import parse_fault
from breaklab.ranks.jobs import Fault, RunJob
from breaklab.ranks.outcome import judge
from breaklab.ranks.warm import WarmParent

MakeJob = Callable[..., RunJob]
STEP_LINE = r"step (?P<step>\d+)"

STEPS = """
import os, time
for step in range(6):
    print(f"[rank={os.environ['RANK']}] step {step}")
"""


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("slow:rank=1,factor=5", Fault("slow", 1, factor=5.0)),
        ("slow: factor=1.5, rank=0", Fault("slow", 0, factor=1.5)),
        ("stop:rank=2,step=3", Fault("stop", 2, step=3)),
        ("kill:rank=0,step=0", Fault("kill", 0, step=0)),
    ],
)
def test_each_form_is_read(text: str, fault: Fault) -> None:
    assert parse_fault(text, 3) == fault


@pytest.mark.parametrize(
    "text",
    [
        "",
        "slow",
        "slow:rank=1",
        "slow:rank=1,factor=x",
        "slow:rank=1,factor=0.5",
        "slow:rank=1,factor=nan",
        "slow:rank=1,factor=inf",
        "slow:rank=1,step=3",
        "stop:rank=1,step=1.5",
        "stop:rank=1,step=-1",
        "stop:rank=1,step=nan",
        "kill:rank=one,step=1",
        "explode:rank=1,step=1",
        "kill:rank=1,step=1,again=1",
    ],
)
def test_what_is_no_fault_says_how_one_is_written(text: str) -> None:
    with pytest.raises(BreaklabError, match="can't be read") as raised:
        parse_fault(text, 3)
    assert "stop:rank=2,step=3" in raised.value.hint


def test_a_rank_that_is_not_there_is_refused() -> None:
    with pytest.raises(BreaklabError, match="there are 2 ranks"):
        parse_fault("kill:rank=2,step=1", 2)


def test_a_killed_rank_has_printed_its_step_and_nothing_more(
    warm: WarmParent, job: MakeJob
) -> None:
    faults = (Fault("kill", 1, step=4),)
    report = warm.run_ranks(job(STEPS, faults=faults, step_line=STEP_LINE))
    assert [end.exit_code for end in report.ends] == [0, -9]
    assert [line.text for line in report.lines if line.rank == 1][-1] == "[rank=1] step 4"
    verdict = judge(report, None, None)
    assert verdict.outcome is Outcome.CRASH
    assert verdict.summary == "rank 1 failed first: killed by signal SIGKILL"


def test_a_stopped_rank_is_a_stall_that_says_it_does_not_run(
    warm: WarmParent, job: MakeJob
) -> None:
    report = warm.run_ranks(
        job(STEPS, faults=(Fault("stop", 0, step=2),), step_line=STEP_LINE, hang_timeout_s=0.5)
    )
    assert [line.text for line in report.lines if line.rank == 0][-1] == "[rank=0] step 2"
    verdict = judge(report, None, None)
    assert verdict.outcome is Outcome.STALL
    assert "rank 0 is stopped by a signal" in verdict.details[0]


def test_a_slow_rank_takes_the_factor_longer_for_its_work(warm: WarmParent, job: MakeJob) -> None:
    code = """
    import os, time
    started = time.monotonic()
    while time.process_time() < 0.4:
        pass
    print(time.monotonic() - started)
    """
    report = warm.run_ranks(job(code, faults=(Fault("slow", 1, factor=6.0),)))
    normal, slow = (float(line.text) for line in sorted(report.lines, key=lambda line: line.rank))
    assert [end.exit_code for end in report.ends] == [0, 0]
    # Other work on the machine slows both; the factor itself is only a bound from below for one.
    assert slow > 0.4 * 3
    assert slow > normal
