"""Buckets: several gradients in one flat buffer, so that they travel together.

The gradients of a window's micro-batches are added up in it, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from minidp.allreduce import Handle


def assign_buckets(sizes: Sequence[int], cap: int | None) -> list[list[int]]:
    """Return which items share a bucket, in the order given. Pure.

    A bucket closes before it would hold more than ``cap`` elements; an item larger than that gets
    one to itself; ``None`` puts all in one. The last bucket is usually not full.
    """
    buckets: list[list[int]] = []
    room = 0
    for item, size in enumerate(sizes):
        if not buckets or (cap is not None and size > room):
            buckets.append([])
            room = cap or 0
        buckets[-1].append(item)
        room -= size
    return buckets


class Bucket:
    """The gradients of some parameters, one after another in ``buffer`` (numel,)."""

    def __init__(self, params: Sequence[nn.Parameter]) -> None:
        self.buffer = torch.zeros(sum(p.numel() for p in params))  # (numel,)
        self.views: dict[nn.Parameter, Tensor] = {}
        offset = 0
        for p in params:
            self.views[p] = self.buffer[offset : offset + p.numel()].view_as(p)
            offset += p.numel()
        self.used: set[nn.Parameter] = set()  # got a gradient since the last `clear`
        self.ready: set[nn.Parameter] = set()  # got the last gradient of this window
        self.payload: Tensor | None = None  # what travels
        self.handle: Handle | None = None

    @property
    def complete(self) -> bool:
        """Whether every parameter is ready."""
        return len(self.ready) == len(self.views)

    def accumulate(self, p: nn.Parameter) -> None:
        """Move a parameter's fresh gradient into the buffer, onto what is there."""
        self.views[p] += p.grad
        p.grad = None
        self.used.add(p)

    def clear(self) -> None:
        """Forget all gradients: the start of a window."""
        self.buffer.zero_()
        self.used.clear()
