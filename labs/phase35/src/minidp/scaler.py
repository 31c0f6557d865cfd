"""Dynamic loss scaling: Micikevicius et al., Mixed Precision Training (2018), section 3.2.

The loss is multiplied before backward, the gradients are divided before anything reads them. A
step whose gradients are not finite is skipped, by all ranks or by none, and the scale is lowered.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from minidp.allreduce import Communicator


class LossScaler:
    """A power of two, and how many good steps it has seen; a scale of 0 switches it off."""

    def __init__(self, scale: float = 1024.0, growth_interval: int = 200) -> None:
        self.enabled = scale > 0
        self.scale, self.growth_interval = scale or 1.0, growth_interval
        self.num_good = 0

    def unscale(self, grads: Sequence[Tensor], shard_comm: Communicator | None = None) -> bool:
        """Divide the gradients by the scale; return whether any rank saw one that is not finite.

        Collective: every rank if ``shard_comm`` is given: then each passes only a shard of the
        gradients. One maximum. Nothing where the scaler is off.
        """
        if not self.enabled:
            return False
        found = torch.tensor(float(any(not g.isfinite().all() for g in grads)))
        for g in grads:
            g.div_(self.scale)
        if shard_comm is not None:
            shard_comm.all_reduce_max(found)
        return bool(found)

    def update(self, found_inf: bool) -> None:
        """Halve the scale after a bad step; double it after ``growth_interval`` good ones."""
        if not self.enabled:
            return
        if found_inf:
            self.scale /= 2
            self.num_good = 0
            return
        self.num_good += 1
        if self.num_good >= self.growth_interval:
            self.scale *= 2
            self.num_good = 0

    def state_dict(self) -> dict[str, float]:
        """Return the scale and the good steps it has seen."""
        return {"scale": self.scale, "num_good": self.num_good}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Go on from a saved state."""
        self.scale, self.num_good = state["scale"], int(state["num_good"])
