"""Families of processes: found and ended, whatever group or session they moved to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from breaklab.ranks.process import (
    children,
    descendants,
    group_members,
    kill_descendants,
    kill_group,
    marked,
    reap,
)
from tests.breaklab.ranks.conftest import is_alive, wait_until

GRANDPARENT = """
import os, signal
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("ready", flush=True)
    signal.pause()
signal.pause()
"""


@pytest.fixture
def family() -> Iterator[subprocess.Popen[str]]:
    """A process with a child in another session, which has a child."""
    process = subprocess.Popen(
        [sys.executable, "-c", GRANDPARENT],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "BREAKLAB_TEST_MARK": "abc"},
        start_new_session=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        family = descendants(process.pid)
        yield process
        for pid in (process.pid, *family):
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)


def test_descendants_are_found_across_sessions(family: subprocess.Popen[str]) -> None:
    assert len(descendants(family.pid)) == 2
    assert len(children(family.pid)) == 1
    assert group_members(family.pid) == [family.pid]


def test_killing_descendants_leaves_the_process_itself(family: subprocess.Popen[str]) -> None:
    kill_descendants(family.pid)
    assert descendants(family.pid) == []
    assert is_alive(family.pid)


def test_a_marker_in_the_environment_finds_all_of_a_family(
    family: subprocess.Popen[str],
) -> None:
    expected = {family.pid, *descendants(family.pid)}
    assert set(marked("BREAKLAB_TEST_MARK", "abc")) == expected
    assert marked("BREAKLAB_TEST_MARK", "ab") == []


def test_a_group_that_is_gone_is_no_error(family: subprocess.Popen[str]) -> None:
    kill_group(family.pid)
    family.wait()
    wait_until(lambda: group_members(family.pid) == [])
    kill_group(family.pid)


def test_reaping_gives_the_exit_code_the_signal_or_nothing_in_time() -> None:
    command = [sys.executable, "-c", "raise SystemExit(3)"]
    ended = subprocess.Popen(command)
    assert reap(ended.pid, 20.0) == 3
    ended.returncode = 3  # reaped behind its back
    waits = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    assert reap(waits.pid, 0.01) is None
    waits.kill()
    assert reap(waits.pid, 20.0) == -signal.SIGKILL
    waits.returncode = -signal.SIGKILL
