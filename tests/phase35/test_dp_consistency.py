"""Replicas agree with each other, and with one process that sees the whole global batch."""

from __future__ import annotations

import itertools
import json

import pytest
import torch
import torch.distributed as dist
from minidp.allreduce import Communicator
from minidp.config import Config
from minidp.dataloader import NUM_TRAIN, load_digits, plan_micro_batches, shard_indices, shard_sizes
from minidp.gradient_sync import SYNC_MODES, BatchPlan
from minidp.model import DigitClassifier, broadcast_state
from minidp.plain import train_plain
from torch.nn import functional as F

WORLD_SIZES = (2, 3, 4)
UNEVEN = 13  # a global batch that no world size divides
EVEN = 24  # one that 2, 3 and 4 divide, into whole micro-batches of 2
TOLERANCE = 2e-6  # float32, sums of a few terms of order one in another order


def gradients_of(model):
    return [p.grad.clone() for p in model.parameters()]


def synchronised_gradients(sync, global_batch):
    """Return the gradients that the ranks found together, and those that this one finds alone."""
    comm = Communicator()
    torch.manual_seed(5)
    model = DigitClassifier()
    images, labels = load_digits()
    mine = shard_indices(global_batch, comm.world_size, comm.rank)
    plan = BatchPlan(global_batch, micro_batch=2)
    _, loss_sum = SYNC_MODES[sync](model, images[mine], labels[mine], plan, comm)
    actual = [*gradients_of(model), loss_sum.reshape(1) / global_batch]
    return actual, full_batch_gradients(global_batch)


def what_a_step_keeps(sync):
    """Return whether the losses and the gradients that a step leaves hold on to its graph."""
    comm = Communicator()
    torch.manual_seed(5)
    model = DigitClassifier()
    images, labels = load_digits()
    plan = BatchPlan(EVEN, micro_batch=EVEN)
    losses = SYNC_MODES[sync](model, images[:EVEN], labels[:EVEN], plan, comm)
    return [each.requires_grad for each in (*losses, *(p.grad for p in model.parameters()))]


def refused_batch():
    images, labels = load_digits()
    comm = Communicator()
    plan = BatchPlan(global_batch=6, micro_batch=2)  # whole micro-batches, but three for two ranks
    with pytest.raises(ValueError, match="use a multiple of 4"):
        SYNC_MODES["micro-batch"](DigitClassifier(), images[:3], labels[:3], plan, comm)
    with pytest.raises(ValueError, match="use a multiple of 4"):
        train_plain(Config(sync="micro-batch", steps=1, global_batch=6, micro_batch=2), comm)
    return comm.num_collectives


def full_batch_gradients(global_batch):
    torch.manual_seed(5)
    model = DigitClassifier()
    images, labels = load_digits()
    loss = F.cross_entropy(model(images[:global_batch]), labels[:global_batch])
    loss.backward()
    return [*gradients_of(model), loss.detach().reshape(1)]


def train_on_rank(config):
    return [p.detach().clone() for p in train_plain(config, Communicator()).parameters()]


def train_in_one_process(config):
    images, labels = load_digits()
    order = torch.randperm(NUM_TRAIN, generator=torch.Generator().manual_seed(config.seed))
    torch.manual_seed(config.seed)
    model = DigitClassifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=config.lr, momentum=config.momentum)
    for step in range(config.steps):
        rows = order[step * config.global_batch : (step + 1) * config.global_batch]
        optimizer.zero_grad()
        F.cross_entropy(model(images[rows]), labels[rows]).backward()
        optimizer.step()
    return [p.detach().clone() for p in model.parameters()]


def first_state_of_rank():
    torch.manual_seed(100 + dist.get_rank())
    model = DigitClassifier()
    before = [p.detach().clone() for p in model.parameters()]
    broadcast_state(model, Communicator())
    return before, [p.detach().clone() for p in model.parameters()]


def assert_close(actual, expected):
    for a, b in zip(actual, expected, strict=True):
        assert abs(a.numpy() - b.numpy()).max() < TOLERANCE


def step_zero(run_ranks, folder, world_size):
    """Return the first metrics line of each rank of a run that stops before any update."""
    config = Config(steps=0, global_batch=EVEN, metrics=folder / str(world_size))
    run_ranks(train_on_rank, world_size=world_size, args=(config,))
    files = [config.metrics / f"rank{rank}.jsonl" for rank in range(world_size)]
    return [json.loads(file.read_text().splitlines()[0]) for file in files]


def test_ranks_agree_at_step_zero(run_ranks, tmp_path):
    (alone,) = step_zero(run_ranks, tmp_path, world_size=1)
    for world_size in WORLD_SIZES:
        ranks = step_zero(run_ranks, tmp_path, world_size)
        assert {rank["num_samples"] for rank in ranks} == {EVEN // world_size}
        assert {rank["global_loss"] for rank in ranks} == {ranks[0]["global_loss"]}
        mean_loss = sum(rank["loss"] for rank in ranks) / world_size
        assert mean_loss == pytest.approx(alone["loss"], abs=TOLERANCE)
        assert ranks[0]["global_loss"] == pytest.approx(alone["loss"], abs=TOLERANCE)


@pytest.mark.parametrize(
    ("sync", "global_batch"),
    [
        ("bucket", EVEN),
        ("bucket", UNEVEN),
        ("packed", EVEN),
        ("packed", UNEVEN),
        ("micro-batch", EVEN),
    ],
)
def test_averaged_gradient_equals_full_batch_gradient(run_ranks, sync, global_batch):
    args = (sync, global_batch)
    for world_size in WORLD_SIZES:
        for actual, expected in run_ranks(synchronised_gradients, world_size, args=args):
            assert_close(actual, expected)


@pytest.mark.parametrize("sync", SYNC_MODES)
def test_a_step_leaves_numbers_and_no_graph(run_ranks, sync):
    (kept,) = run_ranks(what_a_step_keeps, world_size=1, args=(sync,))
    assert not any(kept)


@pytest.mark.parametrize("sync", ["bucket", "packed"])
def test_parameters_equal_on_all_ranks_and_to_one_process(run_ranks, sync):
    config = Config(sync=sync, steps=5, global_batch=UNEVEN)
    (expected,) = run_ranks(train_in_one_process, world_size=1, args=(config,))
    for world_size in WORLD_SIZES:
        ranks = run_ranks(train_on_rank, world_size=world_size, args=(config,))
        for actual in ranks:
            assert all(torch.equal(a, b) for a, b in zip(actual, ranks[0], strict=True))
            assert_close(actual, expected)


def test_replicas_start_from_the_state_of_rank_zero(run_ranks):
    (first, _), *others = run_ranks(first_state_of_rank, world_size=3)
    for before, after in others:
        assert not torch.equal(before[0], first[0])  # else agreement would prove nothing
        assert all(torch.equal(a, b) for a, b in zip(after, first, strict=True))


def test_each_sample_of_a_global_batch_belongs_to_one_rank():
    for global_batch, world_size in itertools.product((1, UNEVEN, EVEN, 64), WORLD_SIZES):
        shards = [shard_indices(global_batch, world_size, rank) for rank in range(world_size)]
        assert sorted(i for shard in shards for i in shard.tolist()) == list(range(global_batch))


def test_shards_differ_by_at_most_one_sample():
    for global_batch, world_size in itertools.product((1, UNEVEN, EVEN, 64), WORLD_SIZES):
        shards = [shard_indices(global_batch, world_size, rank) for rank in range(world_size)]
        assert [len(shard) for shard in shards] == shard_sizes(global_batch, world_size)
        assert max(map(len, shards)) - min(map(len, shards)) <= 1


def test_a_batch_that_ranks_can_not_share_is_refused_before_any_call(run_ranks):
    assert run_ranks(refused_batch, world_size=2) == [0, 0]


def test_micro_batches_that_do_not_fill_equal_shards_are_refused():
    assert plan_micro_batches(EVEN, 3, micro_batch=2) == 4
    for global_batch, world_size in [(UNEVEN, 2), (EVEN, 5), (18, 4)]:
        with pytest.raises(ValueError, match="use a multiple of"):
            plan_micro_batches(global_batch, world_size, micro_batch=2)
