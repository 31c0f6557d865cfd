"""``launch`` runs a script that no lab knows; the deadlocked one here is a real one, on gloo."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEALTHY = """
import os, sys
import torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank())])
dist.all_reduce(total)
print("step 1", sys.argv[1:], total.item(), os.environ["LOCAL_RANK"], flush=True)
dist.destroy_process_group()
"""
DEADLOCK = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
tensor = torch.ones(4)
if dist.get_rank() == 0:
    dist.broadcast(tensor, 0)
    dist.barrier()
else:
    dist.all_reduce(tensor)
"""


@pytest.fixture
def launched(tmp_path: Path):
    def run(text: str, *args: str) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "train.py"
        script.write_text(text)
        command = [sys.executable, "-m", "breaklab", "launch", *args[:3], str(script), *args[3:]]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    return run


def test_a_healthy_script_gets_its_arguments_and_exits_with_zero(launched):
    done = launched(HEALTHY, "--nproc", "3", "--plain", "--lr", "0.1")
    assert done.returncode == 0, done.stderr
    lines = sorted(line for line in done.stdout.splitlines() if line.startswith("[rank="))
    wanted = [f"[rank={rank}] step 1 ['--lr', '0.1'] 3.0 {rank}" for rank in range(3)]
    assert lines == wanted


def test_a_deadlock_is_proven_and_shows_where_each_rank_waits(launched):
    done = launched(DEADLOCK, "--nproc", "2", "--json")
    assert done.returncode == 3, done.stderr
    answer = json.loads(done.stdout)
    assert answer["outcome"] == "stall"
    assert answer["stall"]["kind"] == "proven"
    assert {wait["operation"] for wait in answer["waits"]} == {"broadcast", "all_reduce"}
    assert all(wait["place"].startswith("train.py:") for wait in answer["waits"])


def test_a_script_that_is_not_there_is_one_clear_line(launched, tmp_path):
    command = [sys.executable, "-m", "breaklab", "launch", "missing.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert "missing.py" in done.stderr
    assert "Traceback" not in done.stderr
