"""Batch normalisation over the global batch: the statistics of all ranks' rows together.

Ioffe and Szegedy, Batch Normalization (2015), with its sums taken over ranks. Ranks may hold
different numbers of rows, or none.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from minidp.allreduce import Communicator


def by_channel(x: Tensor) -> Tensor:
    """Return (n, channels, ...) as (channels, rows), float64: sums of squares need the digits."""
    return x.transpose(0, 1).reshape(x.shape[1], -1).double()


class _Normalize(torch.autograd.Function):
    """Collective in forward and in backward: every rank, once each. One sum each."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float, comm: Communicator
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        rows = by_channel(x)  # (c, m)
        count = rows.new_full((1,), rows.shape[1])
        sums = torch.cat([rows.sum(1), (rows * rows).sum(1), count])  # (2c + 1,)
        total, squares, num_rows = comm.all_reduce_sum(sums).split([len(rows), len(rows), 1])
        mean = total / num_rows  # (c,)
        var = (squares / num_rows - mean * mean).clamp(min=0)  # (c,), biased
        inv_std = (var + eps).rsqrt()
        shape = (1, -1, *[1] * (x.dim() - 2))
        x_hat = ((x.double() - mean.view(shape)) * inv_std.view(shape)).to(x.dtype)
        ctx.save_for_backward(x_hat, weight, inv_std, num_rows)
        ctx.comm = comm
        ctx.mark_non_differentiable(mean, var, num_rows)
        return x_hat * weight.view(shape) + bias.view(shape), mean, var, num_rows

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x_hat, weight, inv_std, num_rows = ctx.saved_tensors
        grad_rows = by_channel(grad)  # (c, m)
        d_bias = grad_rows.sum(1)
        d_weight = (grad_rows * by_channel(x_hat)).sum(1)
        sums = torch.cat([d_bias, d_weight])  # (2c,): the parameters' own gradients stay local
        mean_grad, mean_grad_x = (ctx.comm.all_reduce_sum(sums) / num_rows).chunk(2)
        shape = (1, -1, *[1] * (x_hat.dim() - 2))
        scale = (weight.double() * inv_std).view(shape)
        centred = grad.double() - mean_grad.view(shape) - x_hat.double() * mean_grad_x.view(shape)
        dtype = x_hat.dtype
        return (scale * centred).to(dtype), d_weight.to(dtype), d_bias.to(dtype), None, None


class SyncBatchNorm(nn.Module):
    """Normalises (n, channels) or (n, channels, length) over all rows of all ranks."""

    def __init__(
        self, channels: int, comm: Communicator, eps: float = 1e-5, momentum: float = 0.1
    ) -> None:
        super().__init__()
        self.comm, self.eps, self.momentum = comm, eps, momentum
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise; in training with the statistics of this global batch.

        Collective: every rank in training, also with no rows; none in evaluation.
        """
        if not self.training:
            shape = (1, -1, *[1] * (x.dim() - 2))
            scale = self.weight * (self.running_var + self.eps).rsqrt()  # (c,)
            return (x - self.running_mean.view(shape)) * scale.view(shape) + self.bias.view(shape)
        y, mean, var, num_rows = _Normalize.apply(x, self.weight, self.bias, self.eps, self.comm)
        self._update_running(mean, var, num_rows)
        return y

    @torch.no_grad()
    def _update_running(self, mean: Tensor, var: Tensor, num_rows: Tensor) -> None:
        """Bessel's correction, with the rows of all ranks, as a single process would count."""
        unbiased = var * num_rows / (num_rows - 1).clamp(min=1)  # (c,)
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), self.momentum)
        self.running_var.lerp_(unbiased.to(self.running_var.dtype), self.momentum)
