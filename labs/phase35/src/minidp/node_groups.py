"""All-reduce in two levels: inside each node first, then between the nodes.

Ranks are numbered node by node, so that with two ranks on each of two nodes the node groups are
[0, 1] and [2, 3], and the groups between nodes are [0, 2] and [1, 3].
"""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor

from minidp.allreduce import Communicator


def plan_groups(world_size: int, ranks_per_node: int) -> tuple[list[list[int]], list[list[int]]]:
    """Return the ranks of each node, and of each group between nodes. Pure.

    Raises:
        ValueError: the ranks don't fill whole nodes.
    """
    if world_size % ranks_per_node:
        raise ValueError(f"{world_size} ranks don't fill nodes of {ranks_per_node}")
    ranks = range(world_size)
    inside = [list(ranks[i : i + ranks_per_node]) for i in range(0, world_size, ranks_per_node)]
    between = [list(ranks[i::ranks_per_node]) for i in range(ranks_per_node)]
    return inside, between


class TwoLevel:
    """This rank's node group, and its group between nodes."""

    def __init__(self, comm: Communicator, ranks_per_node: int) -> None:
        """Create all groups.

        Collective: every rank of the world creates every group, its own or not, in this order.
        """
        inside, between = plan_groups(comm.world_size, ranks_per_node)
        inside_groups = [dist.new_group(ranks) for ranks in inside]
        between_groups = [dist.new_group(ranks) for ranks in between]
        self.comm = comm
        self.inside = inside_groups[comm.rank // ranks_per_node]
        self.between = between_groups[comm.rank % ranks_per_node]

    def all_reduce_sum(self, tensor: Tensor) -> Tensor:
        """Replace ``tensor`` on every rank by the sum over the world, and return it.

        Collective: every rank, same shape and dtype. Two sums, the node's and then the nodes'.
        """
        for group in (self.inside, self.between):
            self.comm.count("all_reduce")
            dist.all_reduce(tensor, group=group)
        return tensor
