"""A run that was stopped and started again is the run that was never stopped, to the last bit."""

from __future__ import annotations

import dataclasses
import itertools
import json
import time

import pytest
import torch
from minidp.allreduce import Communicator
from minidp.checkpoint import CheckpointError, load, load_weights, save, write
from minidp.config import Config
from minidp.ema import EMA
from minidp.train import train_with_restart
from minidp.trainer import Trainer
from torch import nn

# 61 samples on 2 ranks: 31 of each, 6 windows in an epoch. Step 8 lies inside epoch 1.
FULL = Config(
    sync="overlap",
    steps=100,
    epochs=2,
    num_train=61,
    num_test=11,
    micro_batch=2,
    loss_scale=1024.0,
    growth_interval=3,
    eval_every=3,
    warmup=3,
    plateau=1,
    lr=0.4,
)
INSIDE, BOUNDARY = 8, 6


def state_of(trainer):
    return {
        "weights": {n: t.detach().clone() for n, t in trainer.module.state_dict().items()},
        "ema": {n: t.clone() for n, t in trainer.ema.shadow.items()},
        "moments": [s["momentum_buffer"].clone() for s in trainer.optimizer.inner.state.values()],
        "streams": trainer.streams.state_dict(),
        "numbers": (
            trainer.step,
            trainer.epoch,
            trainer.position,
            trainer.scaler.state_dict(),
            trainer.schedule.state_dict(),
            trainer.plateau.state_dict(),
            trainer.early_stopping.state_dict(),
            trainer.ema.num_updates,
            trainer.best_loss,
            trainer.best_step,
        ),
    }


def uninterrupted(config):
    trainer = Trainer(config, Communicator())
    trainer.train()
    return state_of(trainer)


def restarted(config):
    return state_of(train_with_restart(config, Communicator()))


def restart_reads(config):
    return train_with_restart(config, Communicator()).train_data.num_reads


def saved_and_loaded(config, folder, step):
    """Return the state when it was saved, and the state of a fresh trainer that loaded it."""
    comm = Communicator()
    trainer = Trainer(config, comm)
    trainer.train(until=step)
    save(folder / "state.pt", trainer, comm)
    fresh = Trainer(config, comm)
    assert load(folder / "state.pt", fresh, comm)
    return state_of(trainer), state_of(fresh)


def save_only(config, path, step):
    comm = Communicator()
    trainer = Trainer(config, comm)
    trainer.train(until=step)
    save(path, trainer, comm)


def go_on(config, path):
    comm = Communicator()
    trainer = Trainer(config, comm)
    load(path, trainer, comm)
    trainer.train()
    return trainer.step, [p.detach().clone() for p in trainer.module.parameters()]


def weights_after_a_step_of_rate_zero(config, path):
    comm = Communicator()
    trainer = Trainer(config, comm)
    load_weights(path, trainer)
    loaded = [p.detach().clone() for p in trainer.module.parameters()]
    for group in trainer.optimizer.param_groups:
        group["lr"] = 0.0
    for p in trainer.module.parameters():
        p.grad = torch.ones_like(p)
    trainer.optimizer.step()
    trainer.optimizer.wait()
    return loaded, [p.detach().clone() for p in trainer.module.parameters()]


def run_anew_from_weights(config):
    train_with_restart(config, Communicator())
    file = config.metrics / f"rank{Communicator().rank}.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()]


def read_after_slow_save(folder):
    comm = Communicator()
    trainer = Trainer(FULL, comm)
    path = folder / "state.pt"
    save(path, trainer, comm, before_rename=lambda: time.sleep(0.2))  # far longer than reading
    return sorted(torch.load(path, weights_only=True))


def load_error(config, path):
    comm = Communicator()
    with pytest.raises(CheckpointError) as error:
        load(path, Trainer(config, comm), comm)
    return str(error.value)


def rewrite_format(path):
    torch.save({**torch.load(path, weights_only=True), "format": 99}, path)


def averages(decay, num_updates):
    module = nn.Linear(1, 1)
    ema = EMA(module, decay)
    expected = module.weight.detach().clone()
    for n in range(1, num_updates + 1):
        with torch.no_grad():
            module.weight.fill_(float(n))
        ema.update(module)
        keep = min(decay, (1 + n) / (10 + n))
        expected = keep * expected + (1 - keep) * n
    with ema.swapped_into(module):
        inside = float(module.weight.detach())
    return float(ema.shadow["weight"]), float(expected), inside, float(module.weight.detach())


def write_until_killed(path):
    write(path, {"number": 1}, None)

    def killed():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(path, {"number": 2}, killed)
    return torch.load(path, weights_only=True)


def assert_equal(actual, expected, where=""):
    if isinstance(expected, torch.Tensor):
        assert torch.equal(actual, expected), where
    elif isinstance(expected, dict):
        assert actual.keys() == expected.keys(), where
        for key in expected:
            assert_equal(actual[key], expected[key], f"{where} {key}")
    elif isinstance(expected, list | tuple):
        assert len(actual) == len(expected), where
        for i, (a, b) in enumerate(zip(actual, expected, strict=True)):
            assert_equal(a, b, f"{where} {i}")
    else:
        assert actual == expected, where


def rows_of(folder, world_size):
    files = [folder / f"rank{rank}.jsonl" for rank in range(world_size)]
    rows = [[json.loads(line) for line in file.read_text().splitlines()] for file in files]
    counts = {"num_reads", "num_test_reads"}  # of what this process has read itself
    return [[{k: v for k, v in row.items() if k not in counts} for row in r] for r in rows]


@pytest.mark.parametrize(
    ("zero1", "world_size", "uneven"),
    [(False, 2, "pad"), (True, 3, "join")],
    ids=["replicated", "zero1"],
)
def test_a_restarted_run_equals_an_uninterrupted_one(
    run_ranks, tmp_path, zero1, world_size, uneven
):
    folder = tmp_path / "whole"
    folder.mkdir()
    places = {"metrics": folder, "checkpoint": folder / "state.pt"}
    config = dataclasses.replace(FULL, zero1=zero1, uneven=uneven, **places)
    expected = run_ranks(uninterrupted, world_size=world_size, args=(config,))
    places = {"metrics": tmp_path / "parts", "checkpoint": None}
    config = dataclasses.replace(config, restart_at=INSIDE, **places)
    actual = run_ranks(restarted, world_size=world_size, args=(config,))
    assert_equal(actual, expected)
    whole, parts = (rows_of(tmp_path / name, world_size) for name in ("whole", "parts"))
    for of_rank, expected_of_rank in zip(parts, whole, strict=True):
        for row, wanted in itertools.zip_longest(of_rank, expected_of_rank):
            shared = row.keys() & wanted.keys() - {"global_loss"}  # its interval was cut
            assert {k: row[k] for k in shared} == {k: wanted[k] for k in shared}


@pytest.mark.parametrize("zero1", [False, True], ids=["replicated", "zero1"])
def test_loading_restores_every_part_on_every_rank(run_ranks, tmp_path, zero1):
    config = dataclasses.replace(FULL, zero1=zero1)
    ranks = run_ranks(saved_and_loaded, world_size=2, args=(config, tmp_path, INSIDE))
    for saved, loaded in ranks:
        assert_equal(loaded, saved)
        assert all(bool(m.any()) for m in loaded["moments"])
    own = [loaded["streams"]["own"] for _, loaded in ranks]
    assert not torch.equal(own[0], own[1])


def test_a_restarted_run_reads_only_what_is_left(run_ranks):
    config = dataclasses.replace(FULL, restart_at=INSIDE)
    done = (INSIDE - 6) * FULL.micro_batch * FULL.accumulation
    assert run_ranks(restart_reads, world_size=2, args=(config,)) == [31 - done] * 2


def test_other_numbers_of_ranks_can_go_on_between_epochs_only(run_ranks, tmp_path):
    quiet = {"noise": 0.0, "dropout": 0.0, "layer_drop": 0.0, "plateau": 0, "zero1": True}
    quiet |= {"epochs": 4}
    config = dataclasses.replace(FULL, **quiet)
    run_ranks(save_only, world_size=2, args=(config, tmp_path / "end.pt", BOUNDARY))
    for world_size in (1, 4):
        ranks = run_ranks(go_on, world_size=world_size, args=(config, tmp_path / "end.pt"))
        assert all(step > BOUNDARY for step, _ in ranks)
        for _, weights in ranks:
            assert_equal(weights, ranks[0][1])
    run_ranks(save_only, world_size=2, args=(config, tmp_path / "inside.pt", INSIDE))
    for message in run_ranks(load_error, world_size=3, args=(config, tmp_path / "inside.pt")):
        assert "saved inside epoch 1 by 2 ranks" in message


def test_another_format_is_refused(run_ranks, tmp_path):
    path = tmp_path / "state.pt"
    run_ranks(save_only, world_size=1, args=(FULL, path, 1))
    run_ranks(rewrite_format, world_size=1, args=(path,))
    (message,) = run_ranks(load_error, world_size=1, args=(FULL, path))
    assert "has format 99" in message


def test_loaded_weights_survive_a_step_of_rate_zero(run_ranks, tmp_path):
    for zero1 in (False, True):
        config = dataclasses.replace(FULL, zero1=zero1)
        path = tmp_path / f"{zero1}.pt"
        run_ranks(save_only, world_size=2, args=(config, path, 2))
        args = (config, path)
        ranks = run_ranks(weights_after_a_step_of_rate_zero, world_size=2, args=args)
        for loaded, after in ranks:
            assert_equal(after, loaded)
            assert_equal(loaded, ranks[0][0])


def test_a_new_run_begins_with_the_loss_of_the_weights_it_was_given(run_ranks, tmp_path):
    config = dataclasses.replace(FULL, steps=6, restart_at=3, weights_only=True, metrics=tmp_path)
    for rows in run_ranks(run_anew_from_weights, world_size=2, args=(config,)):
        assert [row["step"] for row in rows] == [*range(4), *range(7)]
        saved, begun = rows[3], rows[4]
        assert begun["eval_loss"] == begun["ema_loss"] == saved["eval_loss"]
        assert [row.get("lr") for row in rows[5:8]] == [row.get("lr") for row in rows[1:4]]


def test_every_rank_can_read_the_file_when_save_returns(run_ranks, tmp_path):
    for keys in run_ranks(read_after_slow_save, world_size=2, args=(tmp_path,)):
        assert {"model", "optimizer", "streams"} < set(keys)


def test_a_kill_during_writing_leaves_the_old_file(run_ranks, tmp_path):
    (state,) = run_ranks(write_until_killed, world_size=1, args=(tmp_path / "state.pt",))
    assert state == {"number": 1}


def test_the_average_warms_up_and_is_only_lent(run_ranks):
    for decay, num_updates in ((0.98, 3), (0.3, 8)):
        ((shadow, expected, inside, after),) = run_ranks(averages, 1, args=(decay, num_updates))
        assert shadow == pytest.approx(expected, rel=1e-6)
        assert inside == pytest.approx(expected, rel=1e-6)
        assert after == num_updates
