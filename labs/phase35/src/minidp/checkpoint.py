"""What a checkpoint holds, how it gets to disk whole, and how a run goes on from it exactly.

Weights alone would start another run: the optimizer's momentum, the schedule, the loss scale, the
average, the place in the epoch and every rank's random streams decide the next step too.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from minidp.allreduce import Communicator
from minidp.decisions import as_rank0_says
from minidp.ema import EMA

if TYPE_CHECKING:
    from minidp.trainer import Trainer

FORMAT = 1


class CheckpointError(Exception):
    """A checkpoint that this run cannot go on from."""


def collect(run: Trainer) -> dict[str, Any]:
    """Return everything that the next step depends on; the same on every rank.

    Collective: every rank. The optimizer's shards and the ranks' streams are gathered.
    """
    run.optimizer.wait()
    return {
        "format": FORMAT,
        "world_size": run.comm.world_size,
        "step": run.step,
        "epoch": run.epoch,
        "position": run.position,  # samples of this epoch that each rank is done with
        "model": run.module.state_dict(),
        "optimizer": run.optimizer.consolidated_state(),
        "schedule": run.schedule.state_dict(),
        "plateau": run.plateau.state_dict(),
        "scaler": run.scaler.state_dict(),
        "ema": run.ema.state_dict(),
        "best": {"loss": run.best_loss, "step": run.best_step},
        "early_stopping": run.comm.all_gather_object(run.early_stopping.state_dict()),
        "streams": run.comm.all_gather_object(run.streams.state_dict()),
    }


def write(path: Path, state: dict[str, Any], before_rename: Callable[[], None] | None) -> None:
    """Write a file that is the old one or the new one, whenever the process is killed."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    if before_rename is not None:
        before_rename()
    temporary.replace(path)


def save(
    path: Path, run: Trainer, comm: Communicator, before_rename: Callable[[], None] | None = None
) -> None:
    """Save a run. When this returns, every rank can read the file.

    Collective: every rank. Rank 0 writes. ``before_rename`` is a place for a delay.
    """
    state = collect(run)
    if comm.rank == 0:
        write(path, state, before_rename)
    comm.barrier()


def load(path: Path, run: Trainer, comm: Communicator) -> bool:
    """Put a run where the checkpoint was saved; return whether there was one.

    Collective: every rank. Whether the file is there, rank 0 decides. Buffers come from the file;
    parameters come from the rank that owns them, whose masters are exact whatever their dtype.

    Raises:
        CheckpointError: another format; or an unfinished epoch of another number of ranks.
    """
    if not as_rank0_says(path.exists(), comm):
        return False
    state = torch.load(path, weights_only=True)
    if state["format"] != FORMAT:
        raise CheckpointError(f"{path} has format {state['format']}, this version reads {FORMAT}")
    if state["position"] and state["world_size"] != comm.world_size:
        raise CheckpointError(
            f"{path} was saved inside epoch {state['epoch']} by {state['world_size']} ranks: "
            f"{comm.world_size} ranks can go on only from the end of an epoch"
        )
    run.step, run.epoch, run.position = state["step"], state["epoch"], state["position"]
    run.best_loss, run.best_step = state["best"]["loss"], state["best"]["step"]
    for name, buffer in run.module.named_buffers():
        buffer.copy_(state["model"][name])
    run.optimizer.load_consolidated_state(state["optimizer"])
    run.schedule.load_state_dict(state["schedule"])
    run.plateau.load_state_dict(state["plateau"])
    run.scaler.load_state_dict(state["scaler"])
    run.ema.load_state_dict(state["ema"])
    if comm.rank < len(state["streams"]):  # a rank that is new keeps its fresh streams
        run.streams.load_state_dict(state["streams"][comm.rank])
        run.early_stopping.load_state_dict(state["early_stopping"][comm.rank])
    return True


def load_weights(path: Path, run: Trainer) -> None:
    """Start a new run from a checkpoint's weights, and from nothing else of it.

    Every rank reads the file; nothing is communicated. The average begins with these weights.
    """
    run.module.load_state_dict(torch.load(path, weights_only=True)["model"])
    run.ema = EMA(run.module, run.config.ema_decay)
    run.optimizer.refresh_masters()
