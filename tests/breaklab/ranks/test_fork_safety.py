"""Ranks are forked only from a process with one thread that computed nothing; else they are not."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from breaklab.ranks import harness

HEADER = """
import os, sys
sys.path.insert(0, {folder!r})
from breaklab.ranks import harness
from test_fork_safety import product
"""


def product() -> float:
    """A kernel that is parallel where it may be; a process forked after one hangs here."""
    left = torch.ones(300, 300)
    dist.all_reduce(left)
    return float((left @ torch.ones(300, 300)).sum())


def threads_of_a_rank() -> tuple[int, int]:
    return torch.get_num_threads(), harness.num_threads()


def run_script(body: str) -> str:
    """Run ``body`` in a fresh interpreter; return what it printed."""
    code = HEADER.format(folder=str(Path(__file__).parent)) + textwrap.dedent(body)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_parent_runs_no_kernel_and_has_no_thread_after_a_call():
    output = run_script(
        """
        import torch
        from torch.utils._python_dispatch import TorchDispatchMode
        harness.import_before_fork()

        class Recorder(TorchDispatchMode):
            seen = []
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                self.seen.append(str(func))
                return func(*args, **(kwargs or {}))

        parent = os.getpid()
        with Recorder():
            torch.ones(2) + 1
            control = len(Recorder.seen)
            values = harness.run_ranks(product, 2)
        print(control, len(Recorder.seen) - control, harness.num_threads())
        print(values, harness.spawn_reason() or "forked")
        """
    )
    first, second = output.splitlines()
    control, kernels, threads = map(int, first.split())
    assert control > 0  # the recorder does see kernels
    assert (kernels, threads) == (0, 1)
    assert second == "[54000000.0, 54000000.0] forked"


def test_importing_torch_and_numpy_leaves_no_thread_that_a_fork_would_lose():
    output = run_script(
        """
        import numpy, torch
        harness.import_before_fork()
        harness._probe()
        print(harness.num_threads())
        """
    )
    assert output.split() == ["1"]


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core: kernels start no threads")
def test_after_a_parallel_kernel_in_the_parent_ranks_are_spawned_and_it_is_said_why():
    output = run_script(
        """
        import torch
        torch.set_num_threads(2)
        torch.ones(500, 500) @ torch.ones(500, 500)
        print(harness.run_ranks(product, 2))
        print(harness.spawn_reason())
        """
    )
    values, reason = output.splitlines()
    assert values == "[54000000.0, 54000000.0]"
    assert "started threads" in reason


def test_with_a_python_thread_ranks_are_spawned_and_it_is_named_and_torch_not_imported_here():
    code = """
    import sys, threading
    from breaklab.ranks import harness
    stop = threading.Event()
    threading.Thread(target=stop.wait, name="heartbeat").start()
    harness.run_ranks(print, 1, args=("spoken",))
    print("torch" in sys.modules, harness.spawn_reason())
    stop.set()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    spoken, reason = done.stdout.splitlines()
    assert spoken == "[rank=0] spoken"
    assert reason.startswith("False ")
    assert "heartbeat" in reason


def test_a_rank_computes_on_one_thread(run_ranks):
    for intra_op, _ in run_ranks(threads_of_a_rank, 2):
        assert intra_op == 1
