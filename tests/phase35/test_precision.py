"""Sums are kept in float32, whatever travels."""

from __future__ import annotations

import torch
import torch.distributed as dist
from minidp.allreduce import Communicator
from minidp.build import make_model
from minidp.config import Config
from minidp.data_parallel import DataParallel
from minidp.ring import ring_all_reduce
from minidp.rng import RandomStreams
from minidp.zero1 import ShardedOptimizer
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


def bfloat16_updates():
    """Return the dtypes of weights and logits, and whether weights are their masters rounded."""
    comm, streams = Communicator(), RandomStreams()
    module = make_model(Config(param_dtype="bfloat16", dropout=0.0, layer_drop=0.0), comm, streams)
    module.replace_head()
    groups = [{"params": list(module.parameters()), "lr": 0.1}]
    optimizer = ShardedOptimizer(groups, lambda groups: torch.optim.SGD(groups, lr=0.1))
    rounded = []
    for _ in range(3):
        logits = module(torch.rand(6, 64))
        logits.logsumexp(1).sum().backward()
        optimizer.step()
        rounded += [torch.equal(p, m.bfloat16()) for p, m in optimizer.masters.items()]
    return {p.dtype for p in module.parameters()}, logits.dtype, rounded


def test_bfloat16_weights_are_their_float32_masters_rounded(run_ranks):
    for dtypes, dtype, rounded in run_ranks(bfloat16_updates, world_size=2):
        assert dtypes == {torch.bfloat16}
        assert dtype == torch.float32
        assert rounded
        assert all(rounded)


def test_gradients_travel_in_the_dtype_asked_for(run_ranks):
    args = ([1.0 + 2.0**-10], torch.float32, torch.bfloat16)
    for grad in run_ranks(averaged_gradient, world_size=2, args=args):
        assert grad.tolist() == [1.0] * 3
