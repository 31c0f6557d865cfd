"""A logged loss is the mean over the labels of all ranks since the last report."""

from __future__ import annotations

import contextlib
import io
import json
import re

import pytest
import torch
from minidp.allreduce import Communicator
from minidp.config import Config, parse_args
from minidp.loss import count_labels
from minidp.metrics import LossLog, MetricsWriter, grad_norm, params_digest
from minidp.plain import train_plain
from minidp.trainer import Trainer
from torch import nn

LINE = re.compile(r"^\[rank=(\d+)\] step (\d+)(?: loss=(\d+\.\d\d)| starting all-reduce \.\.\.)$")
SMALL = Config(
    sync="overlap", steps=6, num_train=61, num_test=7, micro_batch=2, log_every=3, eval_every=0
)


class Recorder(Trainer):
    """Keeps the summed loss and the labels of each step."""

    def train_step(self, window):
        row = super().train_step(window)
        masked = [self.train_data.labels[b.ids].masked_fill(~b.is_real, -100) for b in window]
        num_labels = count_labels(masked)
        self.__dict__.setdefault("seen", []).append((row["loss"] * num_labels, num_labels))
        return row


def reports():
    comm = Communicator()
    log = LossLog()
    found = []
    for interval in range(2):
        for step in range(2):
            num_labels = 1 + comm.rank + 3 * step
            log.add(torch.tensor(float(num_labels * (10 * interval + comm.rank))), num_labels)
        found.append(log.report(comm))
    return found


def logged_run(folder):
    config = Config(**{**SMALL.__dict__, "metrics": folder})
    trainer = Recorder(config, Communicator())
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        trainer.train()
    return trainer.seen, printed.getvalue().count("for example")


def plain_run(folder):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        train_plain(Config(steps=2, global_batch=24, metrics=folder), Communicator())
    return printed.getvalue()


def digests():
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(2)
    first, again = params_digest(norm), params_digest(norm)
    norm.running_mean += 1
    with_buffers, without = params_digest(norm), params_digest(norm, buffers=False)
    norm.running_mean += 1
    one, other = (nn.ParameterDict({name: torch.ones(1)}) for name in ("one", "other"))
    return (
        first == again,
        first != with_buffers,
        without == params_digest(norm, buffers=False),
        params_digest(one) != params_digest(other),
    )


def norms():
    module = nn.Linear(2, 1)
    nothing = grad_norm(module)
    module.weight.grad = torch.tensor([[3.0, 0.0]])
    module.bias.grad = torch.tensor([4.0])
    return nothing, grad_norm(module)


def test_reports_are_means_over_the_labels_of_all_ranks(run_ranks):
    for world_size in (2, 4):
        for found in run_ranks(reports, world_size=world_size):
            counts = [(r, 1 + r + 3 * step) for r in range(world_size) for step in range(2)]
            mean = sum(r * n for r, n in counts) / sum(n for _, n in counts)
            assert found == pytest.approx([mean, 10 + mean])


def test_a_run_logs_the_mean_loss_of_each_interval(run_ranks, tmp_path):
    ranks = run_ranks(logged_run, world_size=3, args=(tmp_path,))
    files = [tmp_path / f"rank{rank}.jsonl" for rank in range(3)]
    rows = [[json.loads(line) for line in file.read_text().splitlines()] for file in files]
    assert [row["step"] for row in rows[0]] == list(range(7))
    for start in (0, 3):
        seen = [pair for of_rank, _ in ranks for pair in of_rank[start : start + 3]]
        expected = sum(loss for loss, _ in seen) / sum(n for _, n in seen)
        for of_rank in rows:
            assert of_rank[start + 3]["global_loss"] == pytest.approx(expected, rel=1e-5)
    assert "global_loss" not in rows[0][1]
    assert [examples for _, examples in ranks] == [2, 0, 0]


def test_each_step_prints_one_line_before_and_one_after(run_ranks, tmp_path):
    (printed,) = run_ranks(plain_run, world_size=1, args=(tmp_path,))
    lines = [LINE.match(line) for line in printed.splitlines()]
    found = [(match[2], match[3] is not None) for match in lines]
    assert found == [("0", True), ("1", False), ("1", True), ("2", False), ("2", True)]


def test_rows_are_on_disk_as_soon_as_they_are_written(tmp_path):
    with MetricsWriter(tmp_path / "new", rank=3) as metrics:
        metrics.write(step=0, loss=1.5)
        file = tmp_path / "new" / "rank3.jsonl"
        assert json.loads(file.read_text()) == {"step": 0, "loss": 1.5}
    with MetricsWriter(None, rank=0) as metrics:
        metrics.write(step=0)  # nowhere to write to: nothing happens


def test_digest_and_norm_are_of_everything_they_name(run_ranks):
    assert run_ranks(digests, world_size=1) == [(True, True, True, True)]
    assert run_ranks(norms, world_size=1) == [(0.0, 5.0)]


def test_every_field_of_the_config_is_an_option(tmp_path):
    options = "--sync overlap --zero1 --lr 0.5 --eval-batches 3 --all-reduce ring --metrics"
    config = parse_args([*options.split(), str(tmp_path)])
    assert config == Config(
        sync="overlap", zero1=True, lr=0.5, eval_batches=3, metrics=tmp_path, all_reduce="ring"
    )
    assert parse_args([]) == Config()
