"""What recording costs: steps per second of a small data-parallel training, with and without.

    python benchmarks/records.py [--ranks 2] [--steps 300] [--pairs 7]

Runs come in pairs, one with and one without records in alternating order, so that a machine that
gets slower half-way does not decide the result; the ratio is the median of the pairs' ratios.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
import torch.distributed as dist

from breaklab.ranks import harness

PER_STEP = {"one bucket": 1, "one all_reduce per parameter": 4}


def train(num_steps: int, num_collectives: int) -> float:
    """Train a 64-128-10 network on 256 samples per rank and step; return steps per second."""
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    inputs, targets = torch.randn(256, 64), torch.randint(10, (256,))
    for step in range(num_steps + num_steps // 4):
        if step == num_steps // 4:  # the first steps allocate, connect and import
            dist.barrier()
            began = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), targets).backward()
        gradients = [parameter.grad for parameter in parameters]
        if num_collectives == 1:
            flat = torch.cat([gradient.flatten() for gradient in gradients])
            dist.all_reduce(flat)
        else:
            for gradient in gradients:
                dist.all_reduce(gradient)
        optimizer.step()
    return num_steps / (time.perf_counter() - began)


def measure(args: argparse.Namespace, num_collectives: int) -> tuple[float, float, list[float]]:
    """Return median steps per second without and with records, and the ratio of each pair."""
    rates: dict[bool, list[float]] = {False: [], True: []}
    for pair in range(args.pairs):
        for records in (False, True) if pair % 2 else (True, False):
            values = harness.run_ranks(
                train, args.ranks, 120.0, (args.steps, num_collectives), records=records
            )
            rates[records].append(min(values))
    ratios = [on / off for off, on in zip(rates[False], rates[True], strict=True)]
    return statistics.median(rates[False]), statistics.median(rates[True]), ratios


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--pairs", type=int, default=7)
    args = parser.parse_args()
    print(f"torch {torch.__version__}, {args.ranks} ranks, {args.steps} steps, {args.pairs} pairs")
    print(f"{'':30} {'without':>10} {'with':>10} {'ratio':>7} {'range':>15}")
    for name, num_collectives in PER_STEP.items():
        without, with_records, ratios = measure(args, num_collectives)
        ratio = statistics.median(ratios)
        spread = f"{min(ratios):.3f}..{max(ratios):.3f}"
        print(f"{name:30} {without:8.1f}/s {with_records:8.1f}/s {ratio:7.3f} {spread:>15}")


if __name__ == "__main__":
    main()
