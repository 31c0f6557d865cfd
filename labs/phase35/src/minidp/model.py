"""The model: a two-layer classifier, and the state that replicas share at the start."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from minidp.allreduce import Communicator


class DigitClassifier(nn.Module):
    """64 pixels to 10 classes."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))

    def forward(self, images: Tensor) -> Tensor:
        """Map images (n, 64) to logits (n, 10)."""
        return self.layers(images)


@torch.no_grad()
def broadcast_state(model: nn.Module, comm: Communicator) -> None:
    """Give every replica rank 0's parameters and buffers.

    Collective: every rank, once before training; one broadcast for each tensor, in the order in
    which the model registered them.
    """
    for tensor in (*model.parameters(), *model.buffers()):
        comm.broadcast(tensor)
