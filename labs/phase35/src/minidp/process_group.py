"""Joining the process group, and leaving it in every path."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch.distributed as dist

from minidp.allreduce import Communicator


@contextmanager
def process_group(timeout_s: float) -> Iterator[Communicator]:
    """Join the gloo group that ``RANK``, ``WORLD_SIZE`` and ``MASTER_ADDR`` describe.

    Collective: every rank enters; every rank leaves, unless it raises. A rank that raises leaves
    without waiting for its peers, which then see a closed connection.
    """
    dist.init_process_group("gloo", timeout=timedelta(seconds=timeout_s))
    try:
        comm = Communicator()
        yield comm
        # Rank 0 may host the store the others still talk to: nobody leaves before the last one.
        comm.barrier()
    finally:
        dist.destroy_process_group()
