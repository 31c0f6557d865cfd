"""What ranks do in ``verdict.py``: ten kinds of deadlock, and healthy runs that look stuck."""

from __future__ import annotations

import random
import time
from pathlib import Path

import torch
import torch.distributed as dist

LONG_S = 5.0  # for which a healthy run looks stuck


def about_to_block(folder: str) -> None:
    """Note that this rank is about to block; the newest note of all ranks counts."""
    Path(folder, str(dist.get_rank())).write_text(repr(time.monotonic()))


def tensor() -> torch.Tensor:
    """A few numbers to send."""
    return torch.ones(64)


def other_collective(folder: str) -> None:
    dist.all_reduce(tensor())
    about_to_block(folder)
    if dist.get_rank() == 1:
        dist.broadcast(tensor(), 1)
    else:
        dist.all_reduce(tensor())


def skipped_call(folder: str) -> None:
    for step in range(3):
        if step != 1 or dist.get_rank() != 2:
            about_to_block(folder)
            dist.all_reduce(tensor())
    about_to_block(folder)
    dist.barrier()


def rank_that_left(folder: str) -> None:
    about_to_block(folder)
    if dist.get_rank() != 1:
        dist.barrier()


def receives_in_a_circle(folder: str) -> None:
    about_to_block(folder)
    dist.recv(tensor(), (dist.get_rank() + 1) % 3)


def sends_in_a_circle(folder: str) -> None:
    about_to_block(folder)
    dist.send(tensor(), (dist.get_rank() + 1) % 3)


def other_tag(folder: str) -> None:
    about_to_block(folder)
    if dist.get_rank() == 0:
        dist.send(tensor(), 1, tag=1)
    elif dist.get_rank() == 1:
        dist.recv(tensor(), 0, tag=2)


def subgroup_not_joined(folder: str) -> None:
    pair = dist.new_group([0, 1])
    about_to_block(folder)
    if dist.get_rank() == 0:
        dist.all_reduce(tensor(), group=pair)
    else:
        dist.barrier()


def groups_in_another_order(folder: str) -> None:
    groups = [dist.new_group([0, 1, 2]) for _number in range(2)]
    about_to_block(folder)
    for group in groups if dist.get_rank() else groups[::-1]:
        dist.all_reduce(tensor(), group=group)


def other_size(folder: str) -> None:
    for _step in range(2):
        about_to_block(folder)
        dist.all_reduce(torch.ones(4 if dist.get_rank() == 0 else 3))


def ddp_with_one_batch_more(folder: str) -> None:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
    for _batch in range(3 if dist.get_rank() == 0 else 2):
        loss = model(torch.ones(1, 4)).sum()
        about_to_block(folder)
        loss.backward()
    about_to_block(folder)
    dist.barrier()


DEADLOCKS = [
    other_collective,
    skipped_call,
    rank_that_left,
    receives_in_a_circle,
    sends_in_a_circle,
    other_tag,
    subgroup_not_joined,
    groups_in_another_order,
    other_size,
    ddp_with_one_batch_more,
]


def healthy(folder: str, seed: int) -> None:
    """A random but legal mixture of waiting, computing, messages and collectives."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    plan, own = random.Random(seed), random.Random(f"{seed} {rank}")
    pair = dist.new_group([0, 1])
    for _step in range(12):
        time.sleep(own.choice([0, 0, 0.002, 0.02, 0.3]))
        match plan.randrange(6):
            case 0:
                dist.all_reduce(torch.ones(plan.choice([1, 1000, 200_000])))
            case 1:
                dist.broadcast(tensor(), plan.randrange(world_size))
            case 2:
                works = [dist.irecv(tensor(), (rank - 1) % world_size)]
                works.append(dist.isend(tensor(), (rank + 1) % world_size))
                for work in works:
                    work.wait()
            case 3:
                if rank < 2:
                    dist.all_reduce(tensor(), group=pair)
            case 4:
                dist.reduce(tensor(), plan.randrange(world_size))
            case 5:
                dist.barrier()
    Path(folder, f"healthy{rank}").touch()


def sleeps_long() -> None:
    """One rank sleeps while the others wait."""
    if dist.get_rank() == 1:
        time.sleep(LONG_S)
    dist.all_reduce(tensor())


def computes_long() -> None:
    """One rank computes while the others wait."""
    matrix, end = torch.rand(100, 100), time.monotonic() + LONG_S
    while dist.get_rank() == 1 and time.monotonic() < end:
        matrix = torch.tanh(matrix @ matrix)
    dist.all_reduce(tensor())


def pipeline_with_a_slow_stage() -> None:
    """Asynchronous sends overlap with a stage that takes its time."""
    rank, sends = dist.get_rank(), []
    for _number in range(5):
        item = tensor()
        if rank > 0:
            dist.recv(item, rank - 1)
        if rank == 1:
            time.sleep(LONG_S / 5)
        if rank < 2:
            sends.append((dist.isend(item, rank + 1), item))
    for work, _item in sends:
        work.wait()


def slow_first_step() -> None:
    """DDP's first step waits for a rank that is late."""
    if dist.get_rank() == 0:
        time.sleep(LONG_S)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
    for _step in range(3):
        model(torch.ones(1, 8)).sum().backward()


LOOK_STUCK = (sleeps_long, computes_long, pipeline_with_a_slow_stage, slow_first_step)
