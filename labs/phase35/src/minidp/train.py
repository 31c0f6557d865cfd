"""Data-parallel training of the digit classifier.

torchrun --standalone --nproc-per-node 2 -m minidp.train
torchrun --standalone --nproc-per-node 2 -m minidp.train --sync micro-batch --steps 20
torchrun --standalone --nproc-per-node 4 -m minidp.train --sync overlap --steps 1000 --zero1
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import torch

from minidp.allreduce import Communicator
from minidp.checkpoint import load_weights
from minidp.config import Config, parse_args
from minidp.plain import train_plain
from minidp.process_group import process_group, shared_folder
from minidp.trainer import Trainer


def train_with_restart(config: Config, comm: Communicator) -> Trainer:
    """Train up to ``restart_at``, save, and go on in a trainer that knows only the file.

    With ``weights_only`` it begins anew at step 0, with the weights of the file.

    Collective: every rank, same config.
    """
    with shared_folder(comm) as folder:
        path: Path = config.checkpoint or folder / "checkpoint.pt"
        with_file = dataclasses.replace(config, checkpoint=path)
        Trainer(with_file, comm).train(until=config.restart_at)
        if config.weights_only:
            resumed = Trainer(dataclasses.replace(config, checkpoint=None), comm)
            load_weights(path, resumed)
        else:
            resumed = Trainer(with_file, comm)
        resumed.train()
    return resumed


def main(argv: list[str] | None = None) -> None:
    """Join the process group, train, leave."""
    config = parse_args(argv)
    torch.set_num_threads(1)  # the ranks share this machine's cores; and sums keep their order
    with process_group(config.timeout_s, lazy=config.lazy_comm) as comm:
        if config.sync != "overlap":
            train_plain(config, comm)
        elif config.restart_at:
            train_with_restart(config, comm)
        else:
            Trainer(config, comm).train()


if __name__ == "__main__":
    main()
