"""The norm that clips is that of all gradients, counted once."""

from __future__ import annotations

import pytest
import torch
from minidp.allreduce import Communicator
from minidp.clipping import clip_gradients, global_norm
from minidp.zero1 import partition
from torch import nn

SHAPES = [(7, 3), (3,), (2, 2), (5,)]


def grads_for(scale):
    torch.manual_seed(1)
    return [torch.randn(shape) * scale for shape in SHAPES]


def clip_with_torch(scale, max_norm):
    params = [nn.Parameter(torch.zeros(shape)) for shape in SHAPES]
    for p, grad in zip(params, grads_for(scale), strict=True):
        p.grad = grad
    norm = nn.utils.clip_grad_norm_(params, max_norm)
    return float(norm), [p.grad for p in params]


def clip_replicas(scale, max_norm):
    grads = grads_for(scale)
    return (clip_gradients(grads, max_norm), grads), clip_with_torch(scale, max_norm)


def clip_shards(scale, max_norm):
    comm = Communicator()
    owners = partition([7 * 3, 3, 4, 5], comm.world_size)
    grads = grads_for(scale)
    mine = [grad for grad, owner in zip(grads, owners, strict=True) if owner == comm.rank]
    norm = clip_gradients(mine, max_norm, comm)
    numbers = [i for i, owner in enumerate(owners) if owner == comm.rank]
    return (norm, dict(zip(numbers, mine, strict=True))), clip_with_torch(scale, max_norm)


def norm_of_nothing():
    return global_norm([])


@pytest.mark.parametrize("scale", [0.01, 10.0], ids=["small", "large"])
def test_clipping_equals_torch(run_ranks, scale):
    for world_size in (1, 4):
        ranks = run_ranks(clip_replicas, world_size, args=(scale, 1.0))
        for (actual_norm, grads), (norm, expected) in ranks:
            assert actual_norm == pytest.approx(norm, rel=1e-6)
            for grad, wanted in zip(grads, expected, strict=True):
                assert abs(grad.numpy() - wanted.numpy()).max() < 1e-6


@pytest.mark.parametrize("scale", [0.01, 10.0], ids=["small", "large"])
def test_clipping_of_shards_equals_torch_on_all_gradients(run_ranks, scale):
    for world_size in (2, 3):
        ranks = run_ranks(clip_shards, world_size, args=(scale, 1.0))
        assert sorted(i for (_, shard), _ in ranks for i in shard) == [0, 1, 2, 3]
        for (actual_norm, shard), (norm, expected) in ranks:
            assert actual_norm == pytest.approx(norm, rel=1e-6)
            for i, grad in shard.items():
                assert abs(grad.numpy() - expected[i].numpy()).max() < 1e-6


def test_norm_of_no_gradients_is_zero(run_ranks):
    assert run_ranks(norm_of_nothing, world_size=1) == [0.0]
