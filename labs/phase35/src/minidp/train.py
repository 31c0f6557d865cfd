"""Data-parallel training of the digit classifier.

torchrun --standalone --nproc-per-node 2 -m minidp.train
torchrun --standalone --nproc-per-node 2 -m minidp.train --sync micro-batch --steps 20
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from minidp.allreduce import Communicator
from minidp.dataloader import NUM_TRAIN, load_digits, plan_micro_batches, shard_indices
from minidp.gradient_sync import SYNC_MODES, BatchPlan
from minidp.metrics import MetricsWriter, grad_norm, params_digest
from minidp.model import DigitClassifier, broadcast_state
from minidp.process_group import process_group


@dataclass(frozen=True)
class Config:
    """What the command line says."""

    sync: str = "bucket"
    steps: int = 10
    global_batch: int = 96
    micro_batch: int = 8
    lr: float = 0.1
    momentum: float = 0.9
    seed: int = 35
    timeout_s: float = 1800.0
    max_seconds: float = math.inf
    metrics: Path | None = None


def parse_args(argv: list[str] | None = None) -> Config:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="minidp.train", description=(__doc__ or "").split("\n")[0]
    )
    add = parser.add_argument
    add("--sync", choices=sorted(SYNC_MODES), default=Config.sync)
    add("--steps", type=int, default=Config.steps, help="optimizer updates")
    add("--global-batch", type=int, default=Config.global_batch, help="samples, all ranks together")
    add("--micro-batch", type=int, default=Config.micro_batch, help="for --sync micro-batch")
    add("--lr", type=float, default=Config.lr)
    add("--momentum", type=float, default=Config.momentum)
    add("--seed", type=int, default=Config.seed)
    add("--timeout-s", type=float, default=Config.timeout_s, help="of a collective")
    add("--max-seconds", type=float, default=Config.max_seconds, help="stop after a step then")
    add("--metrics", type=Path, help="folder for rank{rank}.jsonl")
    return Config(**vars(parser.parse_args(argv)))


def global_batch_rows(step: int, order: Tensor, global_batch: int) -> Tensor:
    """Return the sample ids of the global batch of ``step`` (1, 2, ...): (global_batch,)."""
    start = (step - 1) * global_batch
    return order[torch.arange(start, start + global_batch) % len(order)]


def say(line: str) -> None:
    """Print a line in one piece, at once: the ranks share one screen."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


@torch.no_grad()
def first_losses(
    model: DigitClassifier, images: Tensor, labels: Tensor, comm: Communicator
) -> tuple[Tensor, Tensor]:
    """Return the summed loss of this rank's shard and of the global batch, before any update.

    Collective: every rank. One sum.
    """
    loss_sum = F.cross_entropy(model(images), labels, reduction="sum")
    return loss_sum, comm.all_reduce_sum(loss_sum.clone())


def time_is_up(deadline: float, comm: Communicator) -> bool:
    """Return whether to stop, as rank 0's clock says: clocks of ranks differ.

    Collective: every rank, at the end of each step. One broadcast.
    """
    flag = torch.tensor(float(time.monotonic() >= deadline))
    return bool(comm.broadcast(flag))


def train(config: Config, comm: Communicator) -> DigitClassifier:
    """Train for ``config.steps`` updates and return this rank's replica.

    Collective: every rank, same config. Each step communicates as its ``--sync`` mode says.
    """
    plan = BatchPlan(config.global_batch, config.micro_batch)
    if config.sync == "micro-batch":
        plan_micro_batches(plan.global_batch, comm.world_size, plan.micro_batch)
    images, labels = load_digits()
    order = torch.randperm(NUM_TRAIN, generator=torch.Generator().manual_seed(config.seed))
    # Replicas must not agree by chance: each starts from its own seed, then takes rank 0's state.
    torch.manual_seed(config.seed + comm.rank)
    model = DigitClassifier()
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
                stop = time_is_up(deadline, comm)
            loss = float(shard_loss) / len(rows)
            say(f"[rank={comm.rank}] step {step} loss={loss:.2f}")
            metrics.write(
                step=step,
                loss=loss,
                global_loss=float(loss_sum) / plan.global_batch,
                grad_norm=grad_norm(model),
                params_digest=params_digest(model),
                num_collectives=comm.num_collectives - calls_before,
                lr=config.lr,
                num_samples=len(rows),
            )
            if stop:
                break
    return model


def main(argv: list[str] | None = None) -> None:
    """Join the process group, train, leave."""
    config = parse_args(argv)
    torch.set_num_threads(1)  # the ranks share this machine's cores; and sums keep their order
    with process_group(config.timeout_s) as comm:
        train(config, comm)


if __name__ == "__main__":
    main()
