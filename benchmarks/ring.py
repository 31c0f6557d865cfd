"""How much slower than gloo is the lab's hand-written ring? A ratio, by size and by ranks.

    python benchmarks/ring.py [--quick]

Both run on the same ranks, in turns, so that whatever else the machine does slows both; the ratio
of the medians is what to read. Each rank sends 2 (N - 1) / N times the tensor, N ranks given.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "labs" / "phase35" / "src"))

from minidp.allreduce import Communicator
from minidp.ring import ring_all_reduce

KIB = 1024
SIZES = tuple(KIB * 4**power for power in range(9))  # 1 KiB to 64 MiB


def measure(call: Callable[[], object], repeats: int) -> float:
    """Return the seconds of ``repeats`` calls, one after another, on the slowest rank."""
    dist.barrier()
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    seconds = torch.tensor((time.perf_counter() - start) / repeats, dtype=torch.float64)
    dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
    return float(seconds)


def rank_main(rank: int, world_size: int, store: str, sizes: tuple[int, ...], turns: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        f"file://{store}",
        rank=rank,
        world_size=world_size,
        timeout=timedelta(seconds=600),
    )
    comm = Communicator()
    for size in sizes:
        tensor = torch.zeros(size // 4)  # zeros stay zeros, however often they are summed
        repeats = max(1, min(20, 2**22 // size))
        pairs = []
        for turn in range(turns + 1):
            ring = measure(lambda tensor=tensor: ring_all_reduce(tensor, comm), repeats)
            gloo = measure(lambda tensor=tensor: dist.all_reduce(tensor), repeats)
            if turn:  # the first one warms up
                pairs.append((ring, gloo))
        ring, gloo = (statistics.median(column) for column in zip(*pairs, strict=True))
        if rank == 0:
            sent = 2 * (world_size - 1) / world_size * size
            print(
                f"{world_size:5}  {size / KIB:10.0f}  {ring * 1e3:9.3f}  {gloo * 1e3:9.3f}"
                f"  {ring / gloo:5.2f}  {sent / KIB:12.1f}",
                flush=True,
            )
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="up to 1 MiB, fewer turns")
    quick = parser.parse_args().quick
    sizes = SIZES[:6] if quick else SIZES
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    print("ranks         KiB   ring ms    gloo ms  ratio  KiB sent/rank")
    for world_size in (2, 3, 4):
        with tempfile.TemporaryDirectory() as folder:
            arguments = (world_size, f"{folder}/store", sizes, 3 if quick else 7)
            mp.spawn(rank_main, arguments, nprocs=world_size)


if __name__ == "__main__":
    main()
