"""The learning rate is a closed form of the optimizer step, however the batch is split."""

from __future__ import annotations

import json
import math

import pytest
from minidp.allreduce import Communicator
from minidp.config import Config
from minidp.schedule import LRSchedule, Plateau, lr_at, scaled_lr
from minidp.trainer import Trainer

BASE = Config(
    sync="overlap", num_train=97, num_test=5, steps=7, warmup=3, eval_every=0, norm="none"
)


def train(config):
    Trainer(config, Communicator()).train()


def rates(run_ranks, folder, world_size, **options):
    config = Config(**{**BASE.__dict__, **options, "metrics": folder})
    run_ranks(train, world_size=world_size, args=(config,))
    files = [folder / f"rank{rank}.jsonl" for rank in range(world_size)]
    rows = [[json.loads(line) for line in file.read_text().splitlines()] for file in files]
    return [[row["lr"] for row in of_rank[1:]] for of_rank in rows]


def closed_form(step, peak, warmup, num_steps):
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * (1 + math.cos(math.pi * (step - warmup) / (num_steps - warmup))) / 2


def test_rate_equals_the_closed_form_whatever_splits_the_global_batch(run_ranks, tmp_path):
    peak = BASE.lr * 12 / 64
    expected = [closed_form(step, peak, 3, 7) for step in range(7)]
    splits = [(1, 12, 1), (2, 2, 3), (3, 2, 2), (4, 1, 3)]
    for world_size, micro_batch, accumulation in splits:
        folder = tmp_path / f"{world_size}-{micro_batch}"
        options = {"micro_batch": micro_batch, "accumulation": accumulation}
        for of_rank in rates(run_ranks, folder, world_size, **options):
            assert of_rank == pytest.approx(expected, rel=1e-12)


def test_rate_grows_linearly_with_the_global_batch():
    assert scaled_lr(0.1, 64, 64) == 0.1
    assert scaled_lr(0.1, 256, 64) == pytest.approx(0.4)


def test_warm_up_ends_at_the_peak_and_the_decay_at_zero():
    shape = {"peak": 0.5, "num_warmup": 4, "num_steps": 20}
    assert lr_at(0, **shape) == pytest.approx(0.125)
    assert lr_at(3, **shape) == lr_at(4, **shape) == 0.5
    assert lr_at(12, **shape) == pytest.approx(0.25)
    assert lr_at(20, **shape) == lr_at(25, **shape) == 0.0


def test_plateau_halves_the_rate_after_patience_and_keeps_it():
    groups = [{}, {}]
    schedule = LRSchedule(groups, peak=1.0, num_warmup=0, num_steps=10**9)
    plateau = Plateau(schedule, patience=2)
    seen = []
    for loss in (1.0, 0.9, 0.9, 0.91, 0.92, 0.9, 0.5):
        plateau.observe(loss)
        schedule.step()
        seen.append([group["lr"] for group in groups])
    expected = [1.0, 1.0, 1.0, 0.5, 0.5, 0.25, 0.25]
    assert seen == [pytest.approx([rate, rate]) for rate in expected]
    plateau.observe(0.6)
    resumed = Plateau(schedule, patience=2)
    resumed.load_state_dict(plateau.state_dict())
    resumed.observe(0.6)
    assert schedule.factor == 0.125


def test_rate_stays_equal_on_all_ranks_through_plateaus(run_ranks, tmp_path):
    options = {"steps": 12, "epochs": 9, "micro_batch": 2, "eval_every": 1, "plateau": 1}
    options |= {"lr": 2.0, "num_test": 7, "momentum": 0.0}
    ranks = rates(run_ranks, tmp_path, 3, **options)
    assert ranks[1] == ranks[0]
    assert ranks[2] == ranks[0]
    peak = 2.0 * 2 * 3 * 3 / 64
    factors = [rate / closed_form(step, peak, 3, 12) for step, rate in enumerate(ranks[0])]
    assert min(factors) < 0.6  # a plateau was found
