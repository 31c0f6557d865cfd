"""The wrapper that keeps replicas together: buckets of gradients travel while backward runs.

    model = DataParallel(module, comm)
    model.zero_grad()
    for micro_batch in window[:-1]:
        with model.no_sync():              # accumulate, don't communicate
            loss_of(model(micro_batch)).backward()
    loss_of(model(window[-1])).backward()  # buckets leave as soon as they are complete
    model.finish()                         # now p.grad is the mean over ranks

The design is that of Li et al., PyTorch Distributed: Experiences on Accelerating Data Parallel
Training, VLDB 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from minidp.allreduce import Communicator, Handle
from minidp.bucket import Bucket, assign_buckets
from minidp.model import broadcast_state


class DataParallel(nn.Module):
    """A replica whose gradients are averaged over ranks, bucket by bucket.

    Collective: every rank constructs it, with a module that registered the same parameters in the
    same order; every replica then has rank 0's state.

    Args:
        module: this rank's replica.
        comm: the ranks that share gradients.
        bucket_cap: elements in a bucket; ``None`` for one bucket.
        comm_dtype: what gradients are rounded to for the journey.
        start_sum: how to sum a flat tensor over ranks; by default gloo, asynchronously.
        broadcast_buffers: whether each synchronising forward first takes rank 0's buffers.
    """

    def __init__(
        self,
        module: nn.Module,
        comm: Communicator,
        *,
        bucket_cap: int | None = 4096,
        comm_dtype: torch.dtype = torch.float32,
        start_sum: Callable[[Tensor], Handle] | None = None,
        broadcast_buffers: bool = False,
    ) -> None:
        super().__init__()
        self.module = module
        self.comm = comm
        self.comm_dtype = comm_dtype
        self.start_sum = start_sum or comm.start_sum
        self.broadcast_buffers = broadcast_buffers
        broadcast_state(module, comm)
        params = [p for p in module.parameters() if p.requires_grad]
        params.reverse()  # backward reaches the last layers first
        groups = assign_buckets([p.numel() for p in params], bucket_cap)
        self.buckets = [Bucket([params[i] for i in group]) for group in groups]
        self._bucket_of = {p: bucket for bucket in self.buckets for p in bucket.views}
        for p in params:
            p.register_post_accumulate_grad_hook(self._on_gradient)
        self._under_way: list[Bucket] = []
        self._syncing = True
        self._armed = False  # between a synchronising forward and `finish`

    def forward(self, *inputs: Any) -> Any:
        """Call the module; outside `no_sync`, the backward that follows communicates.

        Collective: only with ``broadcast_buffers`` and outside `no_sync`.
        """
        if self._armed:  # this window has communicated before: first take in what came of it
            self._collect()
        self._armed = self._syncing and torch.is_grad_enabled()
        if self._syncing:
            for bucket in self.buckets:
                bucket.ready.clear()
            if self.broadcast_buffers:
                self.sync_buffers()
        return self.module(*inputs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Around forward and backward of all micro-batches of a window but the last."""
        self._syncing = False
        try:
            yield
        finally:
            self._syncing = True

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Start a window: no gradients in the parameters, zeros in the buckets."""
        for bucket in self.buckets:
            bucket.clear()
        super().zero_grad(set_to_none)

    def sync_buffers(self) -> None:
        """Take rank 0's buffers.

        Collective: every rank. One broadcast for each buffer.
        """
        for buffer in self.module.buffers():
            self.comm.broadcast(buffer)

    def _on_gradient(self, p: nn.Parameter) -> None:
        bucket = self._bucket_of[p]
        bucket.accumulate(p)
        if self._armed:
            bucket.ready.add(p)
            self._launch_complete()

    def _launch_complete(self, *, rest: bool = False) -> None:
        """Launch buckets whose turn it is: the same order on all ranks, whatever came first.

        With ``rest`` also those that wait for gradients which this backward does not bring.
        """
        for bucket in self.buckets:
            if bucket.handle is None:
                if not (bucket.complete or rest):
                    return
                self._launch(bucket)

    def _launch(self, bucket: Bucket) -> None:
        """Send a bucket off, rounded to the dtype that travels."""
        bucket.buffer /= self.comm.world_size
        bucket.payload = bucket.buffer.to(self.comm_dtype, copy=True)  # (numel,)
        bucket.handle = self.start_sum(bucket.payload)
        self._under_way.append(bucket)

    def finish(self) -> None:
        """Leave the mean over ranks in ``p.grad``; ``None`` where no rank used the parameter.

        Collective: every rank, after the backward of a window's last micro-batch. One sum for
        each bucket, in bucket order, and one for the map of used parameters. A rank on which a
        parameter got no gradient counts as zero.
        """
        if self._armed:
            self._collect()
        for p, bucket in self._bucket_of.items():
            p.grad = bucket.views[p].to(p.dtype) if p in bucket.used else None

    def _collect(self) -> None:
        """Launch what is left, wait for all, and take the means into the buckets.

        Collective: every rank. One sum for each bucket not yet launched, and one maximum.
        """
        self._launch_complete(rest=True)
        self._share_used()
        for bucket in self._under_way:
            bucket.handle.wait()
            bucket.buffer.copy_(bucket.payload)
            bucket.handle = None
        self._under_way.clear()
        self._armed = False

    def _share_used(self) -> None:
        """Let every rank know which parameters got a gradient on any rank.

        Collective: every rank. One maximum.
        """
        flags = torch.tensor([float(p in b.used) for p, b in self._bucket_of.items()])
        self.comm.all_reduce_max(flags)  # (num_params,)
        for (p, bucket), flag in zip(self._bucket_of.items(), flags.tolist(), strict=True):
            if flag:
                bucket.used.add(p)
