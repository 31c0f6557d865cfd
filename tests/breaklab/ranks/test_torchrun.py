"""Ranks that torchrun starts end, fail and stall as forked ones do."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from breaklab.model import Outcome
from breaklab.ranks.jobs import Fault, RunEvent, RunJob
from breaklab.ranks.outcome import judge
from breaklab.ranks.warm import WarmParent
from tests.breaklab.ranks.conftest import is_alive

MakeJob = Callable[..., RunJob]
pytestmark = pytest.mark.slow

ALL_REDUCE = """
import sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
mine = torch.full((5,), float(dist.get_rank() + 1))
dist.all_reduce(mine)
print(sys.argv[1:], __name__, mine.tolist())
"""


def test_a_healthy_run_is_healthy(warm_torch: WarmParent, job: MakeJob) -> None:
    report = warm_torch.run_ranks(job(ALL_REDUCE, launcher="torchrun", args=("--a",)))
    assert [end.exit_code for end in report.ends] == [0, 0]
    expected = "['--a'] __main__ [3.0, 3.0, 3.0, 3.0, 3.0]"
    assert [(line.rank, line.text) for line in report.lines if "main" in line.text] in (
        [(0, expected), (1, expected)],
        [(1, expected), (0, expected)],
    )
    assert judge(report, None, None).outcome is Outcome.HEALTHY


def test_a_rank_that_fails_is_named_with_its_own_error(
    warm_torch: WarmParent, job: MakeJob
) -> None:
    code = ALL_REDUCE + "if dist.get_rank() == 1: raise ValueError('mine')\ndist.all_reduce(mine)"
    report = warm_torch.run_ranks(job(code, launcher="torchrun"))
    verdict = judge(report, None, None)
    assert verdict.outcome is Outcome.CRASH
    assert verdict.summary == "rank 1 failed first: ValueError: mine"


def test_a_rank_that_is_killed_before_the_others_have_started_is_named(
    warm_torch: WarmParent, job: MakeJob, tmp_path: Path
) -> None:
    run_job = job("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", launcher="torchrun")
    late = "import os, signal\nif os.environ.get('RANK') == '0':\n    signal.pause()\n"
    (tmp_path / "late").mkdir()
    (tmp_path / "late" / "sitecustomize.py").write_text(late)
    path = os.pathsep.join([str(tmp_path / "late"), os.environ.get("PYTHONPATH", "")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", path)
        with WarmParent("", ("torch", "torch.distributed")) as warm:
            report = warm.run_ranks(run_job)
    verdict = judge(report, None, None)
    assert verdict.outcome is Outcome.CRASH
    assert verdict.summary == "rank 1 failed first: killed by signal SIGKILL"


def test_a_killed_rank_is_named(warm_torch: WarmParent, job: MakeJob) -> None:
    # The all-reduce comes first, so that both ranks have started when one of them is killed.
    code = f"""{ALL_REDUCE}
import os, signal
for step in range(3):
    print("step", step)
if os.environ["RANK"] == "0":
    signal.pause()
"""
    faults = (Fault("kill", 1, step=1),)
    report = warm_torch.run_ranks(
        job(code, launcher="torchrun", faults=faults, step_line=r"step (?P<step>\d+)")
    )
    verdict = judge(report, None, None)
    assert verdict.outcome is Outcome.CRASH
    assert verdict.summary == "rank 1 failed first: killed by signal SIGKILL"
    assert verdict.details == ("rank 0 was still running and was stopped",)


def test_a_stall_is_a_stall_and_nothing_survives(
    warm_torch: WarmParent, job: MakeJob, tmp_path: Path
) -> None:
    events: list[RunEvent] = []
    code = ALL_REDUCE + "dist.barrier() if dist.get_rank() else dist.all_reduce(mine)"
    report = warm_torch.run_ranks(
        job(code, launcher="torchrun", hang_timeout_s=8.0), None, events.append
    )
    assert report.stall is not None
    assert len(events[0].pids) == 2
    assert not any(map(is_alive, events[0].pids))
