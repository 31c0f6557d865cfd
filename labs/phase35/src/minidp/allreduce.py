"""The collectives that training uses, on gloo: one thin wrapper, so that calls can be counted.

A collective is an operation that every rank of a group must call, in the same order, with the
same shape and dtype. gloo pairs calls by their order alone and checks neither.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


class Handle:
    """A collective under way. Its tensor holds the result after :meth:`wait`, not before."""

    def __init__(self, finish: Callable[[], Any], on_done: Callable[[], None]) -> None:
        self._finish = finish
        self._on_done = on_done
        self.done = False

    def wait(self) -> None:
        """Block until the result is there; a second call returns at once."""
        if not self.done:
            self.done = True
            self._finish()
            self._on_done()


class Communicator:
    """One rank's view of its process group, with counts of what it has called.

    ``lazy`` starts no asynchronous collective before somebody waits for it: the slowest network
    there is, which makes a result that is read too early wrong every time instead of sometimes.
    ``before`` is called with the name of each operation: a place for a delay.
    """

    def __init__(
        self,
        group: dist.ProcessGroup | None = None,
        *,
        lazy: bool = False,
        before: Callable[[str], None] | None = None,
        parent: Communicator | None = None,
    ) -> None:
        self.group = group
        self.parent = parent
        self.rank = dist.get_rank(group)
        self.world_size = dist.get_world_size(group)
        self.lazy = lazy
        self.before = before
        self.num_collectives = 0
        self.num_serial = 0  # asynchronous ones started while no other was under way
        self.num_outstanding = 0
        self._waiting: deque[Handle] = deque()  # lazy ones, in the order in which they were started
        self.num_bytes_sent = 0  # by `exchange` only: gloo does not say what it sends

    def duplicate(self) -> Communicator:
        """Return a communicator of the same ranks on a group of its own.

        What is called on one is in no order with what is called on the other, so ranks may mix
        the two as they like. Its calls count here too.

        Collective: every rank of the world.
        """
        ranks = dist.get_process_group_ranks(self.group or dist.group.WORLD)
        return Communicator(dist.new_group(ranks), parent=self)

    def count(self, operation: str) -> None:
        """Note that a collective begins."""
        self.num_collectives += 1
        if self.parent is not None:
            self.parent.count(operation)
        if self.before is not None:
            self.before(operation)

    def _start(self, operation: Callable[[bool], dist.Work | None]) -> Handle:
        self.num_serial += self.num_outstanding == 0
        self.num_outstanding += 1

        def done() -> None:
            self.num_outstanding -= 1

        if not self.lazy:
            return Handle(operation(True).wait, done)

        def run_in_order() -> None:
            while self._waiting and self._waiting[0] is not handle:
                self._waiting[0].wait()
            self._waiting.popleft()
            operation(False)

        handle = Handle(run_in_order, done)
        self._waiting.append(handle)
        return handle

    def start_sum(self, tensor: Tensor) -> Handle:
        """Begin to replace ``tensor`` on every rank by the sum over ranks.

        Collective: every rank, same shape and dtype, started and waited for in the same order.
        """
        self.count("all_reduce")
        op = dist.ReduceOp.SUM
        return self._start(lambda go: dist.all_reduce(tensor, op, self.group, async_op=go))

    def start_broadcast(self, tensor: Tensor, src: int) -> Handle:
        """Begin to replace ``tensor`` on every rank by that of group rank ``src``.

        Collective: every rank, same shape and dtype, started and waited for in the same order.
        """
        self.count("broadcast")
        return self._start(
            lambda go: dist.broadcast(tensor, group=self.group, group_src=src, async_op=go)
        )

    def all_reduce_sum(self, tensor: Tensor) -> Tensor:
        """Replace ``tensor`` on every rank by the sum over ranks, and return it.

        Collective: every rank, same shape and dtype. The result is bit-equal on all ranks.
        """
        self.count("all_reduce")
        dist.all_reduce(tensor, op=dist.ReduceOp.SUM, group=self.group)
        return tensor

    def all_reduce_max(self, tensor: Tensor) -> Tensor:
        """Replace ``tensor`` on every rank by the largest value over ranks, and return it.

        Collective: every rank, same shape and dtype.
        """
        self.count("all_reduce")
        dist.all_reduce(tensor, op=dist.ReduceOp.MAX, group=self.group)
        return tensor

    def all_reduce_mean(self, tensor: Tensor) -> Tensor:
        """Return the mean over ranks as float64, whatever the dtype: (same shape).

        Collective: every rank, same shape. A mean; ``tensor`` keeps its value.
        """
        total = self.all_reduce_sum(tensor.to(torch.float64, copy=True))
        return total / self.world_size

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
        self.count("all_gather")
        gathered = [torch.empty_like(tensor) for _ in range(self.world_size)]
        dist.all_gather(gathered, tensor, group=self.group)
        return gathered

    def all_gather_ragged(self, tensor: Tensor) -> list[Tensor]:
        """Return the 1-D tensors of all ranks, in rank order; their lengths may differ.

        Collective: every rank, same dtype. Two operations: the lengths, then the padded tensors.
        """
        lengths = [int(n) for n in self.all_gather(torch.tensor([tensor.numel()]))]
        padded = tensor.new_zeros(max(lengths))  # (longest,)
        padded[: tensor.numel()] = tensor
        gathered = self.all_gather(padded)
        return [row[:length] for row, length in zip(gathered, lengths, strict=True)]

    def all_gather_object(self, value: object) -> list[Any]:
        """Return the picklable values of all ranks, in rank order.

        Collective: every rank.
        """
        self.count("all_gather_object")
        gathered: list[Any] = [None] * self.world_size
        dist.all_gather_object(gathered, value, group=self.group)
        return gathered

    def broadcast(self, tensor: Tensor, src: int = 0) -> Tensor:
        """Replace ``tensor`` on every rank by that of group rank ``src``, and return it.

        Collective: every rank, same shape and dtype.
        """
        self.count("broadcast")
        dist.broadcast(tensor, group_src=src, group=self.group)
        return tensor

    def barrier(self) -> None:
        """Return once every rank has called.

        Collective: every rank.
        """
        self.count("barrier")
        dist.barrier(group=self.group)

    def exchange(self, outgoing: Tensor, dst: int, incoming: Tensor, src: int) -> None:
        """Send one tensor to rank ``dst`` while receiving another from rank ``src``.

        Both sides must know the sizes. Empty tensors don't travel.
        """
        self.num_bytes_sent += outgoing.numel() * outgoing.element_size()
        sent = dist.isend(outgoing, group_dst=dst, group=self.group) if outgoing.numel() else None
        if incoming.numel():
            dist.recv(incoming, group_src=src, group=self.group)
        if sent is not None:
            sent.wait()
