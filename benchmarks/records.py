"""What recording costs: steps per second of a small data-parallel training, with and without.

    python benchmarks/records.py [--ranks 2] [--steps 20] [--blocks 60]

All in one process group: blocks of steps with torch's methods wrapped and with the original ones
take turns, so that whatever else the machine does meets both alike. The ratio is the median of the
ratios of neighbouring blocks; below it, what one step costs each rank in processor time.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import torch.distributed as dist

from breaklab.ranks import harness
from breaklab.ranks.records import Board
from breaklab.ranks.records_install import COLLECTIVES, install

PER_STEP = {"one bucket": True, "one all_reduce per parameter": False}


def make_step(one_bucket: bool) -> Callable[[], None]:
    """Return one step of training a 64-128-10 network on 256 samples of each rank."""
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    inputs, targets = torch.randn(256, 64), torch.randint(10, (256,))

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), targets).backward()
        gradients = [parameter.grad for parameter in parameters]
        if one_bucket:
            dist.all_reduce(torch.cat([gradient.flatten() for gradient in gradients]))
        else:
            for gradient in gradients:
                dist.all_reduce(gradient)
        optimizer.step()

    return step


def methods() -> dict[tuple[type, str], object]:
    """The methods that recording replaces, as they are now."""
    names = [(dist.ProcessGroup, name) for name in COLLECTIVES if hasattr(dist.ProcessGroup, name)]
    return {(owner, name): vars(owner)[name] for owner, name in [*names, (dist.Work, "wait")]}


def train(num_steps: int, num_blocks: int, one_bucket: bool) -> list[tuple[float, float]]:
    """Return seconds and processor seconds of each block, without and with records in turn."""
    step = make_step(one_bucket)
    original = methods()
    assert install(Board.create(dist.get_world_size()).page(dist.get_rank())) == ""
    wrapped = methods()
    times = []
    for block in range(-4, num_blocks):
        for (owner, name), method in (wrapped if block % 2 else original).items():
            setattr(owner, name, method)
        dist.barrier()
        began = time.perf_counter(), time.process_time()
        for _step in range(num_steps):
            step()
        times.append((time.perf_counter() - began[0], time.process_time() - began[1]))
    return times[4:]


def compare(num_steps: int, times: list[tuple[float, float]]) -> str:
    """Describe one rank's blocks."""
    off, on = times[::2], times[1::2]
    ratios = sorted(a[0] / b[0] for a, b in zip(off, on, strict=True))
    quarter = len(ratios) // 4
    rates = [num_steps / statistics.median(one[0] for one in some) for some in (off, on)]
    cpu = [statistics.median(one[1] for one in some) / num_steps * 1e6 for some in (off, on)]
    return (
        f"{rates[0]:8.1f}/s {rates[1]:8.1f}/s {statistics.median(ratios):7.3f}"
        f" {ratios[quarter]:7.3f}..{ratios[-1 - quarter]:.3f} {cpu[0]:8.0f} us {cpu[1]:8.0f} us"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--blocks", type=int, default=60)
    args = parser.parse_args()
    print(f"torch {torch.__version__}, {args.ranks} ranks, {args.blocks} blocks of {args.steps}")
    print(
        f"{'':30} {'without':>10} {'with':>10} {'ratio':>7} {'half of them':>14}"
        f" {'CPU/step':>11} {'with':>11}"
    )
    for name, one_bucket in PER_STEP.items():
        call = (args.steps, args.blocks, one_bucket)
        values = harness.run_ranks(train, args.ranks, 600.0, call, records=False)
        print(f"{name:30} {compare(args.steps, values[0])}")


if __name__ == "__main__":
    main()
