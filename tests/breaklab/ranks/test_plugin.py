"""The fixture as another project gets it: the plugin installed, nothing of ours on its path."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from breaklab.ranks import harness

PROJECT = """
import torch
import torch.distributed as dist
import pytest

def total():
    value = torch.ones(3) * dist.get_rank()
    dist.all_reduce(value)
    return value

def train():
    weight = torch.nn.Parameter(torch.ones(20, 20))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    (weight @ weight).sum().backward()
    dist.all_reduce(weight.grad)
    optimizer.step()
    return weight.detach().sum().item()

def fails():
    if dist.get_rank() == 1:
        raise ValueError("bad batch")
    dist.barrier()

def test_values(run_ranks):
    assert [value.tolist() for value in run_ranks(total)] == [[3.0, 3.0, 3.0]] * 3

@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_training(run_ranks, world_size):
    values = run_ranks(train, world_size)
    assert values == [values[0]] * world_size

def test_failure_is_named(run_ranks):
    with pytest.raises(Exception, match="rank 1 failed first: ValueError: bad batch"):
        run_ranks(fails)
"""


def cold(folder: Path, *args: str) -> str:
    """Run Python in ``folder`` in a fresh interpreter; return its output."""
    done = subprocess.run(
        [sys.executable, *args],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"),
    )
    return done.stdout + done.stderr


def warm(folder: Path, main: Callable[[], int]) -> str:
    """Run ``main`` in ``folder`` in a fork of this process, which imported torch; return output."""
    harness.run_ranks(int, 1)
    if harness.spawn_reason():
        pytest.skip(harness.spawn_reason())
    output = folder / "output.txt"
    pid = os.fork()
    if pid == 0:
        os.chdir(folder)
        sys.path.insert(0, str(folder))
        fd = os.open(output, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(fd, 1)
        os.dup2(fd, 2)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        exit_code = 1
        try:
            exit_code = main()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(exit_code)
    os.waitpid(pid, 0)
    return output.read_text()


@pytest.fixture
def project(tmp_path):
    (tmp_path / "test_project.py").write_text(PROJECT)
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    return tmp_path


def passed(output: str) -> int:
    match = re.search(r"(\d+) passed", output)
    assert match is not None, output
    assert "failed" not in output.splitlines()[-1], output
    return int(match[1])


def test_a_strict_project_passes_cold(project):
    output = cold(project, "-m", "pytest", "-p", "no:randomly")
    assert passed(output) == 6
    assert "run_ranks:" not in output  # ranks were forked


def test_a_strict_project_passes_in_random_order_in_a_warm_fork(project):
    for seed in range(2):
        output = warm(project, lambda: pytest.main([f"--randomly-seed={seed}"]))  # noqa: B023
        assert passed(output) == 6
        assert "run_ranks:" not in output


def test_a_strict_project_passes_under_xdist_and_is_told_once_why_ranks_were_spawned(project):
    output = cold(project, "-m", "pytest", "-n", "2")
    assert passed(output) == 6
    lines = [line for line in output.splitlines() if line.startswith("run_ranks:")]
    assert len(lines) == 1
    assert "spawn" in lines[0]
    assert "threads" in lines[0]


def test_torch_is_not_imported_for_tests_without_the_fixture(tmp_path):
    (tmp_path / "test_none.py").write_text(
        "import sys\ndef test_nothing():\n    assert 'torch' not in sys.modules\n"
    )
    before = "import sys, pytest; code = pytest.main(['-q']); print('torch' in sys.modules)"
    output = cold(tmp_path, "-c", before)
    assert passed("\n".join(output.splitlines()[:-1])) == 1
    assert output.splitlines()[-1] == "False"


def test_coverage_sees_every_rank(tmp_path):
    (tmp_path / "measured.py").write_text(
        textwrap.dedent(
            """
            import torch.distributed as dist

            def work():
                if dist.get_rank() == 0:
                    return "zero"
                dist.get_world_size()
                if dist.get_rank() == 1:
                    raise ValueError("one")
                return "never"
            """
        )
    )
    (tmp_path / "test_coverage.py").write_text(
        textwrap.dedent(
            """
            import pytest, measured

            def test_work(run_ranks):
                with pytest.raises(Exception, match="rank 1 failed first"):
                    run_ranks(measured.work, 2)
            """
        )
    )
    (tmp_path / ".coveragerc").write_text("[run]\nparallel = true\n")
    from coverage.cmdline import main

    assert passed(warm(tmp_path, lambda: main(["run", "-m", "pytest"]))) == 1
    cold(tmp_path, "-m", "coverage", "combine")
    report = cold(tmp_path, "-m", "coverage", "report", "-m", "--include=measured.py")
    (row,) = (line for line in report.splitlines() if line.startswith("measured.py"))
    assert row.split() == ["measured.py", "8", "1", "88%", "10"]
