"""How long a deadlock goes unnoticed: from the last rank's block to the verdict.

    python benchmarks/verdict.py [--repeat 3] [--load]
    python benchmarks/verdict.py --breaks              # every break of the catalogue that stalls
    python benchmarks/verdict.py --count 200 --load    # missed ones, and healthy runs called one

Each deadlock is made by real ranks. The last rank to block writes down when it did, right before
the call; the verdict's time is taken when ``run_ranks`` raises, so ending the ranks is in it. A
break's time is the watcher's own: from the last movement that it saw to the proof.
``--load`` keeps every core busy meanwhile.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.distributed as dist

from breaklab.inject.edit import inject
from breaklab.model import BreakSpec, Outcome, Project, RunPromise
from breaklab.prove.scratch import scratch_copy
from breaklab.ranks import harness
from breaklab.ranks.launch import run_lab, warm_parent
from breaklab.spec.catalogue import load_catalogue
from breaklab.spec.project import find_project, load_labs

TIMED_S = 60.0  # breaklab's own limit for a stall that can't be proven
TORCH_S = 1800.0  # torch's default timeout of a gloo group


def about_to_block(folder: str) -> None:
    """Note that this rank is about to block; the newest note of all ranks counts."""
    Path(folder, str(dist.get_rank())).write_text(repr(time.monotonic()))


def tensor() -> torch.Tensor:
    """A few numbers to send."""
    return torch.ones(64)


def other_collective(folder: str) -> None:
    dist.all_reduce(tensor())
    about_to_block(folder)
    if dist.get_rank() == 1:
        dist.broadcast(tensor(), 1)
    else:
        dist.all_reduce(tensor())


def skipped_call(folder: str) -> None:
    for step in range(3):
        if step != 1 or dist.get_rank() != 2:
            about_to_block(folder)
            dist.all_reduce(tensor())
    about_to_block(folder)
    dist.barrier()


def rank_that_left(folder: str) -> None:
    about_to_block(folder)
    if dist.get_rank() != 1:
        dist.barrier()


def receives_in_a_circle(folder: str) -> None:
    about_to_block(folder)
    dist.recv(tensor(), (dist.get_rank() + 1) % 3)


def sends_in_a_circle(folder: str) -> None:
    about_to_block(folder)
    dist.send(tensor(), (dist.get_rank() + 1) % 3)


def other_tag(folder: str) -> None:
    about_to_block(folder)
    if dist.get_rank() == 0:
        dist.send(tensor(), 1, tag=1)
    elif dist.get_rank() == 1:
        dist.recv(tensor(), 0, tag=2)


def subgroup_not_joined(folder: str) -> None:
    pair = dist.new_group([0, 1])
    about_to_block(folder)
    if dist.get_rank() == 0:
        dist.all_reduce(tensor(), group=pair)
    else:
        dist.barrier()


def groups_in_another_order(folder: str) -> None:
    groups = [dist.new_group([0, 1, 2]) for _number in range(2)]
    about_to_block(folder)
    for group in groups if dist.get_rank() else groups[::-1]:
        dist.all_reduce(tensor(), group=group)


def other_size(folder: str) -> None:
    for _step in range(2):
        about_to_block(folder)
        dist.all_reduce(torch.ones(4 if dist.get_rank() == 0 else 3))


def ddp_with_one_batch_more(folder: str) -> None:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
    for _batch in range(3 if dist.get_rank() == 0 else 2):
        loss = model(torch.ones(1, 4)).sum()
        about_to_block(folder)
        loss.backward()
    about_to_block(folder)
    dist.barrier()


DEADLOCKS = [
    other_collective,
    skipped_call,
    rank_that_left,
    receives_in_a_circle,
    sends_in_a_circle,
    other_tag,
    subgroup_not_joined,
    groups_in_another_order,
    other_size,
    ddp_with_one_batch_more,
]


def healthy(folder: str, seed: int) -> None:
    """A random but legal mixture of waiting, computing, messages and collectives."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    plan, own = random.Random(seed), random.Random(f"{seed} {rank}")
    pair = dist.new_group([0, 1])
    for _step in range(12):
        time.sleep(own.choice([0, 0, 0.002, 0.02, 0.3]))
        match plan.randrange(6):
            case 0:
                dist.all_reduce(torch.ones(plan.choice([1, 1000, 200_000])))
            case 1:
                dist.broadcast(tensor(), plan.randrange(world_size))
            case 2:
                works = [dist.irecv(tensor(), (rank - 1) % world_size)]
                works.append(dist.isend(tensor(), (rank + 1) % world_size))
                for work in works:
                    work.wait()
            case 3:
                if rank < 2:
                    dist.all_reduce(tensor(), group=pair)
            case 4:
                dist.reduce(tensor(), plan.randrange(world_size))
            case 5:
                dist.barrier()
    Path(folder, f"healthy{rank}").touch()


def time_of(function: Callable[[str], None], folder: Path) -> float | None:
    """Seconds from the last block to the verdict; None if no deadlock was proven."""
    for old in folder.iterdir():
        old.unlink()
    try:
        harness.run_ranks(function, 3, 20.0, (str(folder),))
    except harness.RanksFailed as error:
        now = time.monotonic()
        if error.stall is not None and error.stall.kind == "proven":
            return now - max(float(file.read_text()) for file in folder.iterdir())
    return None


def print_times(repeat: int, folder: Path) -> None:
    """One line for each kind of deadlock."""
    print(f"{'deadlock':28} {'median':>8} {'worst':>8}   {'timed':>7} {'torch':>8}")
    medians = []
    for function in DEADLOCKS:
        times = [time_of(function, folder) for _time in range(repeat)]
        known = [one for one in times if one is not None]
        if len(known) < len(times):
            print(f"{function.__name__:28} NOT PROVEN {len(times) - len(known)} of {len(times)}")
            continue
        medians.append(statistics.median(known))
        print(
            f"{function.__name__:28} {medians[-1]:6.2f} s {max(known):6.2f} s"
            f"   {TIMED_S:5.0f} s {TORCH_S:6.0f} s"
        )
    print(f"median of all: {statistics.median(medians):.2f} s")


def print_breaks(repeat: int) -> None:
    """One line for each variant of the catalogue that is promised to stall."""
    project = find_project(Path(__file__).resolve().parent)
    lab = load_labs(project)[0]
    print(f"{'break':28} {'median':>8} {'worst':>8}   {'timed':>7} {'torch':>8}")
    medians = []
    with warm_parent(lab) as warm:
        for spec, promise in stalling(project):
            with scratch_copy(project, lab) as scratch:
                file = scratch.lab.root / spec.inject.file
                file.write_bytes(inject(file.read_bytes(), spec.inject).source)
                stalls = [
                    run_lab(warm, scratch.lab, args=promise.args, num_ranks=promise.num_ranks).stall
                    for _time in range(repeat)
                ]
            known = [stall.seconds for stall in stalls if stall and stall.kind == "proven"]
            name = f"{spec.bug_id} {promise.variant}"
            if len(known) < repeat:
                print(f"{name:28} NOT PROVEN {repeat - len(known)} of {repeat}")
                continue
            medians.append(statistics.median(known))
            print(
                f"{name:28} {medians[-1]:6.2f} s {max(known):6.2f} s"
                f"   {TIMED_S:5.0f} s {TORCH_S:6.0f} s"
            )
    print(f"median of all: {statistics.median(medians):.2f} s")


def stalling(project: Project) -> Iterator[tuple[BreakSpec, RunPromise]]:
    """The variants of the catalogue that are promised to stall by themselves."""
    for _bug_id, spec in sorted(load_catalogue(project).specs.items()):
        for promise in spec.runs:
            if promise.outcome is Outcome.STALL and not promise.fault:
                yield spec, promise


def print_counts(count: int, folder: Path) -> None:
    """How often a deadlock was missed, and a healthy run called one."""
    proven = sum(
        time_of(DEADLOCKS[number % len(DEADLOCKS)], folder) is not None for number in range(count)
    )
    print(f"deadlocked runs: {count}, missed: {count - proven}")
    wrong = 0
    for seed in range(count):
        try:
            harness.run_ranks(healthy, 3, 60.0, (str(folder), seed))
        except harness.RanksFailed as error:
            wrong += 1
            print(f"seed {seed}: {error}")
    print(f"healthy runs: {count}, called deadlocked or failed: {wrong}")


def _spin(parent: int) -> None:
    while os.getppid() == parent:
        sum(range(10_000))


@contextlib.contextmanager
def busy_cores(wanted: bool) -> Iterator[None]:
    """Keep all cores busy with processes of their own."""
    context = multiprocessing.get_context("fork")
    cores = os.cpu_count() or 1
    spinners = [
        context.Process(target=_spin, args=(os.getpid(),), daemon=True)
        for _core in range(cores if wanted else 0)
    ]
    for spinner in spinners:
        spinner.start()
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.join()


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--breaks", action="store_true")
    parser.add_argument("--load", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, busy_cores(args.load):
        print(f"torch {torch.__version__}, 3 ranks, {os.cpu_count()} cores, load: {args.load}")
        if args.breaks:
            print_breaks(args.repeat)
        elif args.count:
            print_counts(args.count, Path(name))
        else:
            print_times(args.repeat, Path(name))


if __name__ == "__main__":
    main()
