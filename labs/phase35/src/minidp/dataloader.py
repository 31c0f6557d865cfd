"""The data, and which samples of a global batch belong to which rank.

Every rank can read every sample, and reads its own share only. All of this is pure: it needs a
rank and a world size, not a process group.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

DIGITS = Path(__file__).resolve().parents[2] / "data" / "digits.csv.gz"
NUM_TRAIN = 1433  # a prime: no world size and no batch size divides it


def load_digits(path: Path = DIGITS) -> tuple[Tensor, Tensor]:
    """Return the images (1797, 64) float32 in 0..1 and their classes (1797,) int64."""
    table = np.loadtxt(path, delimiter=",", dtype=np.float32)  # (1797, 65)
    images = torch.from_numpy(table[:, :64] / 16.0)  # (1797, 64)
    return images, torch.from_numpy(table[:, 64].astype(np.int64))


class Digits:
    """Samples by id, with a count of how many were read."""

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        self.images, self.labels = images, labels  # (n, 64), (n,)
        self.num_reads = 0

    def __len__(self) -> int:
        return len(self.labels)

    def read(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return the images (n, 64) and labels (n,) of the samples ``ids`` (n,), or of one id."""
        self.num_reads += ids.numel()
        return self.images[ids], self.labels[ids]


def stream_shard(data: Digits, world_size: int, rank: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield every ``world_size``-th sample of a data set, in its order, from ``rank`` on.

    The stream starts again at its beginning to give every rank equally many: at most
    ``world_size - 1`` samples come twice, at the end.
    """
    num_samples = len(data)
    for position in range(-(-num_samples // world_size) * world_size):
        if position % world_size == rank:
            yield data.read(torch.tensor(position % num_samples))


def hide_labels(labels: Tensor, fraction: float, no_label: int, seed: int) -> Tensor:
    """Return the labels (n,) with a random ``fraction`` of them replaced by ``no_label``.

    So that micro-batches hold unequal numbers of labels, as sequences hold unequal numbers of
    tokens. The same on every rank.
    """
    hidden = torch.rand(labels.shape, generator=torch.Generator().manual_seed(seed)) < fraction
    return labels.masked_fill(hidden, no_label)


def shard_sizes(global_batch: int, world_size: int) -> list[int]:
    """Return how many samples of a global batch each rank gets; the first ranks take the rest."""
    base, extra = divmod(global_batch, world_size)
    return [base + 1 if rank < extra else base for rank in range(world_size)]


def shard_indices(global_batch: int, world_size: int, rank: int) -> Tensor:
    """Return the positions in the global batch that ``rank`` computes on: (shard,) int64.

    The shards of all ranks together are exactly ``0 .. global_batch - 1``, each position once.
    """
    shards = np.array_split(np.arange(global_batch), world_size)
    shard = shards[rank]
    return torch.from_numpy(shard)


def plan_micro_batches(global_batch: int, world_size: int, micro_batch: int) -> int:
    """Return how many micro-batches each rank runs in a step; the same number on every rank.

    Raises:
        ValueError: the shards are not equal, or hold no whole number of micro-batches: some rank
            would then communicate more often than the others, or leave samples out.
    """
    if global_batch % (world_size * micro_batch):
        raise ValueError(
            f"a global batch of {global_batch} does not split into {world_size} equal shards of "
            f"whole micro-batches of {micro_batch}: use a multiple of {world_size * micro_batch}"
        )
    return global_batch // (world_size * micro_batch)
