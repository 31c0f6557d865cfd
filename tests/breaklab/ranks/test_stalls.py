"""A deadlock of a real run is proven long before its time limit; other silence is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from breaklab.model import Outcome
from breaklab.ranks.jobs import RunJob
from breaklab.ranks.outcome import judge
from breaklab.ranks.warm import WarmParent

MakeJob = Callable[..., RunJob]

START = """
import os, sys, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
dist.all_reduce(torch.ones(3))
print("step", 1)
"""

DEADLOCKS = {
    "different collectives": "dist.barrier() if rank else dist.all_reduce(torch.ones(3))",
    "both receive": "dist.recv(torch.ones(3), 1 - rank)",
    "one waits for a lost message": (
        "if rank: dist.recv(torch.ones(3), 0)\nelse: dist.all_reduce(torch.ones(3))"
    ),
}


@pytest.mark.parametrize("tail", DEADLOCKS.values(), ids=DEADLOCKS.keys())
def test_a_deadlock_is_proven_long_before_the_time_limit(
    warm_torch: WarmParent, job: MakeJob, tail: str
) -> None:
    report = warm_torch.run_ranks(job(START + tail, step_line=r"step (?P<step>\d+)"))
    assert report.stall is not None, report.ends
    assert report.stall.kind == "proven"
    assert report.stall.reason
    assert report.duration_s < 15.0  # of 30
    assert {wait.rank for wait in report.stall.waits} == {0, 1}
    assert {wait.step for wait in report.stall.waits} == {1}
    verdict = judge(report, None, None)
    assert (verdict.outcome, verdict.step) == (Outcome.STALL, 1)
    assert verdict.details == (report.stall.reason,)


def test_a_rank_that_sleeps_while_the_others_wait_is_no_deadlock(
    warm_torch: WarmParent, job: MakeJob
) -> None:
    tail = "if rank == 0: time.sleep(2.5)\ndist.all_reduce(torch.ones(3))"
    report = warm_torch.run_ranks(job(START + tail, num_ranks=3))
    assert report.stall is None
    assert [end.exit_code for end in report.ends] == [0, 0, 0]


def test_without_records_a_deadlock_is_a_timed_stall(warm_torch: WarmParent, job: MakeJob) -> None:
    tail = DEADLOCKS["different collectives"]
    report = warm_torch.run_ranks(job(START + tail, record=False, hang_timeout_s=2.0))
    assert report.stall is not None
    assert report.stall.kind == "timed"
    assert report.stall.waits == ()


def test_a_crash_is_never_called_a_deadlock(warm_torch: WarmParent, job: MakeJob) -> None:
    tail = "if rank: raise ValueError('mine')\ndist.all_reduce(torch.ones(3))"
    report = warm_torch.run_ranks(job(START + tail, num_ranks=3))
    assert report.stall is None
    assert judge(report, None, None).outcome is Outcome.CRASH


def test_a_rank_that_leaves_early_is_named_when_its_peers_crash(
    warm_torch: WarmParent, job: MakeJob
) -> None:
    tail = "if rank: dist.all_reduce(torch.ones(3))\nelse: sys.exit()"
    verdict = judge(warm_torch.run_ranks(job(START + tail)), None, None)
    assert verdict.outcome is Outcome.CRASH
    assert verdict.summary == "rank 1 lost its peer: rank 0 had already ended by itself"


@pytest.mark.slow
def test_a_deadlock_under_torchrun_is_proven_too(warm_torch: WarmParent, job: MakeJob) -> None:
    tail = DEADLOCKS["different collectives"]
    report = warm_torch.run_ranks(job(START + tail, launcher="torchrun"))
    assert report.stall is not None
    assert report.stall.kind == "proven"
