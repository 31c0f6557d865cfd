"""What a rank reports of each step, as one line of JSON."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from functools import lru_cache
from pathlib import Path
from types import TracebackType

import torch
from torch import Tensor, nn

from minidp.allreduce import Communicator

SKETCH_SIZE = 64


def say(line: str) -> None:
    """Print a line in one piece, at once: the ranks share one screen."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def params_digest(model: nn.Module, buffers: bool = True) -> str:
    """Return a SHA-256 of the bytes of all parameters, and of all buffers, names included."""
    digest = hashlib.sha256()
    state = model.state_dict() if buffers else dict(model.named_parameters())
    for name, tensor in state.items():
        digest.update(name.encode())
        digest.update(tensor.detach().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def params_sketch(model: nn.Module) -> list[float]:
    """Return 64 numbers that are about as far from another model's as the parameters are.

    A random projection (Johnson and Lindenstrauss 1984), the same on every rank and in every run:
    the distance of two sketches is that of the parameters with a standard error of 9 %.
    """
    params = torch.cat(
        [param.detach().flatten().float() for param in model.parameters()]
    )  # (numel,)
    return (_projection(params.numel()) @ params).tolist()


@lru_cache(maxsize=1)
def _projection(numel: int) -> Tensor:
    """Return (SKETCH_SIZE, numel), from a generator of its own: no stream moves."""
    generator = torch.Generator().manual_seed(1984)
    return torch.randn(SKETCH_SIZE, numel, generator=generator) / math.sqrt(SKETCH_SIZE)


class LossLog:
    """The mean training loss since the last report, over the labels of all ranks."""

    def __init__(self) -> None:
        self.totals = torch.zeros(2, dtype=torch.float64)  # summed loss, number of labels

    def add(self, loss_sum: Tensor, num_labels: int) -> None:
        """Add what one rank saw in one step."""
        self.totals += torch.tensor([float(loss_sum), num_labels], dtype=torch.float64)

    def report(self, comm: Communicator) -> float:
        """Return the mean over all ranks' labels, and start again.

        Collective: every rank, once in a log interval. One sum.
        """
        loss_sum, num_labels = comm.all_reduce_sum(self.totals.clone()).tolist()
        self.totals.zero_()
        return loss_sum / max(num_labels, 1.0)


def grad_norm(model: nn.Module) -> float:
    """Return the Euclidean norm of all gradients together; 0 where there are none."""
    norms = [p.grad.norm() for p in model.parameters() if p.grad is not None]
    return float(torch.stack(norms).norm()) if norms else 0.0


class MetricsWriter:
    """Writes ``rank{rank}.jsonl`` in a folder, a line for each step; nothing without a folder."""

    def __init__(self, folder: Path | None, rank: int) -> None:
        self._file = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = (folder / f"rank{rank}.jsonl").open("a", encoding="utf-8")

    def write(self, **values: object) -> None:
        """Write one object, and flush: a rank that is killed later has still reported it."""
        if self._file is not None:
            self._file.write(json.dumps(values) + "\n")
            self._file.flush()

    def __enter__(self) -> MetricsWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()
