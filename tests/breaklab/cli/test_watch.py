"""watch in real processes: plain lines in a pipe, a full screen on a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from breaklab.cli.text import clean

Breaklab = Callable[..., Any]
COMMAND = [sys.executable, "-m", "breaklab", "watch"]


@pytest.fixture
def source(tiny_project: Path) -> Path:
    return tiny_project / "lab" / "src" / "tiny" / "data.py"


def test_watch_without_a_break_says_what_to_do(breaklab: Breaklab) -> None:
    assert "no break is applied here" in breaklab("watch", code=2).err


def test_in_a_pipe_every_save_gives_a_report_until_ctrl_c(
    breaklab: Breaklab, tiny_project: Path, source: Path
) -> None:
    pristine = source.read_bytes()
    breaklab("apply", "35-01")
    with subprocess.Popen(COMMAND, cwd=tiny_project, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None

        def read_until(text: str) -> str:
            while text not in (line := watch.stdout.readline()):
                assert line, "watch ended"
            return line

        read_until("breaklab watch: 35-01, lab tiny")
        read_until('right after "starting all-reduce"')
        read_until("AssertionError: rank 0 and rank 1 differ")
        read_until("RED    2 failed, 0 passed")
        source.write_bytes(pristine)
        read_until("GREEN  2 passed")
        read_until("GREEN  3 passed")
        watch.send_signal(signal.SIGINT)
        rest = watch.stdout.read()
    assert watch.returncode == 0
    assert "Traceback" not in rest
    events = (tiny_project / ".breaklab" / "events.jsonl").read_text()
    assert events.count('"kind": "test"') == 2  # red, then green; the second green is no news


class Terminal:
    """A terminal of 80 by 24 with ``breaklab watch`` on it."""

    def __init__(self, folder: Path) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        env = {**os.environ, "TERM": "xterm-256color", "NO_COLOR": "1", "LANG": "C.UTF-8"}
        env.pop("COLUMNS", None)
        self.process = subprocess.Popen(
            COMMAND,
            cwd=folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=env,
            start_new_session=True,
            # Its own terminal, so that Ctrl-C on it reaches it and what it started.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        self.output = ""

    def wait_for(self, pattern: str) -> None:
        """Read until what is drawn from now on matches; what was there before doesn't count."""
        seen = ""
        deadline = time.monotonic() + 60
        while not re.search(pattern, clean(seen.replace("\r", "\n"))):
            assert time.monotonic() < deadline, clean(seen)
            if select.select([self._ours], [], [], 1.0)[0]:
                seen += os.read(self._ours, 65536).decode()
        self.output += seen

    def press(self, key: str) -> None:
        os.write(self._ours, key.encode())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.fixture
def terminal(breaklab: Breaklab, tiny_project: Path) -> Iterator[Terminal]:
    breaklab("apply", "35-01")
    terminal = Terminal(tiny_project)
    yield terminal
    terminal.close()


def test_on_a_terminal_saves_and_keys_work_and_q_gives_it_back(
    terminal: Terminal, source: Path, breaklab: Breaklab
) -> None:
    terminal.wait_for(r"RED    2 failed, 0 passed")
    assert "h hint  r run" in terminal.output
    terminal.press("h")
    terminal.wait_for(r"Hint 1 of 3: print how much each rank owns")
    source.write_text(
        source.read_text().replace("    if rank == 0:\n        mine = mine[:-1]\n", "")
    )
    terminal.wait_for(r"GREEN  all 3 tests in .* press c")
    terminal.press("c")
    terminal.wait_for(r"Solved: 35-01(.|\n)*Press any key")
    terminal.press(" ")
    terminal.wait_for(r"breaklab watch: 35-01")
    terminal.press("q")
    assert terminal.process.wait(timeout=60) == 0
    assert breaklab("status", "--json").json["applied"]["solved"] is True


def test_taking_the_break_out_needs_the_key_twice_and_ends_watch(
    terminal: Terminal, breaklab: Breaklab
) -> None:
    terminal.wait_for(r"RED")
    terminal.press("v")
    terminal.wait_for(r"Press v again")
    terminal.press("v")
    terminal.wait_for(r"Break 35-01 is out\.(.|\n)*Press any key")
    terminal.press(" ")
    assert terminal.process.wait(timeout=60) == 0
    assert breaklab("status", "--json").json["applied"] is None


def test_ctrl_c_during_a_run_comes_back_to_watch(terminal: Terminal) -> None:
    terminal.wait_for(r"RED")
    terminal.press("r")
    terminal.wait_for(r"step 1 starting all-reduce(.|\n)*step 1 starting all-reduce")
    terminal.press("\x03")
    terminal.wait_for(r"Press any key")
    terminal.press(" ")
    terminal.wait_for(r"breaklab watch: 35-01")
    terminal.press("q")
    assert terminal.process.wait(timeout=60) == 0
