"""How long does a suite of ten 2-rank tests take: in a cold pytest, and forked from a warm parent?

Each test trains a small model for five steps on two gloo ranks. Three ways take turns:

- spawn: a cold pytest whose tests start their ranks with torch.multiprocessing's spawn
- cold:  a cold pytest whose tests use the `run_ranks` fixture
- warm:  pytest itself forked from a warm parent, with the same fixture

    python benchmarks/warm.py [--rounds 3] [--skip-spawn]

Starting the warm parent is printed apart: `breaklab verify` pays it once for a whole catalogue.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from breaklab.ranks.jobs import RunJob, TestJob
from breaklab.ranks.warm import WarmParent

NUM_TESTS = 10
TRAIN = """
import os
import pytest, torch, torch.distributed as dist
import torch.multiprocessing as mp

def train(seed):
    torch.manual_seed(seed)
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.randn(8, 16)).square().mean().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
    return model.weight.sum().item()
"""
WITH_FIXTURE = f"""
@pytest.mark.parametrize("seed", range({NUM_TESTS}))
def test_train(run_ranks, seed):
    first, second = run_ranks(train, world_size=2, args=(seed,))
    assert first == second
"""
WITH_SPAWN = f"""
def worker(rank, seed, store, queue):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
    queue.put(train(seed))
    os._exit(0)  # gloo aborts now and then where one of two spawned ranks leaves first

@pytest.mark.parametrize("seed", range({NUM_TESTS}))
def test_train(tmp_path, seed):
    queue = mp.get_context("spawn").SimpleQueue()
    mp.spawn(worker, (seed, f"file://{{tmp_path}}/store", queue), nprocs=2)
    assert queue.get() == queue.get()
"""


def cold_seconds(root: Path, test_file: str) -> float:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test_file]
    started = time.perf_counter()
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    return time.perf_counter() - started


def warm_seconds(warm: WarmParent, root: Path) -> float:
    started = time.perf_counter()
    report = warm.run_tests(TestJob(root, root / "src", ("test_fixture.py",), 120.0))
    assert report.green, report.output
    assert len(report.results) == NUM_TESTS
    return time.perf_counter() - started


def first_answer_seconds(warm: WarmParent, root: Path) -> float:
    started = time.perf_counter()
    warm.run_ranks(RunJob(root, root / "src", script="nothing.py", num_ranks=1))
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--skip-spawn", action="store_true")
    options = parser.parse_args()
    times: dict[str, list[float]] = {"cold": [], "warm": []}
    if not options.skip_spawn:
        times = {"spawn": [], **times}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "src").mkdir()
        (root / "pytest.ini").write_text("[pytest]\n")
        (root / "nothing.py").write_text("")
        (root / "test_fixture.py").write_text(TRAIN + WITH_FIXTURE)
        (root / "test_spawn.py").write_text(TRAIN + WITH_SPAWN)
        with WarmParent("", ("torch", "torch.distributed", "torch.multiprocessing")) as warm:
            start_s = first_answer_seconds(warm, root)
            for _ in range(options.rounds):
                if "spawn" in times:
                    times["spawn"].append(cold_seconds(root, "test_spawn.py"))
                times["cold"].append(cold_seconds(root, "test_fixture.py"))
                times["warm"].append(warm_seconds(warm, root))
    warm_median = statistics.median(times["warm"])
    print(f"start of the warm parent, once: {start_s:.2f} s")
    print(f"{'way':<6} {'median s':>8} {'min s':>6} {'times warm':>10}")
    for name, values in times.items():
        median = statistics.median(values)
        print(f"{name:<6} {median:8.2f} {min(values):6.2f} {median / warm_median:10.1f}")


if __name__ == "__main__":
    main()
