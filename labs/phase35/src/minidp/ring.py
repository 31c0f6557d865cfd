"""All-reduce by hand: chunks travel around a ring, first to be summed, then to be shared.

Cut the tensor into as many chunks as there are ranks. In the first ``N - 1`` hops each rank passes
a partial sum to its right neighbour (reduce-scatter); after them rank ``r`` owns one finished
chunk. In the next ``N - 1`` hops the finished chunks go round (all-gather). Each rank sends
``2 (N - 1) / N`` times the tensor, however many ranks there are: Patarasuk and Yuan, Bandwidth
optimal all-reduce algorithms for clusters of workstations, JPDC 69 (2009).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from minidp.allreduce import Communicator


@dataclass(frozen=True)
class Hop:
    """One step of one rank: which chunk it sends right, which it receives from the left."""

    send: int
    receive: int
    adds: bool  # a partial sum to add to (reduce-scatter), or a finished chunk (all-gather)


def ring_schedule(rank: int, world_size: int) -> list[Hop]:
    """Return the ``2 (world_size - 1)`` hops of ``rank``. Pure."""
    hops = []
    for hop in range(2 * (world_size - 1)):
        sent = (rank - hop) % world_size
        hops.append(Hop(sent, (sent - 1) % world_size, adds=hop < world_size - 1))
    return hops


def chunk_bounds(numel: int, world_size: int) -> list[slice]:
    """Return one slice for each chunk; the first ones take what is left over. Pure."""
    base, extra = divmod(numel, world_size)
    starts = [base * i + min(i, extra) for i in range(world_size + 1)]
    return [slice(a, b) for a, b in pairwise(starts)]


def ring_all_reduce(tensor: Tensor, comm: Communicator) -> Tensor:
    """Replace ``tensor`` (any shape) on every rank by the sum over ranks, and return it.

    Collective: every rank, same shape and dtype. The result is bit-equal on all ranks. Sums of
    float16 and bfloat16 are kept and sent in float32, and rounded once, when they are finished.
    """
    comm.count("ring_all_reduce")
    left, right = (comm.rank - 1) % comm.world_size, (comm.rank + 1) % comm.world_size
    bounds = chunk_bounds(tensor.numel(), comm.world_size)
    wide = torch.promote_types(tensor.dtype, torch.float32)
    sums = tensor.reshape(-1).to(wide, copy=True)  # (numel,)
    result = torch.empty(tensor.numel(), dtype=tensor.dtype)  # (numel,)
    schedule = ring_schedule(comm.rank, comm.world_size)
    for hop in schedule[: comm.world_size - 1]:
        received = torch.empty_like(sums[bounds[hop.receive]])  # (chunk,)
        comm.exchange(sums[bounds[hop.send]], right, received, left)
        sums[bounds[hop.receive]] += received
    mine = bounds[(comm.rank + 1) % comm.world_size]
    result[mine] = sums[mine].to(tensor.dtype)
    for hop in schedule[comm.world_size - 1 :]:
        received = torch.empty_like(result[bounds[hop.receive]])
        comm.exchange(result[bounds[hop.send]], right, received, left)
        result[bounds[hop.receive]] = received
    return tensor.copy_(result.view_as(tensor))
