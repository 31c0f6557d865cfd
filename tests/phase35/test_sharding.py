"""An epoch sees every sample once, in an order that ranks share and epochs don't."""

from __future__ import annotations

import itertools

import pytest
import torch
from minidp.allreduce import Communicator
from minidp.config import Config
from minidp.dataloader import Digits, stream_shard
from minidp.sampler import UNEVEN, ShardedSampler, micro_batches, windows
from minidp.trainer import Trainer
from torch.utils.data import DistributedSampler

WORLD_SIZES = (2, 3, 4)
PRIME = 47


class Recorder(Trainer):
    """Keeps the ids of each window, epoch by epoch."""

    def train_step(self, window):
        seen = self.__dict__.setdefault("seen", {})
        ids = torch.cat([batch.ids[batch.is_real] for batch in window])
        seen.setdefault(self.epoch, []).append(ids.tolist())
        return super().train_step(window)


def ids_of_run(config):
    trainer = Recorder(config, Communicator())
    trainer.train()
    return trainer.seen


def shuffled(epoch, seed):
    return torch.randperm(PRIME, generator=torch.Generator().manual_seed(seed + epoch)).tolist()


@pytest.mark.parametrize("uneven", ["pad", "drop"])
def test_shards_equal_those_of_torch(uneven):
    for world_size, epoch, size in itertools.product(WORLD_SIZES, (0, 1, 5), (1, 2, 12, PRIME)):
        for rank in range(world_size):
            ours = ShardedSampler(size, world_size, rank, seed=9, uneven=uneven)
            theirs = DistributedSampler(
                range(size), world_size, rank, seed=9, drop_last=uneven == "drop"
            )
            ours.set_epoch(epoch)
            theirs.set_epoch(epoch)
            if not (uneven == "drop" and size < world_size):  # torch repeats, we leave out
                assert list(ours) == list(theirs), (size, world_size, rank)


def test_shards_without_padding_are_the_data_set():
    for world_size, uneven in itertools.product(WORLD_SIZES, ("pad", "join")):
        ids = []
        for rank in range(world_size):
            sampler = ShardedSampler(PRIME, world_size, rank, uneven=uneven)
            batches = micro_batches(sampler, 5)
            ids += torch.cat([batch.ids[batch.is_real] for batch in batches]).tolist()
        assert sorted(ids) == list(range(PRIME))


def test_padded_ranks_have_equally_many_micro_batches():
    for world_size in WORLD_SIZES:
        samplers = [ShardedSampler(PRIME, world_size, rank) for rank in range(world_size)]
        assert len({len(sampler) for sampler in samplers}) == 1
        assert len({len(micro_batches(sampler, 5)) for sampler in samplers}) == 1


def test_all_ranks_know_the_longest_shard():
    for world_size, size, uneven in itertools.product((2, 3, 4), (1, 12, PRIME), UNEVEN):
        samplers = [ShardedSampler(size, world_size, r, uneven=uneven) for r in range(world_size)]
        assert {sampler.longest for sampler in samplers} == {max(map(len, samplers))}


def test_a_sampler_that_starts_later_yields_the_rest():
    for rank, uneven in itertools.product(range(2), ("pad", "drop", "join")):
        sampler = ShardedSampler(9, 2, rank, uneven=uneven)
        whole = list(sampler)
        sampler.set_epoch(0, start=4)
        assert list(sampler) == whole[4:]
        for batch in micro_batches(sampler, 4):
            assert batch.index == 1
            assert batch.is_real.tolist() == [rank == 0]  # 9 samples: rank 1's fifth is padding


def test_windows_hold_all_micro_batches_in_order_and_full_but_the_last():
    sampler = ShardedSampler(PRIME, 2, 0)
    found = list(windows(sampler, 3, 3))
    assert [len(window) for window in found] == [3, 3, 2]
    ids = torch.cat([batch.ids for window in found for batch in window])
    assert ids.tolist() == list(sampler)


def test_unknown_rule_for_uneven_data_is_refused():
    with pytest.raises(ValueError, match="use one of pad, drop, join"):
        ShardedSampler(3, 2, 0, uneven="ignore")


def test_stream_reads_each_sample_on_one_rank_only():
    shards = []
    for rank in range(3):
        data = Digits(torch.arange(11.0).view(11, 1), torch.arange(11))
        shards.append([int(label) for _, label in stream_shard(data, 3, rank)])
        assert data.num_reads == 4
    assert shards == [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 0]]


def epochs_of_a_sampler_that_ends_early():
    config = Config(sync="overlap", steps=9, epochs=2, num_train=PRIME, num_test=5, eval_every=0)
    trainer = Recorder(config, Communicator())
    trainer.sampler.shard = lambda: torch.arange(7)
    trainer.train()
    return [sorted(i for ids in windows for i in ids) for windows in trainer.seen.values()]


def test_a_run_ends_with_its_samples_even_if_they_are_fewer_than_planned(run_ranks):
    seen = run_ranks(epochs_of_a_sampler_that_ends_early, world_size=1)
    assert seen == [[list(range(7))] * 2]


@pytest.mark.parametrize("uneven", ["pad", "join"])
def test_a_run_sees_each_sample_once_an_epoch_in_the_shared_order(run_ranks, uneven):
    config = Config(
        sync="overlap",
        steps=100,
        num_train=PRIME,
        num_test=5,
        micro_batch=3,
        norm="none",
        uneven=uneven,
        eval_every=0,
    )
    for world_size in WORLD_SIZES:
        ranks = run_ranks(ids_of_run, world_size=world_size, args=(config,))
        for epoch in (0, 1):
            shards = [[i for ids in seen[epoch] for i in ids] for seen in ranks]
            order = [shards[i % world_size][i // world_size] for i in range(PRIME)]
            assert order == shuffled(epoch, config.seed)
            assert sum(map(len, shards)) == PRIME
            per_step = config.micro_batch * config.accumulation
            num_steps = -(-len(shards[0]) // per_step)
            assert all(len(seen[epoch]) == num_steps for seen in ranks)
            assert all(len(ids) <= per_step for seen in ranks for ids in seen[epoch])
