"""Clipping by the global norm: Pascanu, Mikolov and Bengio, On the difficulty of training RNNs."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from minidp.allreduce import Communicator


def global_norm(grads: Sequence[Tensor], shard_comm: Communicator | None = None) -> float:
    """Return the Euclidean norm of all gradients as one vector.

    Without ``shard_comm`` every rank passes all gradients. With it each rank passes a shard of
    them, and no gradient belongs to two ranks.

    Collective: every rank if ``shard_comm`` is given. One sum.
    """
    square = sum((g.double().square().sum() for g in grads), torch.zeros((), dtype=torch.float64))
    if shard_comm is not None:
        shard_comm.all_reduce_sum(square)
    return float(square.sqrt())


def clip_gradients(
    grads: Sequence[Tensor], max_norm: float, shard_comm: Communicator | None = None
) -> float:
    """Scale the gradients so that their global norm is at most ``max_norm``; return it as it was.

    Collective: every rank if ``shard_comm`` is given, see :func:`global_norm`.
    """
    norm = global_norm(grads, shard_comm)
    factor = min(max_norm / (norm + 1e-6), 1.0)  # torch's formula
    for g in grads:
        g.mul_(factor)
    return norm
