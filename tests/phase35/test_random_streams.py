"""Decisions are drawn alike on all ranks, noise is drawn by each rank for itself."""

from __future__ import annotations

import itertools

import torch
import torch.distributed as dist
from minidp.allreduce import Communicator
from minidp.config import Config
from minidp.model import DigitClassifier
from minidp.rng import RandomStreams, dropout, pixel_noise
from minidp.trainer import Trainer

SMALL = Config(sync="overlap", steps=6, num_train=61, num_test=7, micro_batch=2, eval_every=0)


class Recorder(Trainer):
    """Keeps the noise, the decisions and the shared stream's state of each step."""

    def train_step(self, window):
        self.__dict__.setdefault("shared", []).append(self.streams.shared.get_state())
        return super().train_step(window)

    def fetch(self, batch):
        images, labels = super().fetch(batch)
        noise = images - self.train_data.images[batch.ids]
        self.__dict__.setdefault("noise", []).append(noise)
        return images, labels


def draws():
    streams = RandomStreams()
    streams.seed(5, dist.get_rank())
    return torch.rand(4, generator=streams.shared), torch.rand(4, generator=streams.own)


def decisions_and_dropout():
    streams = RandomStreams()
    streams.seed(5, dist.get_rank())
    torch.manual_seed(1)
    model = DigitClassifier(8, None, streams, dropout=0.5, layer_drop=0.5)
    skips = []
    for _ in range(40):
        torch.rand(dist.get_rank(), generator=streams.own)  # own draws must not matter
        skips.append(model.skips_block())
    masks = dropout(torch.ones(50), 0.5, True, streams.own)
    x = torch.rand(6, 64, generator=torch.Generator().manual_seed(0))
    model.eval()
    quiet = torch.equal(model(x), model(x))
    model.train()
    model.layer_drop = 0.0
    return skips, masks, quiet, torch.equal(model(x), model(x))


def recorded_run():
    trainer = Recorder(SMALL, Communicator())
    trainer.train()
    return trainer.shared, trainer.noise


def dropped_ones():
    generator = torch.Generator().manual_seed(1)
    return dropout(torch.ones(10000), 0.25, True, generator)


def noises():
    """Return the noise of two micro-batches, of two epochs, on two ranks."""
    return {
        (epoch, rank, index): pixel_noise((3, 4), seed=1, epoch=epoch, rank=rank, index=index)
        for epoch, rank, index in itertools.product(range(2), repeat=3)
    }


def test_ranks_share_one_stream_and_have_one_of_their_own(run_ranks):
    ranks = run_ranks(draws, world_size=3)
    shared, own = zip(*ranks, strict=True)
    assert torch.equal(shared[0], shared[1])
    assert torch.equal(shared[0], shared[2])
    for (a, x), (b, y) in itertools.combinations(enumerate([*own, shared[0]]), 2):
        assert not torch.equal(x, y), (a, b)


def test_ranks_skip_the_same_layers_and_drop_different_values(run_ranks):
    ranks = run_ranks(decisions_and_dropout, world_size=2)
    assert ranks[0][0] == ranks[1][0]
    assert {True, False} == set(ranks[0][0])
    assert not torch.equal(ranks[0][1], ranks[1][1])


def test_dropout_is_active_in_training_and_not_in_evaluation(run_ranks):
    for _, _, evaluation_repeats, training_repeats in run_ranks(decisions_and_dropout, 2):
        assert evaluation_repeats
        assert not training_repeats


def test_dropout_keeps_the_mean(run_ranks):
    ((kept),) = run_ranks(dropped_ones, world_size=1)
    values = kept.numpy()
    assert set(values.tolist()) == {0.0, values.max()}
    assert abs(values.mean() - 1) < 0.02


def test_noise_differs_between_ranks_micro_batches_and_epochs():
    found = noises()
    for (a, x), (b, y) in itertools.combinations(found.items(), 2):
        assert not (x.numpy() == y.numpy()).any(), (a, b)
    again = noises()
    assert all((found[key].numpy() == again[key].numpy()).all() for key in found)


def test_in_a_run_noise_is_each_rank_s_own_and_the_shared_stream_stays_shared(run_ranks):
    (shared_0, noise_0), (shared_1, noise_1) = run_ranks(recorded_run, world_size=2)
    for state_0, state_1 in zip(shared_0, shared_1, strict=True):
        assert torch.equal(state_0, state_1)
    assert not torch.equal(shared_0[0], shared_0[-1])
    everything = [n for n in (*noise_0, *noise_1) if n.shape == noise_0[0].shape]
    assert len(everything) > 10
    for x, y in itertools.combinations(everything, 2):
        assert abs((x - y).numpy()).max() > 0.01  # far more than rounding
