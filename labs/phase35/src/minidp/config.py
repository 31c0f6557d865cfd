"""What can be set on the command line."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

CHOICES = {
    "sync": ("bucket", "micro-batch", "packed", "overlap"),
    "uneven": ("pad", "drop", "join"),
    "norm": ("none", "local", "sync"),
    "all_reduce": ("gloo", "ring", "two-level"),
    "comm_dtype": ("float32", "bfloat16", "float16"),
    "param_dtype": ("float32", "bfloat16"),
}


@dataclass(frozen=True)
class Config:
    """Defaults are small enough for seconds. Those below ``overlap`` are for ``--sync overlap``."""

    sync: str = "bucket"  # how gradients are shared: three plain ways, and overlap
    steps: int = 10  # optimizer updates, at most
    global_batch: int = 96  # samples of a step, all ranks together (plain ways)
    micro_batch: int = 8  # samples of one forward
    lr: float = 0.1  # suits a batch of 64 labels
    momentum: float = 0.9
    seed: int = 35
    timeout_s: float = 1800.0  # of a collective
    max_seconds: float = math.inf  # stop after the step in which rank 0's clock says so
    metrics: Path | None = None  # folder for rank{rank}.jsonl
    # --- overlap: data
    epochs: int = 2
    num_train: int = 1433  # a prime: no world size and no batch size divides it
    num_test: int = 364
    unlabelled: float = 0.2  # fraction of training samples without a label
    noise: float = 0.1  # standard deviation of pixel noise in training
    uneven: str = "pad"  # what happens to the samples that are left over
    damaged: int = -1  # a training sample of which no pixel is a number; -1: none
    cache: Path | None = None  # folder for data that rank 0 prepares
    prepare_s: float = 0.0  # how long rank 0 prepares before anybody can read: a download, say
    # --- overlap: model
    width: int = 32
    norm: str = "sync"
    dropout: float = 0.1
    layer_drop: float = 0.2
    param_dtype: str = "float32"  # of forward and backward; the optimizer's masters stay float32
    # --- overlap: communication
    accumulation: int = 3  # micro-batches of a step
    bucket_cap: int = 2048  # elements
    all_reduce: str = "gloo"
    ranks_per_node: int = 2  # for two-level
    comm_dtype: str = "float32"
    lazy_comm: bool = False  # the slowest network there is
    # --- overlap: step
    weight_decay: float = 1e-3
    clip: float = 1.0  # largest gradient norm; 0: don't clip
    warmup: int = 4  # steps
    loss_scale: float = 0.0  # a power of two; 0: don't scale
    growth_interval: int = 6  # steps
    ema_decay: float = 0.98  # 0: no average
    zero1: bool = False
    overlap_gather: bool = False  # with zero1: wait for weights layer by layer
    # --- overlap: run
    log_every: int = 2  # steps
    eval_every: int = 5  # steps; 0: never
    eval_batches: int | None = None  # of each rank; None: all
    patience: int = 0  # evaluations without improvement; 0: go on
    plateau: int = 0  # evaluations until the rate is halved; 0: never
    checkpoint: Path | None = None  # go on from there if it exists, save at the end
    restart_at: int = 0  # save after this step, forget everything, and go on from the file
    weights_only: bool = False  # with restart_at: a new run, which takes the weights alone


def parse_args(argv: list[str] | None = None) -> Config:
    """Read the command line; each field of :class:`Config` is an option."""
    parser = argparse.ArgumentParser(
        prog="minidp.train",
        description="Data-parallel training of a digit classifier.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    for field in fields(Config):
        option = "--" + field.name.replace("_", "-")
        if field.type == "bool":
            parser.add_argument(option, action="store_true", help=" ")
        else:
            kind = _kind(str(field.type))
            choices = CHOICES.get(field.name)
            parser.add_argument(option, type=kind, choices=choices, default=field.default, help=" ")
    return Config(**vars(parser.parse_args(argv)))


def _kind(annotation: str) -> Any:
    return {"int": int, "float": float, "str": str, "Path": Path}[annotation.split(" ")[0]]
