"""Real processes: Ctrl-C, a killed breaklab, and what a terminal shows."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from breaklab.cli.text import clean

Breaklab = Callable[..., Any]
WAITING = "starting all-reduce"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")


def start(*args: str, cwd: Path, **kwargs: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "breaklab", *args]
    return subprocess.Popen(command, cwd=cwd, text=True, **kwargs)


def processes_in(folder: Path) -> list[int]:
    """Pids of the processes other than this one that work in a folder."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if link.readlink().is_relative_to(folder):
                found.append(int(link.parent.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


def wait_until_gone(folder: Path) -> None:
    deadline = time.monotonic() + 20
    while processes_in(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_in(folder) == []


@contextmanager
def waiting_run(project: Path) -> Iterator[subprocess.Popen[str]]:
    """A run whose ranks wait for each other forever."""
    args = ("run", "--hang-timeout", "120")
    with start(*args, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None
        seen = 0
        while seen < 2:
            seen += WAITING in run.stdout.readline()
        assert len(processes_in(project)) >= 3  # breaklab and the ranks: the look finds something
        yield run


def test_ctrl_c_ends_a_run_with_130_and_no_process_left(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    breaklab("apply", "35-01")
    with waiting_run(tiny_project) as run:
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "Traceback" not in out + err
    wait_until_gone(tiny_project)


def test_a_killed_breaklab_leaves_no_process(breaklab: Breaklab, tiny_project: Path) -> None:
    breaklab("apply", "35-01")
    with waiting_run(tiny_project) as run:
        run.kill()
    wait_until_gone(tiny_project)


def on_terminal(
    *args: str, cwd: Path, columns: int = 80, answer: str = ""
) -> tuple[int, list[str]]:
    """Run breaklab on a terminal of its own; return the exit code and the lines it drew."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    environment.pop("COLUMNS", None)
    process = start(*args, cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    os.write(ours, answer.encode())
    output = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the terminal's other side is closed
            break
        if not chunk:
            break
        output += chunk
    os.close(ours)
    text = output.decode().replace("\r\n", "\n").replace("\r", "\n")
    return process.wait(timeout=60), [clean(line).rstrip() for line in text.split("\n")]


def test_on_a_terminal_each_rank_has_a_lane_that_stays_when_it_stalls(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    breaklab("apply", "35-01")
    code, lines = on_terminal("run", "--hang-timeout", "2", cwd=tiny_project)
    assert code == 3
    stall = lines.index("[STALL: 2 seconds, no further output]")
    for rank in (0, 1):
        lane = [line for line in lines[:stall] if line.startswith(f"rank {rank}  step 1")][-1]
        assert "computing" in lane
    assert f"[rank=0] step 1 {WAITING} ..." in lines
    assert max(map(len, lines)) <= 80


def test_plain_on_a_terminal_draws_no_lanes(breaklab: Breaklab, tiny_project: Path) -> None:
    code, lines = on_terminal("run", "--plain", cwd=tiny_project)
    assert code == 0
    assert not [line for line in lines if line.startswith("rank 0")]
    assert "[rank=0] step 0 loss=5.50" in lines


@pytest.mark.parametrize("columns", [60, 80])
def test_on_a_terminal_no_line_is_wider_than_it(
    breaklab: Breaklab, tiny_project: Path, columns: int
) -> None:
    breaklab("apply", "35-01")
    for args in (["list"], ["status"], ["hint"], ["apply", "35-02"], ["revert"], ["doctor"]):
        _code, lines = on_terminal(*args, cwd=tiny_project, columns=columns)
        # A path can't be folded; whoever needs it wants to copy it whole.
        words = [line for line in lines if str(tiny_project) not in line]
        assert max(map(len, words)) <= columns, args


@pytest.mark.parametrize(("answer", "state"), [("y\n", "given up"), ("n\n", "open")])
def test_reveal_asks_on_a_terminal(
    breaklab: Breaklab, tiny_project: Path, answer: str, state: str
) -> None:
    code, lines = on_terminal("reveal", "35-01", cwd=tiny_project, answer=answer)
    assert code == 0
    assert any("Give up on 35-01 and see the answer?" in line for line in lines)
    assert breaklab("list", "--json").json["breaks"][0]["state"] == state
