"""A sharded optimizer is an optimizer: same steps, same saved state, each parameter owned once."""

from __future__ import annotations

import warnings

import pytest
import torch
from minidp.allreduce import Communicator
from minidp.model import DigitClassifier
from minidp.sync_batchnorm import SyncBatchNorm
from minidp.zero1 import ShardedOptimizer, decay_groups, partition
from torch import nn

WORLD_SIZES = (2, 3, 4)


class Interleaved(nn.Module):
    """Matrices of one shape, whose biases lie between them; one weight has two names."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d = (nn.Linear(3, 3) for _ in range(4))
        self.norm = nn.BatchNorm1d(3)
        self.d.weight = self.a.weight


def sgd(groups):
    return torch.optim.SGD(groups, lr=0.0, momentum=0.9)


def adam(groups):
    return torch.optim.AdamW(groups, lr=0.0)


def seeded_module():
    torch.manual_seed(6)
    return Interleaved()


def set_gradients(module, step):
    generator = torch.Generator().manual_seed(step)
    for p in module.parameters():
        p.grad = torch.randn(p.shape, generator=generator)


def make(module, shard, make_inner=sgd):
    comm = Communicator(lazy=True) if shard else None
    return ShardedOptimizer(decay_groups(module, 0.1), make_inner, comm)


def advance(optimizer, module, steps):
    for step in steps:
        set_gradients(module, step)
        for group in optimizer.param_groups:
            group["lr"] = 0.1 / (1 + step)
        optimizer.step()
    if isinstance(optimizer, ShardedOptimizer):
        optimizer.wait()


def values(module):
    return [p.detach().clone() for p in module.parameters()]


def sharded_steps(num_steps, make_inner):
    module = seeded_module()
    optimizer = make(module, shard=True, make_inner=make_inner)
    advance(optimizer, module, range(num_steps))
    owned = [i for i, p in enumerate(optimizer.params) if p in optimizer.masters]
    rates = [g["lr"] for g in optimizer.inner.param_groups]
    return values(module), owned, rates, torch_steps(num_steps, make_inner)


def torch_steps(num_steps, make_inner):
    module = seeded_module()
    optimizer = make_inner(decay_groups(module, 0.1))
    advance(optimizer, module, range(num_steps))
    return values(module)


def torch_zero_steps(num_steps):
    with warnings.catch_warnings():  # torch's own import warns of torch's own deprecation
        warnings.simplefilter("ignore")
        from torch.distributed.optim import ZeroRedundancyOptimizer
    module = seeded_module()
    optimizer = ZeroRedundancyOptimizer(
        list(module.parameters()), torch.optim.SGD, lr=0.0, momentum=0.9
    )
    ours = seeded_module()
    groups = [{"params": list(ours.parameters())}]
    sharded = ShardedOptimizer(groups, sgd, Communicator())
    advance(optimizer, module, range(num_steps))
    advance(sharded, ours, range(num_steps))
    return values(module), values(ours)


def save_after(num_steps):
    module = seeded_module()
    optimizer = make(module, shard=True)
    advance(optimizer, module, range(num_steps))
    return optimizer.consolidated_state(), values(module)


def load_and_advance(state, steps):
    """Load into a module whose weights are wrong, on a rank of a world of any size."""
    module = seeded_module()
    with torch.no_grad():
        for p in module.parameters():
            p += 1
    optimizer = make(module, shard=True)
    optimizer.load_consolidated_state(state)
    loaded = values(module)
    moments = [s["momentum_buffer"] for s in optimizer.inner.state.values()]
    advance(optimizer, module, steps)
    num_moments = sum(len(m.unique()) > 1 for m in moments)
    expected = torch_steps(max(steps) + 1, sgd)
    return (loaded, values(module), expected), (num_moments, len(optimizer.owned))


def step_of_nothing_after_new_weights():
    module = seeded_module()
    optimizer = make(module, shard=True)
    with torch.no_grad():
        for p in module.parameters():
            p.fill_(0.25)
    optimizer.refresh_masters()
    set_gradients(module, 0)
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    optimizer.step()
    optimizer.wait()
    return values(module)


def weights_seen_by_forward():
    """Record, in each forward, whether a layer's weights are those of all updates so far."""
    comm = Communicator(lazy=True)
    torch.manual_seed(6)
    module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2))
    optimizer = ShardedOptimizer(decay_groups(module, 0.0), sgd, comm)
    optimizer.gather_before_forward(module)
    seen = []
    for layer in module:
        layer.register_forward_pre_hook(
            lambda layer, _: seen.append([p.detach().clone() for p in layer.parameters()])
        )
    for _ in range(3):
        for group in optimizer.param_groups:
            group["lr"] = 1.0
        for p in module.parameters():
            p.grad = torch.ones_like(p)
        optimizer.step()
        module(torch.ones(1, 2))
    return seen


def assert_equal(actual, expected):
    for a, b in zip(actual, expected, strict=True):
        assert torch.equal(a, b)


def test_partition_owns_each_item_once_and_balances():
    for world_size in WORLD_SIZES:
        sizes = [9, 9, 9, 9, 3, 3, 3, 3, 1]
        owners = partition(sizes, world_size)
        assert len(owners) == len(sizes)
        loads = [
            sum(n for n, o in zip(sizes, owners, strict=True) if o == r) for r in range(world_size)
        ]
        assert max(loads) - min(loads) <= max(sizes)
        assert min(loads) > 0
        alike = partition([4] * (2 * world_size), world_size)
        assert sorted(alike) == sorted([*range(world_size), *range(world_size)])


@pytest.mark.parametrize(
    "norm", [nn.BatchNorm1d, lambda width: SyncBatchNorm(width, None)], ids=["local", "sync"]
)
def test_only_matrices_decay(norm):
    module = DigitClassifier(8, norm)
    decays, others = (group["params"] for group in decay_groups(module, 0.1))
    names = {p: name for name, p in module.named_parameters()}
    assert {names[p] for p in others} == {
        name for name in names.values() if name.endswith("bias") or name.startswith("norm")
    }
    assert len(decays) + len(others) == len(names)
    assert [group["weight_decay"] for group in decay_groups(module, 0.1)] == [0.1, 0.0]


@pytest.mark.parametrize("make_inner", [sgd, adam])
def test_sharded_steps_equal_unsharded_ones(run_ranks, make_inner):
    for world_size in WORLD_SIZES:
        ranks = run_ranks(sharded_steps, world_size=world_size, args=(3, make_inner))
        expected = ranks[0][-1]
        assert sorted(i for _, owned, *_ in ranks for i in owned) == list(range(len(expected)))
        for actual, _, rates, _ in ranks:
            assert_equal(actual, expected)
            assert rates == pytest.approx([0.1 / 3] * 2)


def test_sharded_steps_equal_those_of_torch_zero(run_ranks):
    for theirs, ours in run_ranks(torch_zero_steps, world_size=3, args=(3,)):
        assert_equal(ours, theirs)


@pytest.mark.parametrize(("before", "after"), [(2, 4), (4, 2), (3, 3)])
def test_saved_state_goes_on_exactly_on_any_number_of_ranks(run_ranks, before, after):
    saved = run_ranks(save_after, world_size=before, args=(3,))
    state, weights = saved[-1]
    assert sorted(state) == list(range(len(weights)))
    ranks = run_ranks(load_and_advance, world_size=after, args=(state, range(3, 5)))
    for (loaded, actual, expected), (num_moments, num_owned) in ranks:
        assert_equal(loaded, weights)
        assert_equal(actual, expected)
        assert num_moments == num_owned > 0


def test_new_weights_survive_a_step_of_rate_zero(run_ranks):
    for actual in run_ranks(step_of_nothing_after_new_weights, world_size=2):
        assert all(p.unique().tolist() == [0.25] for p in actual)


def test_each_layer_runs_with_the_weights_of_the_last_update(run_ranks):
    ranks = run_ranks(weights_seen_by_forward, world_size=2)
    for seen in ranks:
        for layers, others in zip(seen, ranks[0], strict=True):
            assert_equal(layers, others)
        for layer in range(4):
            steps = [seen[4 * step + layer][1] for step in range(3)]
            # momentum 0.9 and a gradient of one: the second update is 1.9, the third 2.71
            assert abs((steps[0] - steps[1]).numpy() - 1.9).max() < 1e-6
            assert abs((steps[1] - steps[2]).numpy() - 2.71).max() < 1e-6
