"""Which samples a rank sees in an epoch, in which order, and how they fall into steps.

All of this is pure. Every rank shuffles the whole data set alike and takes every ``world_size``-th
sample, as torch's ``DistributedSampler`` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

UNEVEN = ("pad", "drop", "join")


class ShardedSampler:
    """Sample ids of one rank.

    ``uneven`` says what happens when the world size does not divide the data set: ``pad`` repeats
    the first samples of the epoch at its end, ``drop`` leaves the last ones out, and ``join``
    leaves the ranks with unequal numbers of samples.
    """

    def __init__(
        self, num_samples: int, world_size: int, rank: int, seed: int = 0, uneven: str = "pad"
    ) -> None:
        if uneven not in UNEVEN:
            raise ValueError(f"uneven is {uneven!r}: use one of {', '.join(UNEVEN)}")
        self.num_samples, self.world_size, self.rank = num_samples, world_size, rank
        self.seed, self.uneven = seed, uneven
        self.epoch, self.start = 0, 0

    def set_epoch(self, epoch: int, start: int = 0) -> None:
        """Choose the permutation, and how many of this rank's samples are done already."""
        self.epoch, self.start = epoch, start

    def shard(self) -> Tensor:
        """Return this rank's sample ids that are still to come in this epoch: (left,) int64."""
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(self.num_samples, generator=generator)  # (num_samples,)
        left_over = self.num_samples % self.world_size
        if self.uneven == "pad" and left_over:
            repeats = -(-self.world_size // self.num_samples)
            order = torch.cat([order, order.repeat(repeats)[: self.world_size - left_over]])
        elif self.uneven == "drop":
            order = order[: self.num_samples - left_over]
        order = order[self.start * self.world_size :]
        return order[self.rank :: self.world_size]

    @property
    def num_real(self) -> int:
        """How many of this rank's samples are no padding; padding comes last."""
        return len(range(self.rank, self.num_samples, self.world_size))

    @property
    def longest(self) -> int:
        """How many samples the rank has that has most: the same number on every rank."""
        whole, left_over = divmod(self.num_samples, self.world_size)
        return whole if self.uneven == "drop" or not left_over else whole + 1

    def __iter__(self) -> Iterator[int]:
        """Yield the ids that are still to come in this epoch."""
        return iter(self.shard().tolist())

    def __len__(self) -> int:
        return len(self.shard())


@dataclass(frozen=True)
class MicroBatch:
    """Samples of one forward and backward."""

    ids: Tensor  # (n,) int64
    is_real: Tensor  # (n,) bool; padding must carry no weight
    index: int  # its number in this rank's epoch

    @staticmethod
    def empty() -> MicroBatch:
        """Return one with no samples."""
        return MicroBatch(torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.bool), 0)


def micro_batches(sampler: ShardedSampler, size: int) -> list[MicroBatch]:
    """Cut what is left of the epoch into micro-batches of ``size``; the last may be smaller."""
    ids = torch.tensor(list(sampler), dtype=torch.int64)
    positions = torch.arange(sampler.start, sampler.start + len(ids))
    is_real = positions < sampler.num_real
    return [
        MicroBatch(ids[i : i + size], is_real[i : i + size], (sampler.start + i) // size)
        for i in range(0, len(ids), size)
    ]


def windows(sampler: ShardedSampler, size: int, accumulation: int) -> Iterator[list[MicroBatch]]:
    """Yield the micro-batches of each optimizer step: ``accumulation`` of them, or what is left."""
    batches = micro_batches(sampler, size)
    window: list[MicroBatch] = []
    for i, batch in enumerate(batches):
        window.append(batch)
        if (i + 1) % accumulation == 0 or i + 1 == len(batches):
            yield window
            window = []
