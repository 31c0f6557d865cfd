"""Real ranks that deadlock in each way there is; each is proven, long before any timeout."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist

from breaklab.ranks.harness import RanksFailed


def rank() -> int:
    return dist.get_rank()


def tensor(size: int = 4) -> torch.Tensor:
    return torch.ones(size)


def other_collective() -> None:
    if rank() == 1:
        dist.broadcast(tensor(), 1)
    else:
        dist.all_reduce(tensor())


def one_rank_skips_a_call() -> None:
    for step in range(3):
        if step != 1 or rank() != 2:
            dist.all_reduce(tensor())
    dist.barrier()


def one_rank_leaves_early() -> None:
    if rank() != 1:
        dist.barrier()


def receives_in_a_circle() -> None:
    dist.recv(tensor(), (rank() + 1) % 3)
    dist.send(tensor(), (rank() - 1) % 3)


def sends_face_to_face() -> None:
    peer = 1 - rank()
    if rank() < 2:
        dist.send(tensor(1), peer)
        dist.recv(tensor(1), peer)


def sends_around_a_ring() -> None:
    dist.send(tensor(), (rank() + 1) % 3)
    dist.recv(tensor(), (rank() - 1) % 3)


def other_tag() -> None:
    if rank() == 0:
        dist.send(tensor(), 1, tag=3)
    elif rank() == 1:
        dist.recv(tensor(), 0, tag=4)


def member_never_joins_its_group() -> None:
    pair = dist.new_group([0, 1])
    if rank() == 0:
        dist.all_reduce(tensor(), group=pair)
    else:
        dist.barrier()


def groups_in_another_order() -> None:
    left, right = dist.new_group([0, 1]), dist.new_group([0, 1])
    if rank() < 2:
        for group in (left, right) if rank() == 0 else (right, left):
            dist.all_reduce(tensor(), group=group)


def async_operations_awaited() -> None:
    if rank() == 1:
        work = dist.broadcast(tensor(), 1, async_op=True)
    else:
        work = dist.all_reduce(tensor(), async_op=True)
    assert work is not None
    work.wait()


def receive_against_collective() -> None:
    if rank() == 0:
        dist.recv(tensor(), 1)
    else:
        dist.barrier()


def batch_with_a_missing_partner() -> None:
    peer = (rank() + 1) % 3
    operations = [dist.P2POp(dist.isend, tensor(), peer)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()


def object_collective() -> None:
    if rank() == 1:
        dist.barrier()
    else:
        dist.broadcast_object_list(["settings"], src=0)


def other_size() -> None:
    # Small enough for gloo to let one rank pass with a wrong sum.
    for _step in range(2):
        dist.all_reduce(tensor(4 if rank() == 0 else 3))


def other_root() -> None:
    dist.broadcast(tensor(), 0 if rank() == 0 else 1)
    dist.barrier()


def train(num_batches: int) -> None:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
    for _batch in range(num_batches):
        model(torch.ones(1, 4)).sum().backward()


def ddp_with_one_batch_more() -> None:
    train(3 if rank() == 0 else 2)
    dist.barrier()


def without_flight_recorder(function: Callable[[], None]) -> None:
    del vars(importlib.import_module("torch._C._distributed_c10d"))["_dump_fr_trace_json"]
    function()


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (other_collective, "rank 0 waits in all_reduce #1, where rank 1 called broadcast #1"),
        (one_rank_skips_a_call, "rank 0 waits in all_reduce #3, where rank 2 called barrier #3"),
        (one_rank_leaves_early, "rank 0 waits in barrier #1 for rank 1, which has left"),
        (receives_in_a_circle, "sends and receives wait in a circle"),
        (sends_face_to_face, "blocking sends wait for each other"),
        (sends_around_a_ring, "blocking sends wait for each other"),
        (other_tag, "tags differ: rank 0 waits in send #1 with tag 3"),
        (member_never_joins_its_group, "rank 0 waits in all_reduce #1 for rank 1"),
        (groups_in_another_order, "collectives wait in a circle"),
        (async_operations_awaited, "rank 0 waits in all_reduce #1, where rank 1 called broadcast"),
        (receive_against_collective, "waits form a circle: rank 0 waits in recv #1 for rank 1"),
        (batch_with_a_missing_partner, "blocking sends wait for each other"),
        (object_collective, "rank 0 waits in broadcast #1, where rank 1 called barrier #1"),
        (other_size, "sizes differ: rank 0 waits in all_reduce #1 with float32(4,)"),
        (other_root, "the root differs"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_deadlock_is_proven(run_ranks, function, reason):
    stall = deadlock(run_ranks, function)
    assert reason in stall.reason
    here = function.__code__.co_filename.rsplit("/", 1)[-1]
    for wait in stall.waits:
        assert wait.operation
        assert here in wait.place or wait.operation == "left"


def test_a_deadlock_inside_ddp_is_proven_from_the_flight_recorder(run_ranks):
    stall = deadlock(run_ranks, ddp_with_one_batch_more)
    assert "different collectives at the same position: rank 0 waits in all_reduce" in stall.reason
    assert [wait.operation for wait in stall.waits] == ["all_reduce", "barrier", "barrier"]
    first = train.__code__.co_firstlineno
    assert stall.waits[0].place.endswith(f"test_verdict_deadlocks.py:{first + 3}")


def test_without_a_flight_recorder_what_the_wrappers_saw_is_proof_enough(run_ranks):
    stall = deadlock(run_ranks, without_flight_recorder, args=(one_rank_skips_a_call,))
    assert "rank 0 waits in all_reduce #3, where rank 2 called barrier #3" in stall.reason


def test_without_a_flight_recorder_a_wait_in_ddp_is_a_timed_stall_that_says_why(run_ranks):
    with pytest.raises(RanksFailed, match="did not finish within 3 s") as caught:
        run_ranks(without_flight_recorder, timeout_s=3.0, args=(ddp_with_one_batch_more,))
    assert "Flight Recorder tells nothing" in str(caught.value).splitlines()[0]
    assert caught.value.stall.kind == "timed"


def deadlock(run_ranks, function, args=()):
    with pytest.raises(RanksFailed, match=r"^deadlock, proven after") as caught:
        run_ranks(function, 3, timeout_s=30.0, args=args)
    stall = caught.value.stall
    assert stall is not None
    assert stall.kind == "proven"
    assert [wait.rank for wait in stall.waits] == [0, 1, 2]
    return stall
