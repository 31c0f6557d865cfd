"""ZeRO stage 1: every rank keeps optimizer state for its shard of the parameters only.

Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models (2020).
Each parameter has one owner. The owner steps on a float32 master copy, then broadcasts the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from minidp.allreduce import Communicator, Handle
from minidp.sync_batchnorm import SyncBatchNorm

State = dict[str, Any]
NORMALISATIONS = (SyncBatchNorm, nn.BatchNorm1d)


def decay_groups(module: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Return two parameter groups: weights decay, biases and normalisation layers don't.

    Each parameter is in one group, once; also one that has two names.
    """
    exempt: set[nn.Parameter] = set()
    for layer in module.modules():
        for name, p in layer.named_parameters(recurse=False):
            if name == "bias" or isinstance(layer, NORMALISATIONS):
                exempt.add(p)
    params = [p for p in module.parameters() if p.requires_grad]
    return [
        {"params": [p for p in params if p not in exempt], "weight_decay": weight_decay},
        {"params": [p for p in params if p in exempt], "weight_decay": 0.0},
    ]


def partition(sizes: Sequence[int], world_size: int) -> list[int]:
    """Return the owner of each item: the largest first, always to the least loaded rank. Pure."""
    load = [0] * world_size
    owners = [0] * len(sizes)
    for item in sorted(range(len(sizes)), key=lambda i: (-sizes[i], i)):
        owners[item] = load.index(min(load))
        load[owners[item]] += sizes[item]
    return owners


class ShardedOptimizer:
    """An optimizer whose state is spread over the ranks; without ``comm``, one that is not.

    Set hyper-parameters in ``param_groups``, as with torch's optimizers.

    Args:
        param_groups: as for torch's optimizers; the order of their parameters is the order in
            which state is saved.
        make_inner: makes the optimizer that does the arithmetic, from its parameter groups.
        comm: the ranks that share the work.
    """

    def __init__(
        self,
        param_groups: list[dict[str, Any]],
        make_inner: Callable[[list[dict[str, Any]]], torch.optim.Optimizer],
        comm: Communicator | None = None,
    ) -> None:
        self.param_groups = param_groups
        self.comm = comm
        self.params = [p for group in param_groups for p in group["params"]]
        rank, world_size = (comm.rank, comm.world_size) if comm else (0, 1)
        owners = partition([p.numel() for p in self.params], world_size)
        self.owner = dict(zip(self.params, owners, strict=True))
        self.owned = [p for p in self.params if self.owner[p] == rank]
        self.masters = {p: p.detach().to(torch.float32, copy=True) for p in self.owned}
        self.inner = make_inner([self._owned_group(group) for group in param_groups])
        self._handles: dict[nn.Parameter, Handle] = {}

    def _owned_group(self, group: dict[str, Any]) -> dict[str, Any]:
        masters = [self.masters[p] for p in group["params"] if p in self.masters]
        return {**group, "params": masters}

    def owned_grads(self) -> list[Tensor]:
        """Return the gradients that this rank's step will read."""
        return [p.grad for p in self.owned if p.grad is not None]

    @torch.no_grad()
    def step(self) -> None:
        """Update every parameter; its new value is complete after :meth:`wait`.

        Collective: every rank, if sharded. One broadcast for each parameter, started in order.
        """
        self.wait()
        for outer, inner in zip(self.param_groups, self.inner.param_groups, strict=True):
            inner.update({key: value for key, value in outer.items() if key != "params"})
        for p, master in self.masters.items():
            master.grad = None if p.grad is None else p.grad.to(torch.float32)
        self.inner.step()
        for p, master in self.masters.items():
            p.copy_(master)
        self._share()

    def _share(self) -> None:
        """Begin to send each parameter from its owner to the others."""
        if self.comm is not None:
            for p in self.params:
                self._handles[p] = self.comm.start_broadcast(p.detach(), self.owner[p])

    def wait(self, params: Iterable[nn.Parameter] | None = None) -> None:
        """Block until these parameters, or all, have arrived from their owners."""
        for p in list(self._handles) if params is None else params:
            if p in self._handles:
                self._handles.pop(p).wait()

    def gather_before_forward(self, module: nn.Module) -> None:
        """Let each layer wait for its own parameters only, just before it runs."""
        for layer in module.modules():
            own = list(layer.parameters(recurse=False))
            if own:
                layer.register_forward_pre_hook(lambda _layer, _inputs, own=own: self.wait(own))

    @torch.no_grad()
    def refresh_masters(self) -> None:
        """Take the parameters' values, after somebody else has written them."""
        for p, master in self.masters.items():
            master.copy_(p)

    def consolidated_state(self) -> dict[int, State]:
        """Return the state of all parameters, by their number in the groups' order.

        Collective: every rank, if sharded. One gathering; every rank gets everything.
        """
        number = {p: i for i, p in enumerate(self.params)}
        mine = {
            number[p]: {"master": master, **self.inner.state.get(master, {})}
            for p, master in self.masters.items()
        }
        shards = self.comm.all_gather_object(mine) if self.comm else [mine]
        return {i: state for shard in shards for i, state in shard.items()}

    @torch.no_grad()
    def load_consolidated_state(self, states: dict[int, State]) -> None:
        """Take what this rank owns now, whoever owned it when it was saved, and share the weights.

        Collective: every rank, if sharded. One broadcast for each parameter.
        """
        for number, p in enumerate(self.params):
            if p in self.masters:
                state = dict(states[number])
                master = self.masters[p]
                master.copy_(state.pop("master"))
                p.copy_(master)
                self.inner.state[master] = {k: _copy(v) for k, v in state.items()}
        self._share()
        self.wait()


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value
