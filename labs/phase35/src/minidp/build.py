"""From a config to the parts that a run is made of."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from minidp.allreduce import Communicator, Handle
from minidp.config import Config
from minidp.dataloader import DIGITS, Digits, hide_labels, load_digits
from minidp.loss import NO_LABEL
from minidp.model import DigitClassifier
from minidp.node_groups import TwoLevel
from minidp.process_group import rank0_first
from minidp.ring import ring_all_reduce
from minidp.rng import RandomStreams
from minidp.sync_batchnorm import SyncBatchNorm


def load_data(config: Config, comm: Communicator) -> tuple[Digits, Digits]:
    """Return the training and the test samples.

    Collective: every rank. With ``config.cache`` rank 0 parses the file and the others read what
    it left there. With ``config.prepare_s`` they wait that long for rank 0 first.
    """
    if config.prepare_s:
        rank0_first(comm, lambda: time.sleep(config.prepare_s))
    if config.cache is None:
        images, labels = load_digits(DIGITS)
    else:
        parsed = config.cache / "digits.pt"
        rank0_first(comm, lambda: torch.save(load_digits(DIGITS), parsed))
        images, labels = torch.load(parsed, weights_only=True)
    train, test = slice(config.num_train), slice(len(labels) - config.num_test, None)
    known = hide_labels(labels[train], config.unlabelled, NO_LABEL, config.seed)
    if config.damaged >= 0:
        images[config.damaged] = math.nan
        known[config.damaged] = labels[config.damaged]  # or no loss would show the damage
    return Digits(images[train], known), Digits(images[test], labels[test])


def make_model(config: Config, comm: Communicator, streams: RandomStreams) -> DigitClassifier:
    """Return this rank's replica, with the normalisation that the config names.

    Collective: every rank. Statistics get a group of their own: one rank may send off a bucket of
    gradients before the statistics' backward, and another, which uses other layers, after it.
    """
    statistics = comm.duplicate()
    norms: dict[str, Callable[[int], nn.Module] | None] = {
        "none": None,
        "local": nn.BatchNorm1d,
        "sync": lambda width: SyncBatchNorm(width, statistics),
    }
    model = DigitClassifier(
        config.width, norms[config.norm], streams, config.dropout, config.layer_drop
    )
    return model.to(getattr(torch, config.param_dtype))


def make_start_sum(config: Config, comm: Communicator) -> Callable[[Tensor], Handle]:
    """Return what starts the sum of a bucket over ranks; by hand, it runs when it is waited for.

    Collective: every rank, for two levels.
    """
    if config.all_reduce == "gloo":
        return comm.start_sum
    if config.all_reduce == "ring":
        return lambda flat: Handle(lambda: ring_all_reduce(flat, comm), lambda: None)
    two_levels = TwoLevel(comm, config.ranks_per_node)
    return lambda flat: Handle(lambda: two_levels.all_reduce_sum(flat), lambda: None)
