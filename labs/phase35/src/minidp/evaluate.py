"""Metrics of a whole data set, each rank having scored its share of it.

What adds up (losses, hits, samples) is summed over ranks and divided once, at the end; what does
not add up, such as a perplexity, is computed from those sums.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from minidp.allreduce import Communicator
from minidp.dataloader import Digits, stream_shard

NUM_CLASSES = 10


@dataclass(frozen=True)
class Scores:
    """What an evaluation found; all but ``shard_loss`` are the same on every rank."""

    loss: float  # mean cross-entropy over the data set
    accuracy: float  # 0..1
    perplexity: float  # exp of the loss
    f1: float  # mean over the classes, 0..1
    shard_loss: float  # mean cross-entropy over this rank's share


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Switch a module to evaluation without gradients, and back to the mode it was in."""
    was_training = module.training
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        module.train(was_training)


def score_shard(
    module: nn.Module, data: Digits, comm: Communicator, batch: int, max_batches: int | None
) -> tuple[Tensor, Tensor]:
    """Return this rank's losses and predicted classes, padding included: both (shard,)."""
    losses, classes = [torch.empty(0)], [torch.empty(0, dtype=torch.int64)]
    stream = stream_shard(data, comm.world_size, comm.rank)
    limit = None if max_batches is None else max_batches * batch
    samples = list(islice(stream, limit))
    with evaluating(module):
        for start in range(0, len(samples), batch):
            images = torch.stack([image for image, _ in samples[start : start + batch]])  # (b, 64)
            labels = torch.stack([label for _, label in samples[start : start + batch]])  # (b,)
            logits = module(images)  # (b, 10)
            losses.append(F.cross_entropy(logits, labels, reduction="none"))
            classes.append(logits.argmax(1))
    return torch.cat(losses), torch.cat(classes)


def real_ids(num_samples: int, comm: Communicator) -> Tensor:
    """Return the ids of this rank's samples without padding, in their order: (shard,)."""
    return torch.arange(comm.rank, num_samples, comm.world_size)


def evaluate(
    module: nn.Module,
    data: Digits,
    comm: Communicator,
    batch: int = 32,
    max_batches: int | None = None,
) -> Scores:
    """Score a replica on a data set, or on the first ``max_batches`` of each rank.

    Collective: every rank, with replicas that are equal, buffers included; the module itself, not
    its wrapper. One gathering, two means over ranks.
    """
    losses, classes = score_shard(module, data, comm, batch, max_batches)
    predicted = in_order(classes, data, comm)
    ids = real_ids(len(data), comm)[: len(losses)]
    losses, classes = losses[: len(ids)], classes[: len(ids)]
    hits = (classes == data.labels[ids]).sum()
    loss_sum = comm.all_reduce_mean(losses.double().sum())
    mean_hits, mean_samples = comm.all_reduce_mean(torch.stack([hits, torch.tensor(len(ids))]))
    loss = float(loss_sum / mean_samples)
    shard_loss = float(losses.double().mean()) if len(losses) else math.nan
    accuracy = float(mean_hits / mean_samples)
    f1 = macro_f1(predicted, data.labels[: len(predicted)])
    return Scores(loss, accuracy, math.exp(loss), f1, shard_loss)


def macro_f1(predicted: Tensor, labels: Tensor) -> float:
    """Return the mean of F1 = 2 hits / (predicted + actual) over the classes that occur.

    A class that a rank has never met has no F1 there, and F1 is no mean over samples: it needs all
    predictions (n,) and labels (n,) together.
    """
    pairs = torch.bincount(labels * NUM_CLASSES + predicted, minlength=NUM_CLASSES**2)
    confusion = pairs.view(NUM_CLASSES, NUM_CLASSES).double()  # (actual, predicted)
    actual = confusion.sum(1)
    f1 = 2 * confusion.diagonal() / (confusion.sum(0) + actual)  # (classes,)
    return float(f1[actual > 0].mean())


def in_order(classes: Tensor, data: Digits, comm: Communicator) -> Tensor:
    """Return the classes that all ranks predicted, in the data set's order: (num_samples,).

    Collective: every rank, with equally many: (padded shard,). One gathering.
    """
    by_rank = torch.stack(comm.all_gather(classes))  # (world_size, padded shard)
    return by_rank.t().reshape(-1)[: len(data)]


def predict(module: nn.Module, data: Digits, comm: Communicator, batch: int = 32) -> Tensor:
    """Return the predicted class of every sample, in the data set's order: (num_samples,).

    Collective: every rank, as for :func:`evaluate`. One gathering; every rank gets everything.
    """
    _, classes = score_shard(module, data, comm, batch, None)  # (padded shard,)
    return in_order(classes, data, comm)


def misclassified(module: nn.Module, data: Digits, comm: Communicator, batch: int = 32) -> Tensor:
    """Return the ids of the samples that the replica gets wrong, in ascending order.

    Collective: every rank, as for :func:`evaluate`. One gathering of unequal lengths.
    """
    _, classes = score_shard(module, data, comm, batch, None)
    ids = real_ids(len(data), comm)
    wrong = ids[classes[: len(ids)] != data.labels[ids]]
    return torch.cat(comm.all_gather_ragged(wrong)).sort().values
