"""A few of the stories that `benchmarks/kill_stories.py` tells by the thousand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "kill_stories.py"


def _tell(*args: str) -> subprocess.CompletedProcess[str]:
    # In memory where there is such a place: fsync is free there, and kills are not all in it.
    env = os.environ | ({"TMPDIR": "/dev/shm"} if os.access("/dev/shm", os.W_OK) else {})
    return subprocess.run(
        [sys.executable, str(SCRIPT), *args],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def _count(output: str, what: str) -> int:
    found = re.search(rf"(\d+) {what}", output)
    assert found, output
    return int(found[1])


def test_stories_with_kills_at_random_moments_lose_nothing():
    done = _tell("--stories", "25", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert _count(done.stdout, "kills") > 10
    assert _count(done.stdout, "left something half done") > 0


def test_a_revert_that_saved_nothing_would_be_noticed():
    done = _tell("--stories", "15", "--seed", "1", "--sabotage")
    assert done.returncode == 1, done.stderr
    assert "LOST" in done.stdout


@pytest.mark.slow
def test_stories_on_the_command_line_lose_nothing_and_leave_no_process():
    done = _tell("--stories", "3", "--seed", "1", "--level", "cli")
    assert done.returncode == 0, done.stdout + done.stderr
    assert _count(done.stdout, "kills") > 0
