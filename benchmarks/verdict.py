"""How long a deadlock goes unnoticed: from the last rank's block to the verdict.

    python benchmarks/verdict.py [--repeat 3] [--load]
    python benchmarks/verdict.py --breaks              # every break of the catalogue that stalls
    python benchmarks/verdict.py --count 200 --load    # missed ones, and healthy runs called one
    python benchmarks/verdict.py --long 50             # healthy runs that look stuck for 5 s

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
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from verdict_ranks import DEADLOCKS, LOOK_STUCK, healthy

from breaklab.inject.edit import inject
from breaklab.model import BreakSpec, Outcome, Project, RunPromise
from breaklab.prove.scratch import scratch_copy
from breaklab.ranks import harness
from breaklab.ranks.launch import run_lab, warm_parent
from breaklab.spec.catalogue import load_catalogue
from breaklab.spec.project import find_project, load_labs

TIMED_S = 60.0  # breaklab's own limit for a stall that can't be proven
TORCH_S = 1800.0  # torch's default timeout of a gloo group


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


def _survives(number: int) -> str:
    try:
        harness.run_ranks(LOOK_STUCK[number % len(LOOK_STUCK)], 3, 60.0)
    except harness.RanksFailed as error:
        return str(error)
    return ""


def print_long(count: int) -> None:
    """How often each kind of healthy run that looks stuck was called a deadlock; ten at a time."""
    with multiprocessing.get_context("fork").Pool(10) as pool:
        errors = pool.map(_survives, range(count * len(LOOK_STUCK)), chunksize=1)
    for index, function in enumerate(LOOK_STUCK):
        mine = errors[index :: len(LOOK_STUCK)]
        print(f"{function.__name__:28} {len(mine)} runs, called deadlocked: {sum(map(bool, mine))}")
    for error in filter(None, errors):
        print(error)


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
    parser.add_argument("--long", type=int, default=0)
    parser.add_argument("--breaks", action="store_true")
    parser.add_argument("--load", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, busy_cores(args.load):
        print(f"torch {torch.__version__}, 3 ranks, {os.cpu_count()} cores, load: {args.load}")
        if args.breaks:
            print_breaks(args.repeat)
        elif args.long:
            print_long(args.long)
        elif args.count:
            print_counts(args.count, Path(name))
        else:
            print_times(args.repeat, Path(name))


if __name__ == "__main__":
    main()
