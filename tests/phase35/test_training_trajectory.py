"""A run on several ranks takes the steps that one process takes on the global batches.

The reference is written out here with torch's own parts: DistributedSampler, SGD, BatchNorm,
clip_grad_norm_, and the learning rate as a formula.
"""

from __future__ import annotations

import math

import pytest
import torch
from minidp.allreduce import Communicator
from minidp.config import Config
from minidp.dataloader import hide_labels, load_digits
from minidp.model import DigitClassifier
from minidp.trainer import Trainer
from torch import nn
from torch.utils.data import DistributedSampler

TOLERANCE = 3e-5  # float32 over a dozen steps with momentum

# 47 samples: no world size divides them; the last window of an epoch is a partial one.
QUIET = {"noise": 0.0, "dropout": 0.0, "layer_drop": 0.0, "eval_every": 0}
SMALL = Config(
    sync="overlap", steps=100, num_train=47, num_test=5, micro_batch=3, clip=1.25, warmup=3, **QUIET
)


class Recorder(Trainer):
    """Keeps what each update did."""

    def train_step(self, window):
        row = super().train_step(window)
        self.__dict__.setdefault("rows", []).append(row)
        return row


def run_minidp(config):
    """Return the end and the rows of this rank's run, and those of one process."""
    trainer = Recorder(config, Communicator(lazy=config.lazy_comm))
    trainer.train()
    state = {n: t.detach().clone() for n, t in trainer.module.state_dict().items()}
    rows = [(row["lr"], row["grad_norm"]) for row in trainer.rows]
    return (state, rows), run_reference(config, trainer.comm.world_size)


def ids_of(config, world_size, epoch):
    """Return the sample ids of each rank in one epoch."""
    shards = []
    for rank in range(world_size):
        sampler = DistributedSampler(
            range(config.num_train),
            world_size,
            rank,
            seed=config.seed,
            drop_last=config.uneven == "drop",
        )
        sampler.set_epoch(epoch)
        shard = list(sampler)
        real = len(range(rank, config.num_train, world_size))
        shards.append(shard[:real] if config.uneven == "join" else shard)
    return shards


def learning_rate(step, config, world_size, num_steps):
    peak = config.lr * config.micro_batch * config.accumulation * world_size / 64
    if step < config.warmup:
        return peak * (step + 1) / config.warmup
    done = (step - config.warmup) / (num_steps - config.warmup)
    return peak * (1 + math.cos(math.pi * done)) / 2


def run_reference(config, world_size):
    images, labels = load_digits()
    labels = hide_labels(labels[: config.num_train], config.unlabelled, -100, config.seed)
    torch.manual_seed(config.seed)
    model = DigitClassifier(config.width, {"sync": nn.BatchNorm1d, "none": None}[config.norm])
    model.replace_head()
    optimizer = torch.optim.SGD(
        [
            {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 1e-3},
            {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0},
        ],
        lr=0.0,
        momentum=config.momentum,
    )
    size, rows = config.micro_batch, []
    per_rank = max(len(shard) for shard in ids_of(config, world_size, 0))
    num_steps = config.epochs * -(-per_rank // (size * config.accumulation))
    for epoch in range(config.epochs):
        shards = ids_of(config, world_size, epoch)
        for start in range(0, per_rank, size * config.accumulation):
            optimizer.zero_grad()
            loss_sum, num_labels = 0.0, 0
            for at in range(start, min(start + size * config.accumulation, per_rank), size):
                ids, is_real = [], []  # one micro-batch of each rank, together
                for rank, shard in enumerate(shards):
                    part = range(at, min(at + size, len(shard)))
                    ids += [shard[i] for i in part]
                    is_real += [i * world_size + rank < config.num_train for i in part]
                target = labels[ids].masked_fill(~torch.tensor(is_real), -100)
                logits = model(images[ids])
                loss_sum = loss_sum + nn.functional.cross_entropy(logits, target, reduction="sum")
                num_labels += int((target != -100).sum())
            (loss_sum / num_labels).backward()
            norm = float(nn.utils.clip_grad_norm_(model.parameters(), config.clip))
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(len(rows), config, world_size, num_steps)
            rows.append((optimizer.param_groups[0]["lr"], norm))
            optimizer.step()
    return {n: t.detach().clone() for n, t in model.state_dict().items()}, rows


def with_options(**options):
    return Config(**{**SMALL.__dict__, **options})


CASES = {
    "sync_norm": ((2, 3, 4), SMALL),
    "no_norm": ((3,), with_options(norm="none", clip=0.518)),
    "zero1": ((3,), with_options(zero1=True)),
    "zero1_on_slow_network": (
        (3,),
        with_options(zero1=True, overlap_gather=True, ema_decay=0.0, log_every=100, lazy_comm=True),
    ),
    "ring": ((4,), with_options(all_reduce="ring", loss_scale=2.0**15)),
    "two_levels": ((4,), with_options(all_reduce="two-level")),
    "drop": ((3,), with_options(uneven="drop")),
    "join": ((3,), with_options(uneven="join", accumulation=5)),  # rank 2 has no second window
}


@pytest.mark.parametrize("case", CASES)
def test_run_equals_one_process(run_ranks, case):
    world_sizes, config = CASES[case]
    for world_size in world_sizes:
        ranks = run_ranks(run_minidp, world_size=world_size, args=(config,))
        (first, _), (expected, expected_rows) = ranks[0]
        norms = [norm for _, norm in expected_rows]
        assert min(norms) < config.clip < max(norms)  # clipping strikes in some steps only
        for (state, rows), _ in ranks:
            assert len(rows) == len(expected_rows)
            for (lr, norm), (expected_lr, expected_norm) in zip(rows, expected_rows, strict=True):
                assert lr == pytest.approx(expected_lr, rel=1e-9)
                assert norm == pytest.approx(expected_norm, rel=1e-5)
            for name, value in state.items():
                assert torch.equal(value, first[name]), name
                if value.dtype.is_floating_point:
                    difference = abs(value.numpy() - expected[name].numpy()).max()
                    assert difference < TOLERANCE, name
