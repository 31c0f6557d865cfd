"""The model: small, with one of each thing that makes data parallelism interesting.

Normalisation over the batch, two branches that a batch may not use at all, a pair of layers that
share one weight, a block that is skipped at random, dropout, and a buffer with random content.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from minidp.allreduce import Communicator
from minidp.rng import RandomStreams, dropout

BOLD = 0.305  # mean ink above which an image is bold: about half of the digits


class DigitClassifier(nn.Module):
    """64 pixels to 10 classes.

    Args:
        width: size of the hidden layers.
        norm: makes the normalisation layer from the width; without it there is none.
        streams: where random decisions come from; needed where a probability is not zero.
        dropout: probability that a hidden value is dropped, drawn from the rank's own stream.
        layer_drop: probability that the block is skipped, drawn from the shared stream.
    """

    def __init__(
        self,
        width: int = 32,
        norm: Callable[[int], nn.Module] | None = None,
        streams: RandomStreams | None = None,
        dropout: float = 0.0,
        layer_drop: float = 0.0,
    ) -> None:
        super().__init__()
        self.streams, self.dropout, self.layer_drop = streams, dropout, layer_drop
        # Random features beside the learned ones: Rahimi and Recht (2007).
        self.register_buffer("features", torch.randn(64, width) / 8)
        self.embed = nn.Linear(64, width)
        self.norm = norm(width) if norm else nn.Identity()
        self.light = nn.Linear(width, width)
        self.bold = nn.Linear(width, width)
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.second.weight = self.first.weight
        self.head = nn.Linear(width, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Map images (n, 64) to logits (n, 10) float32; inside, the dtype is the weights'."""
        images = images.to(self.features.dtype)
        h = F.relu(self.norm(self.embed(images) + images @ self.features))  # (n, width)
        h = h + self.experts(images, h)
        if not self.skips_block():
            h = h + F.relu(self.second(F.relu(self.first(h))))
        if self.streams is not None:
            h = dropout(h, self.dropout, self.training, self.streams.own)
        return self.head(h).float()

    def experts(self, images: Tensor, h: Tensor) -> Tensor:
        """Send each row through the expert for its ink; the one with more rows goes first."""
        is_bold = images.mean(1) > BOLD  # (n,)
        routes = [(self.light, ~is_bold), (self.bold, is_bold)]
        routes.sort(key=lambda route: -int(route[1].sum()))
        out = torch.zeros_like(h)
        for expert, rows in routes:
            if rows.any():
                out = out.index_add(0, rows.nonzero()[:, 0], F.relu(expert(h[rows])))
        return out

    def skips_block(self) -> bool:
        """Stochastic depth: Huang et al. (2016). The same answer on all ranks."""
        if not self.training or self.layer_drop == 0 or self.streams is None:
            return False
        return bool(torch.rand((), generator=self.streams.shared) < self.layer_drop)

    def replace_head(self) -> None:
        """Put a fresh last layer in, zero, so that training starts at a loss of ln 10."""
        old = self.head
        self.head = nn.Linear(old.in_features, old.out_features, dtype=old.weight.dtype)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)


@torch.no_grad()
def broadcast_state(model: nn.Module, comm: Communicator) -> None:
    """Give every replica rank 0's parameters and buffers.

    Collective: every rank, once before training; one broadcast for each tensor, in the order in
    which the model registered them.
    """
    for tensor in (*model.parameters(), *model.buffers()):
        comm.broadcast(tensor)
