"""Ranks that look stuck and are not: none of them may ever be called deadlocked."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest
import torch
import torch.distributed as dist

ROUNDS = 50
COMPUTING_ROUNDS = 20  # each takes time from whatever else runs here
LONG_S = 0.45  # longer than idle processes are watched before a rank is asked what it does


def one_rank_sleeps_while_others_wait(rounds: int, seconds: float) -> int:
    done = torch.zeros(1)
    for step in range(rounds):
        if dist.get_rank() == step % dist.get_world_size():
            time.sleep(seconds)
        dist.all_reduce(done)
        done += 1
    return int(done.item() > 0)


def one_rank_computes_while_others_wait(rounds: int, seconds: float) -> int:
    matrix = torch.rand(200, 200)
    for step in range(rounds):
        end = time.monotonic() + (seconds if dist.get_rank() == step % 3 else 0)
        while time.monotonic() < end:
            matrix = torch.tanh(matrix @ matrix)
        dist.all_reduce(torch.ones(1))
    return 1


def uneven_pipeline(rounds: int) -> int:
    """Each stage takes another time; sends and receives are asynchronous and overlap."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    sends = []
    for number in range(rounds):
        item = torch.full((1000,), float(number))
        if rank > 0:
            work = dist.irecv(item, rank - 1)
            assert work is not None
            work.wait()
        time.sleep(0.004 * (rank % 3))
        assert item[0] == number
        if rank < world_size - 1:
            sends.append((dist.isend(item, rank + 1), item))
    for work, _item in sends:
        work.wait()
    return rounds


def slow_first_step(seconds: float) -> int:
    if dist.get_rank() == 0:
        time.sleep(seconds)
    weight = torch.nn.Parameter(torch.ones(8, 8))
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
    for _step in range(3):
        (model(torch.ones(1, 8)).sum() + weight.sum()).backward()
    return 1


def hooks_that_sleep(seconds: float) -> int:
    """A rank sleeps in the middle of DDP's backward, with a bucket on its way."""
    model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _layer in range(3)))
    first = next(model.parameters())
    if dist.get_rank() == 1:
        first.register_hook(lambda gradient: time.sleep(seconds))
    ddp = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.001)
    for _step in range(2):
        ddp(torch.ones(1, 64)).sum().backward()
    return 1


def a_thread_receives(seconds: float) -> float:
    """The main threads wait for each other in other groups than the helping threads."""
    main, side = dist.new_group([0, 1]), dist.new_group([0, 1])
    value = torch.zeros(1)

    def help_out() -> None:
        time.sleep(seconds)
        if dist.get_rank() == 0:
            dist.send(torch.ones(1), 1, group=side)
        else:
            dist.recv(value, 0, group=side)
            dist.all_reduce(torch.ones(1), group=main)

    thread = threading.Thread(target=help_out)
    thread.start()
    if dist.get_rank() == 0:
        dist.all_reduce(torch.ones(1), group=main)
    thread.join()
    return value.item()


def a_rank_is_stopped(seconds: float) -> int:
    """Rank 1 is stopped for a while, as a sick machine would be, while the others wait."""
    pids = [0] * dist.get_world_size()
    dist.all_gather_object(pids, os.getpid())
    if dist.get_rank() == 0:
        os.kill(pids[1], signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(pids[1], signal.SIGCONT)
    for _step in range(3):
        dist.all_reduce(torch.ones(10))
    return 1


def large_transfers() -> int:
    for _step in range(3):
        dist.all_reduce(torch.ones(8_000_000))
    return 1


def groups_made_anew() -> int:
    for _time in range(3):
        group = dist.new_group([0, 1])
        if dist.get_rank() < 2:
            dist.all_reduce(torch.ones(1), group=group)
            dist.destroy_process_group(group)
        dist.barrier()
    return 1


def many_tags() -> int:
    """More channels than can be counted: no proof is possible any more, and none is given."""
    for tag in range(300):
        if dist.get_rank() == 0:
            dist.send(torch.ones(1), 1, tag=tag)
        elif dist.get_rank() == 1:
            dist.recv(torch.ones(1), 0, tag=tag)
    if dist.get_rank() == 0:
        time.sleep(LONG_S)
    dist.barrier()
    return 1


@pytest.mark.slow
def test_a_rank_that_sleeps_while_the_others_wait_is_no_deadlock_50_times(run_ranks):
    args = (ROUNDS, LONG_S)
    assert run_ranks(one_rank_sleeps_while_others_wait, 3, 120.0, args) == [1, 1, 1]


def test_a_rank_that_sleeps_for_five_seconds_is_no_deadlock(run_ranks):
    assert run_ranks(one_rank_sleeps_while_others_wait, 2, 60.0, (1, 5.0)) == [1, 1]


@pytest.mark.slow
def test_a_rank_that_computes_while_the_others_wait_is_no_deadlock_20_times(run_ranks):
    args = (COMPUTING_ROUNDS, LONG_S)
    assert run_ranks(one_rank_computes_while_others_wait, 3, 120.0, args) == [1, 1, 1]


def test_an_uneven_pipeline_of_asynchronous_operations_is_no_deadlock(run_ranks):
    assert run_ranks(uneven_pipeline, 4, 60.0, (ROUNDS,)) == [ROUNDS] * 4


@pytest.mark.parametrize(
    ("function", "world_size"),
    [
        (slow_first_step, 3),
        (hooks_that_sleep, 2),
        (a_rank_is_stopped, 3),
    ],
)
def test_a_slow_start_a_sleeping_hook_or_a_stopped_rank_is_no_deadlock(
    run_ranks, function, world_size
):
    assert run_ranks(function, world_size, 60.0, (1.2,)) == [1] * world_size


def test_a_rank_whose_helper_thread_will_communicate_is_no_deadlock(run_ranks):
    assert run_ranks(a_thread_receives, 2, 60.0, (1.2,)) == [0.0, 1.0]


@pytest.mark.parametrize("function", [large_transfers, groups_made_anew, many_tags])
def test_large_transfers_new_groups_and_countless_tags_are_no_deadlock(run_ranks, function):
    assert run_ranks(function, 3, 60.0) == [1, 1, 1]
