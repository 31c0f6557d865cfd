"""The learning rate as a closed form of the number of optimizer steps."""

from __future__ import annotations

import math
from typing import Any


def scaled_lr(base_lr: float, global_batch: int, reference_batch: int) -> float:
    """Return the peak rate for a batch size: linear scaling, Goyal et al. (2017), section 2.1.

    ``base_lr`` suits ``reference_batch``. The global batch is what one optimizer step averages
    over: all ranks and all micro-batches of the window.
    """
    return base_lr * global_batch / reference_batch


def lr_at(step: int, peak: float, num_warmup: int, num_steps: int) -> float:
    """Return the rate of the update that follows ``step`` finished ones.

    Linear warm-up (Goyal et al., section 2.2) to ``peak``, then half a cosine down to zero
    (Loshchilov and Hutter, SGDR, 2017).
    """
    if step < num_warmup:
        return peak * (step + 1) / num_warmup
    progress = min((step - num_warmup) / max(num_steps - num_warmup, 1), 1.0)
    return peak * (1 + math.cos(math.pi * progress)) / 2


class LRSchedule:
    """Sets the rate in the optimizer's ``param_groups``; :meth:`step` after each update."""

    def __init__(self, param_groups: list[dict[str, Any]], **shape: Any) -> None:
        self.param_groups = param_groups
        self.shape = shape  # peak, num_warmup, num_steps
        self.num_steps_done = 0
        self.factor = 1.0  # lowered on a plateau
        self._apply()

    def step(self) -> None:
        """One optimizer step is done."""
        self.num_steps_done += 1
        self._apply()

    def _apply(self) -> None:
        for group in self.param_groups:
            group["lr"] = self.factor * lr_at(self.num_steps_done, **self.shape)

    def state_dict(self) -> dict[str, float]:
        """Return the position and the plateau's factor."""
        return {"num_steps_done": self.num_steps_done, "factor": self.factor}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Go on from a saved position."""
        self.num_steps_done, self.factor = int(state["num_steps_done"]), state["factor"]
        self._apply()


class Plateau:
    """Halves the rate when the loss it is shown has not improved ``patience`` times in a row.

    Ranks that are shown different losses end with different rates.
    """

    def __init__(self, schedule: LRSchedule, patience: int) -> None:
        self.schedule, self.patience = schedule, patience
        self.best, self.num_bad = math.inf, 0

    def observe(self, loss: float) -> None:
        """Take note of a validation loss."""
        self.num_bad = 0 if loss < self.best else self.num_bad + 1
        self.best = min(self.best, loss)
        if self.patience and self.num_bad >= self.patience:
            self.schedule.factor /= 2
            self.num_bad = 0

    def state_dict(self) -> dict[str, float]:
        """Return the best loss and how long ago it was."""
        return {"best": self.best, "num_bad": self.num_bad}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Go on from a saved state."""
        self.best, self.num_bad = state["best"], int(state["num_bad"])
