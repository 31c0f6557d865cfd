"""The collectives that training uses, on gloo: one thin wrapper, so that calls can be counted.

A collective is an operation that every rank of a group must call, in the same order, with the
same shape and dtype. gloo pairs calls by their order alone and checks neither.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor


class Communicator:
    """One rank's view of its process group, with a count of the collectives it has called."""

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        self.group = group
        self.rank = dist.get_rank(group)
        self.world_size = dist.get_world_size(group)
        self.num_collectives = 0

    def all_reduce_sum(self, tensor: Tensor) -> Tensor:
        """Replace ``tensor`` on every rank by the sum over ranks, and return it.

        Collective: every rank, same shape and dtype. The result is bit-equal on all ranks.
        """
        self.num_collectives += 1
        dist.all_reduce(tensor, op=dist.ReduceOp.SUM, group=self.group)
        return tensor

    def all_reduce_dynamic(self, flat: Tensor) -> Tensor:
        """Like :meth:`all_reduce_sum` for a 1-D tensor whose length only the caller knows.

        Collective: every rank. Two operations: the lengths are compared first, because gloo
        would abort the process or return a plausible wrong sum.

        Raises:
            RuntimeError: the lengths differ; raised on every rank.
        """
        lengths = [int(n) for n in self.all_gather(torch.tensor([flat.numel()]))]
        if len(set(lengths)) > 1:
            brought = ", ".join(f"rank {r} brings {n}" for r, n in enumerate(lengths))
            raise RuntimeError(f"size mismatch: {brought} elements")
        return self.all_reduce_sum(flat)

    def all_gather(self, tensor: Tensor) -> list[Tensor]:
        """Return the tensors of all ranks, in rank order.

        Collective: every rank, same shape and dtype.
        """
        self.num_collectives += 1
        gathered = [torch.empty_like(tensor) for _ in range(self.world_size)]
        dist.all_gather(gathered, tensor, group=self.group)
        return gathered

    def broadcast(self, tensor: Tensor, src: int = 0) -> Tensor:
        """Replace ``tensor`` on every rank by that of group rank ``src``, and return it.

        Collective: every rank, same shape and dtype.
        """
        self.num_collectives += 1
        dist.broadcast(tensor, group_src=src, group=self.group)
        return tensor

    def barrier(self) -> None:
        """Return once every rank has called.

        Collective: every rank.
        """
        self.num_collectives += 1
        dist.barrier(group=self.group)
