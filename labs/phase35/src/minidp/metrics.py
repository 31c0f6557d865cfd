"""What a rank reports of each step, as one line of JSON."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import TracebackType

import torch
from torch import nn


def params_digest(model: nn.Module) -> str:
    """Return a SHA-256 of the bytes of all parameters and buffers, names included."""
    digest = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()


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
            self._file = (folder / f"rank{rank}.jsonl").open("w", encoding="utf-8")

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
