"""Sums are kept in float32, whatever travels."""

from __future__ import annotations

import torch
import torch.distributed as dist
from minidp.allreduce import Communicator
from minidp.data_parallel import DataParallel
from minidp.ring import ring_all_reduce
from torch import nn


class Scaled(nn.Module):
    def __init__(self, numel, dtype):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(numel, dtype=dtype))

    def forward(self, x):
        return (self.weight * x).sum()


def ring_of_bfloat16():
    generator = torch.Generator().manual_seed(dist.get_rank())
    mine = (
        torch.randn(257, generator=generator) * 3.0 ** torch.arange(257).remainder(7)
    ).bfloat16()
    total = mine.float()
    dist.all_reduce(total)
    return ring_all_reduce(mine, Communicator()), total


def averaged_gradient(values, dtype, comm_dtype):
    """Return the averaged gradient, whose summands on this rank are ``values``."""
    module = Scaled(3, dtype)
    model = DataParallel(module, Communicator(), comm_dtype=comm_dtype)
    model.zero_grad()
    for value in values[:-1]:
        with model.no_sync():
            model(torch.full((3,), value, dtype=dtype)).backward()
    model(torch.full((3,), values[-1], dtype=dtype)).backward()
    model.finish()
    return module.weight.grad


def test_ring_in_bfloat16_rounds_only_the_finished_sum(run_ranks):
    for world_size in (3, 4):
        for actual, total in run_ranks(ring_of_bfloat16, world_size=world_size):
            error = (actual.float().numpy() - total.numpy()) / abs(total.numpy())
            assert abs(error).max() <= 2.0**-8 * 1.01  # half a unit in the last of 8 bits


def test_large_float16_gradients_of_four_ranks_stay_finite(run_ranks):
    args = ([40000.0], torch.float32, torch.float16)
    for grad in run_ranks(averaged_gradient, world_size=4, args=args):
        assert grad.tolist() == [40000.0] * 3


def test_many_small_bfloat16_gradients_add_up(run_ranks):
    args = ([1.0] * 400, torch.bfloat16, torch.float32)
    for grad in run_ranks(averaged_gradient, world_size=2, args=args):
        assert grad.float().tolist() == [400.0] * 3


def test_gradients_travel_in_the_dtype_asked_for(run_ranks):
    args = ([1.0 + 2.0**-10], torch.float32, torch.bfloat16)
    for grad in run_ranks(averaged_gradient, world_size=2, args=args):
        assert grad.tolist() == [1.0] * 3
