"""A step costs the collectives and the reads that it must cost, and no more."""

from __future__ import annotations

import json

import torch
from minidp.allreduce import Communicator
from minidp.bucket import assign_buckets
from minidp.config import Config
from minidp.data_parallel import DataParallel
from minidp.evaluate import evaluate
from minidp.trainer import Trainer
from torch import nn

SMALL = Config(
    sync="overlap",
    steps=6,
    num_train=83,
    num_test=23,
    micro_batch=3,
    norm="none",
    log_every=3,
    eval_every=0,
)


def run(config):
    trainer = Trainer(config, Communicator())
    trainer.train()
    sizes = [p.numel() for p in reversed(list(trainer.module.parameters()))]
    return len(assign_buckets(sizes, config.bucket_cap)), len(sizes)


def rows_of(run_ranks, folder, config, world_size=2):
    """Return the rows of each rank, the number of buckets, and of parameters."""
    config = Config(**{**config.__dict__, "metrics": folder})
    (counts, *_) = run_ranks(run, world_size=world_size, args=(config,))
    files = [folder / f"rank{rank}.jsonl" for rank in range(world_size)]
    return [[json.loads(line) for line in file.read_text().splitlines()] for file in files], *counts


def collectives_of_each_forward(accumulation, buffers):
    comm = Communicator()
    layers = nn.Sequential(nn.Linear(64, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    model = DataParallel(layers, comm, bucket_cap=100, broadcast_buffers=buffers)
    counts = []
    for i in range(accumulation):
        before = comm.num_collectives
        if i + 1 < accumulation:
            with model.no_sync():
                loss = model(torch.rand(4, 64)).sum()
                after = comm.num_collectives
                loss.backward()
        else:
            loss = model(torch.rand(4, 64)).sum()
            after = comm.num_collectives
            loss.backward()
        counts.append(after - before)
    launched = comm.num_outstanding
    model.finish()
    return counts, launched, comm.num_outstanding, len(model.buckets)


def reads_of_evaluation():
    comm = Communicator()
    trainer = Trainer(SMALL, comm)
    evaluate(trainer.module, trainer.test_data, comm)
    return trainer.test_data.num_reads


def test_a_step_calls_the_collectives_it_needs(run_ranks, tmp_path):
    rows, num_buckets, _ = rows_of(run_ranks, tmp_path, SMALL)
    assert num_buckets > 3
    # labels, buckets, used parameters, finite loss, clock; and the loss once in a log interval
    for of_rank in rows:
        for row in of_rank[1:]:
            reports = row["step"] % SMALL.log_every == 0
            assert row["num_collectives"] == 1 + num_buckets + 1 + 1 + 1 + reports
            assert ("global_loss" in row) == reports


def test_zero1_adds_one_broadcast_for_each_parameter(run_ranks, tmp_path):
    config = Config(**{**SMALL.__dict__, "zero1": True})
    rows, num_buckets, num_params = rows_of(run_ranks, tmp_path, config)
    for row in rows[0][1:]:
        reports = row["step"] % SMALL.log_every == 0
        # and one sum for the norm
        assert row["num_collectives"] == 4 + num_buckets + num_params + 1 + reports


def test_buckets_are_under_way_together(run_ranks, tmp_path):
    rows, num_buckets, _ = rows_of(run_ranks, tmp_path, SMALL)
    for row in rows[0][1:]:
        assert row["num_serial"] == 1 < num_buckets


def test_backward_launches_all_buckets_and_finish_waits_for_all(run_ranks):
    for _, launched, left, num_buckets in run_ranks(
        collectives_of_each_forward, world_size=2, args=(1, False)
    ):
        assert launched == num_buckets > 1
        assert left == 0


def test_buffers_travel_once_in_a_window(run_ranks):
    for counts, *_ in run_ranks(collectives_of_each_forward, world_size=2, args=(3, True)):
        assert counts == [0, 0, 3]  # those of the normalisation, before the last forward
    for counts, *_ in run_ranks(collectives_of_each_forward, world_size=2, args=(3, False)):
        assert counts == [0, 0, 0]


def test_a_rank_reads_the_samples_of_its_steps_only(run_ranks, tmp_path):
    rows, *_ = rows_of(run_ranks, tmp_path, SMALL)
    per_step = SMALL.micro_batch * SMALL.accumulation
    per_epoch = -(-SMALL.num_train // 2)
    expected = [0]
    for step in range(SMALL.steps):
        done = step * per_step % (per_epoch // per_step * per_step + per_step)
        expected.append(expected[-1] + min(per_step, per_epoch - done))
    assert [row["num_reads"] for row in rows[0]] == expected
    # 23 samples and one repeated, half of them here, with the weights and with their average
    assert {row["num_test_reads"] for row in rows[0]} == {24}


def test_evaluation_reads_each_sample_on_one_rank(run_ranks):
    assert run_ranks(reads_of_evaluation, world_size=3) == [8, 8, 8]  # 23, and one repeated
