"""Trains 10 steps in bucket mode; rank 0 saves its first averaged gradient and last parameters.

Run on every rank, with a folder as its argument; used by test_break_35_01.py.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import torch
from minidp.train import main

saved = {}


class SavingSGD(torch.optim.SGD):
    """SGD that remembers the first gradient it was given, and shows its parameters."""

    def step(self, closure=None):
        params = [p for group in self.param_groups for p in group["params"]]
        flat = torch.cat([p.grad.reshape(-1) for p in params])
        saved.setdefault("gradient", flat.numpy().copy())
        loss = super().step(closure)
        saved["parameters"] = torch.cat([p.detach().reshape(-1) for p in params]).numpy().copy()
        return loss


torch.optim.SGD = SavingSGD
folder = Path(sys.argv[1])
main(["--sync", "bucket", "--steps", "10"])
if os.environ["RANK"] == "0":
    for name, array in saved.items():
        np.save(folder / f"{name}.npy", array)
