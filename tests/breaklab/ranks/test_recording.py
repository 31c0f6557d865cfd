"""Ranks are recorded from the moment they have torch.distributed, and never made to import it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from breaklab.ranks.jobs import RunEvent, RunJob
from breaklab.ranks.warm import WarmParent

MakeJob = Callable[..., RunJob]

QUIET_WORK = """
import time, torch, torch.distributed as dist
dist.init_process_group("gloo")
end = time.monotonic() + 2.5
going = torch.ones(1)
while going.item() > 0:
    going[0] = float(time.monotonic() < end)
    dist.all_reduce(going, op=dist.ReduceOp.MIN)
    time.sleep(0.05)
dist.destroy_process_group()
"""


@pytest.mark.parametrize("record", [True, False])
def test_ranks_that_communicate_in_silence_are_no_stall_if_recorded(
    warm_torch: WarmParent, job: MakeJob, record: bool
) -> None:
    report = warm_torch.run_ranks(job(QUIET_WORK, hang_timeout_s=1.2, record=record))
    assert (report.stall is None) is record


def test_a_rank_is_not_made_to_import_torch(warm: WarmParent, job: MakeJob) -> None:
    report = warm.run_ranks(job("import sys; print('torch' in sys.modules)", num_ranks=1))
    assert [line.text for line in report.lines] == ["False"]


@pytest.mark.slow
def test_torch_imported_by_the_rank_itself_is_recorded_too(warm: WarmParent, job: MakeJob) -> None:
    code = """
    import torch, torch.distributed as dist
    print(dist.ProcessGroup.allreduce.__module__, dist.__spec__.loader.__class__.__name__)
    """
    report = warm.run_ranks(job(code, num_ranks=1))
    assert [line.text for line in report.lines] == [
        "breaklab.ranks.records_install SourceFileLoader"
    ]
    plain = warm.run_ranks(job(code, num_ranks=1, record=False))
    assert "breaklab" not in plain.lines[0].text


def test_a_timed_stall_tells_where_each_rank_waits_and_at_which_step(
    warm_torch: WarmParent, job: MakeJob
) -> None:
    code = """
    import signal, torch, torch.distributed as dist
    dist.init_process_group("gloo")
    dist.all_reduce(torch.ones(2, 3))
    print("step", 4 + dist.get_rank())
    if dist.get_rank() == 0:
        signal.pause()  # a rank that may go on any time: no deadlock
    dist.all_reduce(torch.ones(5))
    """
    report = warm_torch.run_ranks(job(code, hang_timeout_s=1.5, step_line=r"step (?P<step>\d+)"))
    assert report.stall is not None
    assert report.stall.kind == "timed"
    computes, waits = report.stall.waits
    assert (computes.rank, computes.step, computes.operation) == (0, 4, "")
    assert (waits.rank, waits.step, waits.operation) == (1, 5, "all_reduce")
    assert (waits.sequence, waits.shape, waits.dtype) == (2, "(5,)", "float32")
    assert waits.place.endswith("script.py:8")


def test_a_live_display_is_told_what_each_rank_does(warm_torch: WarmParent, job: MakeJob) -> None:
    code = """
    import time, torch, torch.distributed as dist
    dist.init_process_group("gloo")
    dist.all_reduce(torch.ones(2))
    print("step 3")
    if dist.get_rank() == 0:
        time.sleep(2)
    dist.all_reduce(torch.ones(2))
    """
    events: list[RunEvent] = []
    report = warm_torch.run_ranks(job(code, step_line=r"step (?P<step>\d+)"), None, events.append)
    assert report.stall is None
    looks = [event for event in events if event.kind == "looked" and len(event.waits) == 2]
    told = [(wait.operation, wait.sequence, wait.step) for wait in looks[len(looks) // 2].waits]
    assert told == [("", None, 3), ("all_reduce", 2, 3)]
    assert max(max(event.still_s) for event in looks) > 0.5
