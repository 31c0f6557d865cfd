"""Replicas start equal, buffers included, and stay equal in every parameter."""

from __future__ import annotations

import torch
from minidp.allreduce import Communicator
from minidp.config import Config
from minidp.data_parallel import DataParallel
from minidp.model import DigitClassifier
from minidp.trainer import Trainer
from torch import nn

SMALL = Config(
    sync="overlap", steps=2, num_train=47, num_test=5, micro_batch=2, norm="none", eval_every=0
)


def copy_of(module):
    return {name: value.detach().clone() for name, value in module.state_dict().items()}


def state_before_and_after_wrapping():
    comm = Communicator()
    torch.manual_seed(70 + comm.rank)
    module = DigitClassifier(8, nn.BatchNorm1d)
    module.norm.running_mean.fill_(comm.rank)
    before = copy_of(module)
    calls = comm.num_collectives
    DataParallel(module, comm)
    return before, copy_of(module), comm.num_collectives - calls


def state_of_run(config):
    trainer = Trainer(config, Communicator())
    start = copy_of(trainer.module)
    trainer.train()
    return start, copy_of(trainer.module)


def assert_equal_states(states):
    for state in states[1:]:
        for name, value in state.items():
            assert torch.equal(value, states[0][name]), name


def test_wrapping_gives_every_replica_the_parameters_and_buffers_of_rank_zero(run_ranks):
    ranks = run_ranks(state_before_and_after_wrapping, world_size=3)
    assert not torch.equal(ranks[1][0]["features"], ranks[0][0]["features"])
    assert not torch.equal(ranks[1][0]["head.weight"], ranks[0][0]["head.weight"])
    assert_equal_states([ranks[0][0], *[after for _, after, _ in ranks]])
    tensors = [*DigitClassifier(8, nn.BatchNorm1d).parameters()]
    tensors += [*DigitClassifier(8, nn.BatchNorm1d).buffers()]
    assert {calls for *_, calls in ranks} == {len(tensors)}


def test_replicas_are_equal_at_the_start_and_after_two_steps(run_ranks):
    for world_size in (2, 3):
        ranks = run_ranks(state_of_run, world_size=world_size, args=(SMALL,))
        assert_equal_states([start for start, _ in ranks])
        assert_equal_states([end for _, end in ranks])


def test_training_moves_every_parameter(run_ranks):
    for start, end in run_ranks(state_of_run, world_size=2, args=(SMALL,)):
        still = {name for name in start if torch.equal(start[name], end[name])}
        assert still == {"features"}
