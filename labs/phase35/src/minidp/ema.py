"""An exponential moving average of the weights: Polyak and Juditsky (1992)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


class EMA:
    """Averages of a module's parameters and buffers, in ``shadow``, by name, float32.

    The decay warms up as ``(1 + n) / (10 + n)`` with the number of updates, as in TensorFlow's
    ``ExponentialMovingAverage``: early averages forget the random start.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.decay = decay
        self.num_updates = 0
        self.shadow = {name: _wide(t).clone() for name, t in module.state_dict().items()}

    @torch.no_grad()
    def update(self, module: nn.Module) -> None:
        """Move the averages towards the module, after an optimizer step."""
        self.num_updates += 1
        decay = min(self.decay, (1 + self.num_updates) / (10 + self.num_updates))
        for name, value in module.state_dict().items():
            if value.dtype.is_floating_point:
                self.shadow[name].lerp_(_wide(value), 1 - decay)
            else:
                self.shadow[name].copy_(value)  # a count has no average

    @contextmanager
    def swapped_into(self, module: nn.Module) -> Iterator[None]:
        """Lend the averages to the module, and give it its own values back."""
        own = {name: t.detach().clone() for name, t in module.state_dict().items()}
        module.load_state_dict(self.shadow)
        try:
            yield
        finally:
            module.load_state_dict(own)

    def state_dict(self) -> dict[str, Any]:
        """Return the averages and the count that the decay depends on."""
        return {"shadow": self.shadow, "num_updates": self.num_updates}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.num_updates = state["num_updates"]
        for name, value in state["shadow"].items():
            self.shadow[name].copy_(value)


def _wide(value: Tensor) -> Tensor:
    """Return a value in float32, if it has a fraction at all: bfloat16 can't move by 2 %."""
    return value.detach().float() if value.dtype.is_floating_point else value
