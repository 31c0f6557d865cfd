"""Ranks with unequal numbers of steps: those that run out go on with empty micro-batches.

So every rank calls every collective of every step, whichever they are, and nobody waits in vain.
An empty micro-batch adds nothing to the loss, to the count that it is divided by, or to the
statistics of the batch.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from minidp.allreduce import Communicator
from minidp.sampler import MicroBatch


def joined(windows: Iterator[list[MicroBatch]], comm: Communicator) -> Iterator[list[MicroBatch]]:
    """Yield this rank's windows, then empty ones, until no rank has any left.

    Collective: every rank, once for each step and once more. One maximum: the number of
    micro-batches of the longest window.
    """
    while True:
        window = next(windows, [])
        longest = int(comm.all_reduce_max(torch.tensor(len(window))))
        if longest == 0:
            return
        yield window + [MicroBatch.empty()] * (longest - len(window))
