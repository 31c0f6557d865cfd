"""Decisions that all ranks must take alike, because collectives depend on them."""

from __future__ import annotations

import math

import torch

from minidp.allreduce import Communicator


def any_rank(flag: bool, comm: Communicator) -> bool:
    """Return whether ``flag`` is true on at least one rank.

    Collective: every rank. One maximum.
    """
    return bool(comm.all_reduce_max(torch.tensor(float(flag))))


def as_rank0_says(flag: bool, comm: Communicator) -> bool:
    """Return rank 0's ``flag``: for what ranks may see differently, a clock or a file system.

    Collective: every rank. One broadcast.
    """
    return bool(comm.broadcast(torch.tensor(float(flag))))


class EarlyStopping:
    """Votes to stop when a loss has not improved ``patience`` times in a row; 0: never."""

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.best, self.num_bad = math.inf, 0

    def votes_to_stop(self, loss: float) -> bool:
        """Take note of a loss, and vote."""
        self.num_bad = 0 if loss < self.best else self.num_bad + 1
        self.best = min(self.best, loss)
        return bool(self.patience) and self.num_bad >= self.patience

    def state_dict(self) -> dict[str, float]:
        """Return the best loss and how long ago it was."""
        return {"best": self.best, "num_bad": self.num_bad}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Go on from a saved state."""
        self.best, self.num_bad = state["best"], int(state["num_bad"])
