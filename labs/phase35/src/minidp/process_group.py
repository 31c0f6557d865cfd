"""Joining the process group, and leaving it in every path."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import torch.distributed as dist

from minidp.allreduce import Communicator


@contextmanager
def process_group(
    timeout_s: float, *, lazy: bool = False, init_method: str = "env://"
) -> Iterator[Communicator]:
    """Join the gloo group that ``RANK``, ``WORLD_SIZE`` and ``MASTER_ADDR`` describe.

    ``timeout_s`` limits each collective, and so also how long one rank may make the others wait.

    Collective: every rank enters; every rank leaves, unless it raises. A rank that raises leaves
    without waiting for its peers, which then see a closed connection.
    """
    dist.init_process_group("gloo", init_method, timeout=timedelta(seconds=timeout_s))
    try:
        comm = Communicator(lazy=lazy)
        yield comm
        # Rank 0 may host the store the others still talk to: nobody leaves before the last one.
        comm.barrier()
    finally:
        dist.destroy_process_group()


def rank0_first(comm: Communicator, prepare: Callable[[], None]) -> None:
    """Run ``prepare`` on rank 0; when this returns, its work is there for every rank.

    Collective: every rank. The others wait in a barrier, as long as the group's timeout lets them.
    """
    if comm.rank == 0:
        prepare()
    comm.barrier()


@contextmanager
def shared_folder(comm: Communicator) -> Iterator[Path]:
    """Lend a new empty folder to all ranks of one machine, and remove it.

    Collective: every rank enters, every rank leaves.
    """
    own = tempfile.TemporaryDirectory(prefix="minidp-") if comm.rank == 0 else None
    try:
        yield Path(comm.all_gather_object(own.name if own else "")[0])
        comm.barrier()
    finally:
        if own is not None:
            own.cleanup()
