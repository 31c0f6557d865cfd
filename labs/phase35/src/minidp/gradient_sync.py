"""Three plain ways to give every rank the gradient of the global batch.

Each takes this rank's shard of a global batch, runs backward, and leaves the averaged gradient in
``parameter.grad``. A shard's loss is summed, not averaged, and divided by the size of the global
batch: so the sum over ranks is the mean over the batch, also when the shards are not equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from minidp.allreduce import Communicator
from minidp.dataloader import plan_micro_batches, shard_sizes


@dataclass(frozen=True)
class BatchPlan:
    """Sizes that every rank knows, in samples."""

    global_batch: int
    micro_batch: int


# (model, images, labels, plan, comm) -> summed loss of this rank's shard, of the global batch
GradientSync = Callable[[nn.Module, Tensor, Tensor, BatchPlan, Communicator], tuple[Tensor, Tensor]]


def flatten_gradients(model: nn.Module) -> Tensor:
    """Return all gradients as one flat tensor (numel,), in parameter order.

    A parameter that this rank's samples did not use counts as zero: the others may have used it.
    """
    return torch.cat(
        [
            p.new_zeros(p.numel()) if p.grad is None else p.grad.reshape(-1)
            for p in model.parameters()
        ]
    )


def write_gradients(model: nn.Module, flat: Tensor) -> None:
    """Let the gradients be views of a flat tensor (numel,)."""
    offset = 0
    for p in model.parameters():
        p.grad = flat[offset : offset + p.numel()].view_as(p)
        offset += p.numel()


def sync_bucket(
    model: nn.Module,
    images: Tensor,  # (shard, 64)
    labels: Tensor,  # (shard,)
    plan: BatchPlan,
    comm: Communicator,
) -> tuple[Tensor, Tensor]:
    """One backward over the whole shard, then one bucket with all gradients and the loss.

    Collective: every rank, once in a step. One sum.
    """
    loss_sum = F.cross_entropy(model(images), labels, reduction="sum")
    (loss_sum / plan.global_batch).backward()
    bucket = torch.cat([flatten_gradients(model), loss_sum.detach().view(1)])  # (numel + 1,)
    comm.all_reduce_sum(bucket)
    write_gradients(model, bucket[:-1])
    return loss_sum.detach(), bucket[-1]


def sync_micro_batch(
    model: nn.Module,
    images: Tensor,  # (shard, 64)
    labels: Tensor,  # (shard,)
    plan: BatchPlan,
    comm: Communicator,
) -> tuple[Tensor, Tensor]:
    """One backward and one all-reduce for each whole micro-batch of the shard.

    Collective: every rank, once in a step. One sum for each micro-batch.
    """
    plan_micro_batches(plan.global_batch, comm.world_size, plan.micro_batch)
    total = torch.zeros(sum(p.numel() for p in model.parameters()) + 1)  # (numel + 1,)
    shard_loss = torch.zeros(())
    for start in range(0, len(labels) - plan.micro_batch + 1, plan.micro_batch):  # drop_last
        rows = slice(start, start + plan.micro_batch)
        model.zero_grad()
        loss_sum = F.cross_entropy(model(images[rows]), labels[rows], reduction="sum")
        (loss_sum / plan.global_batch).backward()
        part = torch.cat([flatten_gradients(model), loss_sum.detach().view(1)])
        shard_loss += loss_sum.detach()
        total += comm.all_reduce_sum(part)
    write_gradients(model, total[:-1])
    return shard_loss, total[-1]


def sync_packed(
    model: nn.Module,
    images: Tensor,  # (shard, 64)
    labels: Tensor,  # (shard,)
    plan: BatchPlan,
    comm: Communicator,
) -> tuple[Tensor, Tensor]:
    """The loss of every sample travels beside the gradients, in one buffer sized as needed.

    Collective: every rank, once in a step. One exchange of sizes, one sum.
    """
    losses = F.cross_entropy(model(images), labels, reduction="none")  # (shard,)
    (losses.sum() / plan.global_batch).backward()
    sizes = shard_sizes(plan.global_batch, comm.world_size)
    padding = torch.zeros(max(sizes) - sizes[comm.rank])  # (0,) or (1,)
    packed = torch.cat([flatten_gradients(model), losses.detach(), padding])
    comm.all_reduce_dynamic(packed)
    num_gradients = packed.numel() - max(sizes)
    write_gradients(model, packed[:num_gradients])
    return losses.detach().sum(), packed[num_gradients:].sum()


SYNC_MODES: dict[str, GradientSync] = {
    "bucket": sync_bucket,
    "micro-batch": sync_micro_batch,
    "packed": sync_packed,
}
