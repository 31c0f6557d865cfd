"""One command at a time; the lock dies with its process, and the clock decides nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from breaklab.errors import ExitCode, TreeError
from breaklab.tree.events import append_event, read_events
from breaklab.tree.workspace import (
    RevertKind,
    Workspace,
    read_active,
    recover_if_needed,
)

HOLD = """
import sys
from pathlib import Path
from breaklab.model import Project
from breaklab.tree.workspace import Workspace
root = Path(sys.argv.pop(1))
with Workspace.open(Project(root, (root / "labs" / "tiny",), ())):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(learner):
    """Another process, named ``breaklab apply 35-07``, that holds the lock."""
    command = [sys.executable, "-c", HOLD, str(learner.project.root), "apply", "35-07"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        yield process
        process.stdin.close()
        process.wait(timeout=30)


def test_a_busy_lock_names_the_holder_and_exits_2(learner, holder):
    with pytest.raises(TreeError) as caught:
        learner.apply()
    message = caught.value.message
    assert "\n" not in message
    assert f"(pid {holder.pid})" in message
    assert "apply 35-07" in message
    assert caught.value.exit_code is ExitCode.USAGE
    assert learner.source.read_bytes() == learner.pristine


def test_reading_and_events_need_no_lock(learner, holder):
    append_event(learner.project, "hint", "35-01", level=1)
    assert read_active(learner.project) is None
    assert [event.kind for event in read_events(learner.project)] == ["hint"]


def test_what_another_command_is_writing_is_not_taken_for_left_over(learner, holder):
    at_work = learner.project.state_dir / "applying.json"
    at_work.write_bytes(b"half")
    assert recover_if_needed(learner.project) == ""
    assert at_work.read_bytes() == b"half"
    at_work.unlink()


def test_a_lock_that_is_held_for_a_moment_is_waited_for(learner, holder, monkeypatch):
    real_sleep = time.sleep

    def release(seconds: float) -> None:
        holder.stdin.close()
        real_sleep(seconds)

    monkeypatch.setattr("breaklab.tree.lock._WAIT_S", 60.0)
    monkeypatch.setattr(time, "sleep", release)
    learner.apply()
    assert learner.source.read_bytes() == learner.broken


def test_a_lock_whose_holder_was_killed_is_free(learner, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait(timeout=30)
    assert (learner.project.state_dir / "holder.json").exists()
    learner.apply()
    assert not (learner.project.state_dir / "holder.json").exists()
    assert learner.source.read_bytes() == learner.broken


def test_a_holder_that_has_not_said_who_it_is_yet_is_told_too(learner, holder):
    (learner.project.state_dir / "holder.json").write_bytes(b"{")
    with pytest.raises(TreeError, match="another breaklab is changing this project"):
        learner.apply()


def test_the_holders_command_cannot_garble_the_screen(learner, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/x/breaklab", "apply", "\x1b[2J\n" + "y" * 200])
    with Workspace.open(learner.project):
        holder = json.loads((learner.project.state_dir / "holder.json").read_bytes())
        with pytest.raises(TreeError) as caught:
            learner.apply()
    assert holder["pid"] == os.getpid()
    assert re.fullmatch(r"breaklab apply \?\[2J\?y+\.\.\.", holder["command"])
    assert caught.value.message.isprintable()


APPLY = """
import sys
from pathlib import Path
from breaklab.errors import TreeError
from breaklab.model import Entrypoint, Lab, Project, Text
from breaklab.tree.workspace import Workspace
root = Path(sys.argv[1])
lab_root = root / "labs" / "tiny"
source = lab_root / "src" / "tiny" / "dataloader.py"
entrypoint = Entrypoint("tiny.train")
lab = Lab(lab_root, "tiny", Text({}), lab_root / "src", root / "tests" / "tiny", entrypoint, "")
sys.stdin.readline()
try:
    with Workspace.open(Project(root, (lab_root,), ())) as workspace:
        workspace.apply(lab, sys.argv[2], source, source.read_bytes() + sys.argv[2].encode())
except TreeError as error:
    print(error.message)
    sys.exit(2)
"""


def test_of_many_that_apply_at_once_one_wins_and_the_others_are_told(learner):
    ids = [f"35-0{number}" for number in range(1, 7)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", APPLY, str(learner.project.root), bug_id],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for bug_id in ids
    ]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    codes = [process.returncode for process in processes]
    assert sorted(codes) == [0, 2, 2, 2, 2, 2]
    winner = ids[codes.index(0)]
    assert learner.source.read_bytes() == learner.pristine + winner.encode()
    losers = [output for output, code in zip(outputs, codes, strict=True) if code]
    assert all(re.search("is changing this project|is applied already", each) for each in losers)
    assert learner.revert().kind is RevertKind.RESTORED


@pytest.mark.parametrize("jump_s", [-10 * 365 * 86_400, 10 * 365 * 86_400])
def test_a_clock_that_jumps_changes_nothing_about_apply_and_revert(learner, monkeypatch, jump_s):
    real_ns, real = time.time_ns, time.time
    learner.apply()
    learner.edit(b"total = sum(values)", b"total = math.fsum(values)")
    monkeypatch.setattr(time, "time_ns", lambda: real_ns() + jump_s * 1_000_000_000)
    monkeypatch.setattr(time, "time", lambda: real() + jump_s)
    assert learner.revert().kind is RevertKind.MERGED
    learner.source.write_bytes(learner.pristine)
    learner.apply()
    assert learner.revert().kind is RevertKind.RESTORED
    assert [event.kind for event in read_events(learner.project)] == ["applied", "reverted"] * 2
