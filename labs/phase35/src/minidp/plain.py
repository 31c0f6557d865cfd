"""The plain training loop: one global batch, one shard of it for each rank, one update."""

from __future__ import annotations

import time

import torch
from torch import Tensor
from torch.nn import functional as F

from minidp.allreduce import Communicator
from minidp.config import Config
from minidp.dataloader import NUM_TRAIN, load_digits, plan_micro_batches, shard_indices
from minidp.decisions import as_rank0_says
from minidp.gradient_sync import SYNC_MODES, BatchPlan
from minidp.metrics import MetricsWriter, grad_norm, params_digest, params_sketch, say
from minidp.model import DigitClassifier, broadcast_state


def global_batch_rows(step: int, order: Tensor, global_batch: int) -> Tensor:
    """Return the sample ids of the global batch of ``step`` (1, 2, ...): (global_batch,)."""
    start = (step - 1) * global_batch
    return order[torch.arange(start, start + global_batch) % len(order)]


@torch.no_grad()
def first_losses(
    model: DigitClassifier, images: Tensor, labels: Tensor, comm: Communicator
) -> tuple[Tensor, Tensor]:
    """Return the summed loss of this rank's shard and of the global batch, before any update.

    Collective: every rank. One sum.
    """
    loss_sum = F.cross_entropy(model(images), labels, reduction="sum")
    return loss_sum, comm.all_reduce_sum(loss_sum.clone())


def train_plain(config: Config, comm: Communicator) -> DigitClassifier:
    """Train for ``config.steps`` updates and return this rank's replica.

    Collective: every rank, same config. Each step communicates as its ``--sync`` mode says.

    Raises:
        ValueError: in mode ``micro-batch``, a global batch that does not split evenly.
    """
    plan = BatchPlan(config.global_batch, config.micro_batch)
    if config.sync == "micro-batch":
        plan_micro_batches(plan.global_batch, comm.world_size, plan.micro_batch)
    images, labels = load_digits()
    order = torch.randperm(NUM_TRAIN, generator=torch.Generator().manual_seed(config.seed))
    # Replicas must not agree by chance: each starts from its own seed, then takes rank 0's state.
    torch.manual_seed(config.seed + comm.rank)
    model = DigitClassifier(config.width)
    broadcast_state(model, comm)
    optimizer = torch.optim.SGD(model.parameters(), lr=config.lr, momentum=config.momentum)
    mine = shard_indices(plan.global_batch, comm.world_size, comm.rank)
    deadline = time.monotonic() + config.max_seconds
    with MetricsWriter(config.metrics, comm.rank) as metrics:
        for step in range(config.steps + 1):
            rows = global_batch_rows(max(step, 1), order, plan.global_batch)[mine]  # (shard,)
            calls_before = comm.num_collectives
            stop = False
            if step == 0:
                shard_loss, loss_sum = first_losses(model, images[rows], labels[rows], comm)
            else:
                say(f"[rank={comm.rank}] step {step} starting all-reduce ...")
                optimizer.zero_grad()
                sync = SYNC_MODES[config.sync]
                shard_loss, loss_sum = sync(model, images[rows], labels[rows], plan, comm)
                optimizer.step()
                stop = as_rank0_says(time.monotonic() >= deadline, comm)
            loss = float(shard_loss) / len(rows)
            say(f"[rank={comm.rank}] step {step} loss={loss:.2f}")
            metrics.write(
                step=step,
                loss=loss,
                global_loss=float(loss_sum) / plan.global_batch,
                grad_norm=grad_norm(model),
                params_digest=params_digest(model),
                params_sketch=params_sketch(model),
                num_collectives=comm.num_collectives - calls_before,
                lr=config.lr,
                num_samples=len(rows),
            )
            if stop:
                break
    return model
