"""The loss of a global batch, when ranks and micro-batches hold unequal numbers of labels.

The loss is the mean over all labelled samples of the window, on all ranks. A mean of means would
give a label more weight the fewer its micro-batch holds.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from minidp.allreduce import Communicator

NO_LABEL = -100


def label_loss_sum(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the sum of cross-entropies: logits (n, 10), labels (n,), NO_LABEL left out."""
    return F.cross_entropy(logits, labels, reduction="sum", ignore_index=NO_LABEL)


def count_labels(window: Sequence[Tensor]) -> int:
    """Return how many samples of a window's micro-batches have a label."""
    return sum(int((labels != NO_LABEL).sum()) for labels in window)


def count_labels_everywhere(window: Sequence[Tensor], comm: Communicator) -> int:
    """Return how many labels the window has on all ranks together, at least 1.

    Collective: every rank, once in a window, before its first backward. One sum.
    """
    total = comm.all_reduce_sum(torch.tensor(count_labels(window)))
    return max(int(total), 1)


def rank_loss(loss_sum: Tensor, num_labels: int, world_size: int) -> Tensor:
    """Return what a rank calls backward on, from the summed loss of one of its micro-batches.

    Gradients are averaged over ranks afterwards. Averaging takes out a factor that the count of
    all ranks' labels has in it already, so it is put back here.
    """
    return loss_sum * world_size / num_labels
