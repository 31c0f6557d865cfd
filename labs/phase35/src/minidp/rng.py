"""Two streams of random numbers: one that all ranks draw alike, one that is each rank's own.

Whatever decides which collectives run must come from the shared stream, and every rank must draw
from it equally often. Noise must come from the rank's own: equal noise is no noise on average.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


class RandomStreams:
    """The generators ``shared`` and ``own``."""

    def __init__(self) -> None:
        self.shared = torch.Generator()
        self.own = torch.Generator()

    def seed(self, seed: int, rank: int) -> None:
        """Start both streams; ranks agree on ``shared`` and differ in ``own``."""
        self.shared.manual_seed(seed)
        self.own.manual_seed(seed + 1 + rank)

    def state_dict(self) -> dict[str, Tensor]:
        """Return where this rank's streams are; every rank must keep its own."""
        return {"shared": self.shared.get_state(), "own": self.own.get_state()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Continue both streams where ``state`` was taken."""
        self.shared.set_state(state["shared"])
        self.own.set_state(state["own"])


def pixel_noise(shape: tuple[int, ...], *, seed: int, epoch: int, rank: int, index: int) -> Tensor:
    """Return normal noise for a rank's micro-batch ``index`` of an epoch: (shape) float32.

    The stream depends on nothing but its arguments, so that whichever worker prepares the
    micro-batch, and whether or not the run was resumed, the noise is the same.
    """
    rng = np.random.default_rng([seed, epoch, rank, index])
    return torch.from_numpy(rng.standard_normal(shape, dtype=np.float32))


def dropout(x: Tensor, p: float, training: bool, generator: torch.Generator) -> Tensor:
    """Zero each element with probability ``p`` in training, and scale the rest up.

    Srivastava et al., Dropout, JMLR 15 (2014).
    """
    if not training or p == 0:
        return x
    keep = torch.rand(x.shape, generator=generator) >= p
    return x * keep / (1 - p)
