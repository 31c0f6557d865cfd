"""Ranks decide alike whatever each of them sees, so that all make the same calls."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import math
import time

import minidp.trainer
import numpy as np
import pytest
import torch
from minidp.allreduce import Communicator
from minidp.build import load_data
from minidp.checkpoint import load, save
from minidp.config import Config
from minidp.decisions import EarlyStopping, any_rank, as_rank0_says
from minidp.evaluate import Scores
from minidp.loss import NO_LABEL
from minidp.plain import train_plain
from minidp.scaler import LossScaler
from minidp.trainer import Trainer

SMALL = Config(
    sync="overlap",
    steps=6,
    growth_interval=99,
    num_train=61,
    num_test=7,
    micro_batch=2,
    norm="none",
    eval_every=0,
)


def with_options(**options):
    return dataclasses.replace(SMALL, **options)


class Disturbed(Trainer):
    """One rank meets something that the others don't see, in step 3."""

    def __init__(self, config, comm, *, nan_on=None, overflow_on=None):
        super().__init__(config, comm)
        self.nan_on, self.overflow_on = nan_on, overflow_on
        self.rows = []

    def fetch(self, batch):
        images, labels = super().fetch(batch)
        if self.step == 3 and self.comm.rank == self.nan_on:
            images = images * math.nan
            labels = torch.zeros_like(labels)
        return images, labels

    def train_step(self, window):
        row = super().train_step(window)
        self.rows.append((row["skipped"], self.scaler.scale))
        return row

    def update(self):
        if self.step == 3 and self.comm.rank == self.overflow_on:
            self.optimizer.owned_grads()[0].fill_(math.inf)
        return super().update()


def disturbed_run(config, disturbance):
    trainer = Disturbed(config, Communicator(), **disturbance)
    trainer.train()
    weights = [p.detach().clone() for p in trainer.module.parameters()]
    return trainer.rows, weights, trainer.step, trainer.comm.num_collectives


def run_with_votes(voter):
    trainer = Trainer(with_options(eval_every=1), Communicator())
    if trainer.comm.rank == voter:
        trainer.early_stopping.votes_to_stop = lambda loss: trainer.step >= 2
    trainer.train()
    return trainer.step


def run_until_deadline(late_rank):
    trainer = Trainer(SMALL, Communicator())
    if trainer.comm.rank == late_rank:
        trainer.deadline = time.monotonic() - 1
    trainer.train()
    return trainer.step


def run_with_scores(losses, shard_losses, **options):
    """Let evaluation ``i`` find ``losses[i]``, and ``shard_losses[rank][i]`` on a rank."""
    config = with_options(eval_every=1, steps=len(losses) - 1, ema_decay=0.0, **options)
    trainer = Trainer(config, Communicator())
    shard = shard_losses[trainer.comm.rank]
    found = iter([i for i in range(len(losses)) for _ in range(2)])  # weights and their average

    def evaluate(*_, **__):
        i = next(found)
        return Scores(losses[i], 0.5, math.exp(losses[i]), 0.5, shard[i])

    minidp.trainer.evaluate = evaluate
    trainer.train()
    return trainer.step, trainer.best_step, trainer.schedule.factor


def unscaled(scale, infinite_rank, sharded):
    comm = Communicator()
    scaler = LossScaler(scale, growth_interval=2)
    found, scales = [], []
    for step in range(4):
        grads = [torch.full((2,), 6.0 * scale), torch.full((3,), -2.0 * scale)]
        if step == 2 and comm.rank == infinite_rank:
            grads[1][0] = math.inf
        found.append(scaler.unscale(grads, comm if sharded else None))
        scaler.update(found[-1])
        scales.append(scaler.scale)
        if step == 0:
            first = [g.tolist() for g in grads]
    return first, found, scales


def plain_run_until_deadline(late):
    """Return how often a plain run printed its loss, where one rank's clock says stop at once."""
    comm = Communicator()
    limit = 0.0 if comm.rank == late else math.inf
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        train_plain(Config(steps=3, global_batch=24, max_seconds=limit), comm)
    return printed.getvalue().count("loss=")


def load_where_one_rank_sees_no_file(folder, blind_rank):
    comm = Communicator()
    path = folder / "state.pt"
    save(path, Trainer(SMALL, comm), comm)
    resumed = Trainer(SMALL, comm)
    seen = BlindPath(path) if comm.rank == blind_rank else path
    return load(seen, resumed, comm)


class BlindPath:
    """A path whose file this rank does not see."""

    def __init__(self, path):
        self.path = path

    def exists(self):
        return False

    def __fspath__(self):
        return str(self.path)


def answers():
    comm = Communicator()
    flags = [comm.rank == 1, False, comm.rank == 0, True]
    return [any_rank(f, comm) for f in flags], [as_rank0_says(f, comm) for f in flags]


def run_over_a_damaged_sample(damaged):
    rows = []
    trainer = Trainer(with_options(steps=12, damaged=damaged), Communicator())
    update = trainer.train_step

    def train_step(window):
        row = update(window)
        met = any(damaged in batch.ids for batch in window)
        rows.append((met, row["skipped"]))
        return row

    trainer.train_step = train_step
    trainer.train()
    return rows, [p.detach().clone() for p in trainer.module.parameters()]


def run_joined(folder, world_options):
    config = with_options(uneven="join", steps=100, metrics=folder, norm="sync", **world_options)
    trainer = Trainer(config, Communicator())
    trainer.train()
    return trainer.step


def equal_weights(ranks):
    return all(
        torch.equal(a, b) and bool(a.isfinite().all())
        for weights in ranks
        for a, b in zip(weights, ranks[0], strict=True)
    )


@pytest.mark.parametrize("loss_scale", [0.0, 1024.0], ids=["unscaled", "scaled"])
@pytest.mark.parametrize("rank", [0, 1])
def test_a_loss_that_is_not_finite_on_one_rank_skips_the_step_on_all(run_ranks, rank, loss_scale):
    args = (with_options(zero1=rank == 1, loss_scale=loss_scale), {"nan_on": rank})
    ranks = run_ranks(disturbed_run, world_size=2, args=args)
    for rows, *_ in ranks:
        assert [skipped for skipped, _ in rows] == [False, False, True, False, False, False]
        assert {scale for _, scale in rows} == {loss_scale or 1.0}
    assert equal_weights([weights for _, weights, *_ in ranks])
    assert len({calls for *_, calls in ranks}) == 1


def test_a_damaged_sample_costs_one_step_of_each_epoch_on_all_ranks(run_ranks):
    ranks = run_ranks(run_over_a_damaged_sample, world_size=2, args=(5,))
    met = [any(rows[step][0] for rows, _ in ranks) for step in range(12)]
    assert sum(met) == 2
    for rows, _ in ranks:
        assert [skipped for _, skipped in rows] == met
    assert equal_weights([weights for _, weights in ranks])


def test_the_damaged_sample_is_the_one_asked_for():
    for damaged in (-1, 0, 7):
        train, _ = load_data(Config(damaged=damaged), comm=None)
        broken = np.isnan(train.images.numpy()).any(1).nonzero()[0].tolist()
        assert broken == ([damaged] if damaged >= 0 else [])
        assert damaged < 0 or train.labels[damaged] != NO_LABEL


@pytest.mark.parametrize("rank", [0, 1])
def test_an_overflow_in_one_shard_skips_the_step_on_all(run_ranks, rank):
    args = (with_options(zero1=True, loss_scale=1024.0), {"overflow_on": rank})
    ranks = run_ranks(disturbed_run, world_size=2, args=args)
    for rows, *_ in ranks:
        assert [skipped for skipped, _ in rows] == [False, False, True, False, False, False]
        assert [scale for _, scale in rows] == [1024.0] * 2 + [512.0] * 4
    assert equal_weights([weights for _, weights, *_ in ranks])


def test_unscaled_gradients_and_skips_don_t_depend_on_the_rank(run_ranks):
    for scale in (1.0, 1024.0):
        for first, found, scales in run_ranks(unscaled, world_size=3, args=(scale, 1, True)):
            assert first == [[6.0] * 2, [-2.0] * 3]
            assert found == [False, False, True, False]
            assert [s / scale for s in scales] == [1.0, 2.0, 1.0, 1.0]
    for rank, (_, found, _) in enumerate(run_ranks(unscaled, 3, args=(8.0, 1, False))):
        assert found[2] == (rank == 1)  # replicated gradients need no agreement


def test_a_scaler_that_is_off_changes_nothing_and_asks_nobody(run_ranks):
    for rank, (first, found, scales) in enumerate(run_ranks(unscaled, 2, args=(0.0, 1, True))):
        assert first == [[0.0] * 2, [0.0] * 3], rank
        assert found == [False] * 4
        assert scales == [1.0] * 4


def test_weights_don_t_depend_on_the_loss_scale(run_ranks):
    runs = []
    for loss_scale in (1.0, 2.0**13):
        config = with_options(loss_scale=loss_scale, clip=0.4)
        runs.append(run_ranks(disturbed_run, world_size=2, args=(config, {}))[0][1])
    assert equal_weights(runs)  # a power of two changes no bit


@pytest.mark.parametrize("voter", [0, 1])
def test_all_ranks_stop_when_one_votes_to_stop(run_ranks, voter):
    assert run_ranks(run_with_votes, world_size=2, args=(voter,)) == [2, 2]


def test_early_stopping_waits_for_patience_evaluations_without_improvement():
    rule = EarlyStopping(patience=2)
    votes = [rule.votes_to_stop(loss) for loss in (3.0, 2.0, 2.0, 1.9, 1.9, 2.1)]
    assert votes == [False, False, False, False, False, True]
    assert not any(EarlyStopping(0).votes_to_stop(loss) for loss in (1.0, 2.0, 3.0))


def test_all_ranks_stop_when_the_loss_of_one_shard_stops_improving(run_ranks):
    losses = [3.0, 2.0, 1.0, 0.9, 0.8]
    shards = [losses, [3.0, 2.0, 2.1, 2.2, 2.3]]
    found = [
        step
        for step, *_ in run_ranks(run_with_scores, 2, args=(losses, shards), kwargs={"patience": 2})
    ]
    assert found == [3, 3]


def test_the_clock_of_rank_zero_decides_for_all(run_ranks):
    assert run_ranks(run_until_deadline, world_size=2, args=(0,)) == [1, 1]
    assert run_ranks(run_until_deadline, world_size=2, args=(1,)) == [6, 6]


def test_in_a_plain_run_the_clock_of_rank_zero_decides_for_all(run_ranks):
    assert run_ranks(plain_run_until_deadline, world_size=2, args=(0,)) == [2, 2]
    assert run_ranks(plain_run_until_deadline, world_size=2, args=(1,)) == [4, 4]


def test_the_best_step_is_that_of_the_loss_over_all_ranks(run_ranks):
    losses = [3.0, 1.0, 2.0, 2.5]
    shards = [[1.0, 2.0, 3.0, 4.0], [3.0, 2.0, 1.0, 0.5]]
    ranks = run_ranks(run_with_scores, world_size=2, args=(losses, shards))
    assert [best for _, best, _ in ranks] == [1, 1]


def test_the_rate_follows_the_loss_over_all_ranks(run_ranks):
    losses = [3.0, 2.0, 2.5, 1.0]
    shards = [[1.0, 2.0, 3.0, 4.0], [3.0, 2.0, 1.0, 0.5]]
    ranks = run_ranks(run_with_scores, 2, args=(losses, shards), kwargs={"plateau": 1})
    assert [factor for *_, factor in ranks] == [0.5, 0.5]


def test_whether_there_is_a_checkpoint_rank_zero_decides(run_ranks, tmp_path):
    args = (tmp_path, 1)
    assert run_ranks(load_where_one_rank_sees_no_file, world_size=2, args=args) == [True, True]
    args = (tmp_path, 0)
    assert run_ranks(load_where_one_rank_sees_no_file, world_size=2, args=args) == [False, False]


def test_shared_answers_are_those_of_any_rank_or_of_rank_zero(run_ranks):
    for found in run_ranks(answers, world_size=3):
        assert found == ([True, False, True, True], [False, False, True, True])


def test_ranks_with_fewer_samples_make_as_many_calls(run_ranks, tmp_path):
    options = {"num_train": 37, "accumulation": 2, "zero1": True, "micro_batch": 3}
    steps = run_ranks(run_joined, world_size=3, args=(tmp_path, options))
    files = [tmp_path / f"rank{rank}.jsonl" for rank in range(3)]
    rows = [[json.loads(line) for line in file.read_text().splitlines()] for file in files]
    # 13, 12 and 12 samples, 6 in a step: rank 0 has a third step, the others have nothing for it
    assert steps == [6, 6, 6]
    calls = [[row.get("num_collectives") for row in of_rank] for of_rank in rows]
    assert calls[1] == calls[0]
    assert calls[2] == calls[0]
    assert [of_rank[-1]["num_reads"] for of_rank in rows] == [26, 24, 24]
