"""Mistakes and bad luck: one clear line each, what to do about it, and the right exit code."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Breaklab = Callable[..., Any]

EVERY_COMMAND = [
    *(["list"], ["status"], ["hint"], ["apply", "35-01"], ["run"], ["test"], ["check"]),
    *(["revert"], ["reveal"], ["lint"], ["verify"]),
]
HOLD_THE_LOCK = """
import sys
from pathlib import Path
from breaklab.spec.project import find_project
from breaklab.tree.workspace import Workspace
with Workspace.open(find_project(Path.cwd())):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("args", EVERY_COMMAND, ids=lambda args: args[0])
def test_a_folder_that_is_no_project_says_so_and_exits_2(
    breaklab: Breaklab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    err = breaklab(*args, code=2).err
    assert err.startswith(f"Error: no breaklab project in {tmp_path / 'elsewhere'} or above it\n")
    assert "[tool.breaklab]" in err


@pytest.mark.parametrize("command", ["apply", "hint", "reveal", "verify"])
def test_an_unknown_id_suggests_the_nearest_and_exits_2(breaklab: Breaklab, command: str) -> None:
    err = breaklab(command, "35-11", code=2).err
    assert err.startswith("Error: there is no break 35-11\ndid you mean 35-01?")


@pytest.mark.parametrize("command", ["apply", "revert"])
def test_a_busy_lock_names_who_holds_it_and_exits_2(
    breaklab: Breaklab, tiny_project: Path, command: str
) -> None:
    if command == "revert":
        breaklab("apply", "35-01")
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_THE_LOCK],
        cwd=tiny_project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        args = ["35-01"] if command == "apply" else []
        err = breaklab(command, *args, code=2).err
        assert holder.stdin is not None
        holder.stdin.close()
    assert "another breaklab is changing this project right now" in err
    assert str(holder.pid) in err


def make_read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every attempt to open a file for writing fail, as on a read-only file system."""
    real = os.open

    def refusing(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return real(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", refusing)


def test_apply_on_a_read_only_tree_changes_nothing_and_exits_2(
    breaklab: Breaklab, tiny_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tiny_project / "lab" / "src" / "tiny" / "data.py"
    pristine = source.read_bytes()
    breaklab("hint", "35-01")  # the state folder is there already
    make_read_only(monkeypatch)
    err = breaklab("apply", "35-01", code=2).err
    assert "read-only file system" in err.lower()
    assert source.read_bytes() == pristine


def test_a_hint_is_shown_on_a_read_only_tree_with_a_remark(
    breaklab: Breaklab, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_read_only(monkeypatch)
    ran = breaklab("hint", "35-01")
    assert "print how much each rank owns" in ran.out
    assert ran.err.startswith("This could not be recorded: ")


@pytest.fixture
def without_torch(tiny_project: Path) -> Path:
    """A lab that preloads torch, and an interpreter that has no packages installed."""
    python = tiny_project / "bare-python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    manifest = tiny_project / "lab" / "lab.yaml"
    text = manifest.read_text().replace("preload: []", "preload: [torch]")
    manifest.write_text(text + f"python: {python}\n")
    return python


@pytest.mark.parametrize("args", [["run"], ["test"], ["verify", "35-01"]], ids=lambda args: args[0])
def test_missing_torch_is_one_clear_message_and_exits_2(
    breaklab: Breaklab, without_torch: Path, args: list[str]
) -> None:
    err = breaklab(*args, code=2).err
    assert err.startswith("Error: ")
    assert "torch" in err
    assert "install" in err
    assert len(err.splitlines()) <= 3


def test_missing_torch_is_found_by_doctor(breaklab: Breaklab, without_torch: Path) -> None:
    findings = {
        each["name"]: each for each in breaklab("doctor", "--json", code=2).json["findings"]
    }
    assert findings["torch"]["level"] == "FAIL"
    assert "pip install" in findings["torch"]["remedy"]


def test_a_damaged_record_is_named_and_exits_2(breaklab: Breaklab, tiny_project: Path) -> None:
    breaklab("apply", "35-01")
    record = tiny_project / ".breaklab" / "active.json"
    record.write_text("{")
    err = breaklab("status", code=2).err
    assert str(record) in err


def test_an_apply_that_was_killed_is_finished_by_the_next_command_which_says_so(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    breaklab("apply", "35-01")
    state = tiny_project / ".breaklab"
    (state / "active.json").rename(state / "applying.json")  # as a kill before the last step
    ran = breaklab("status", "--json")
    assert ran.err == "The last apply was interrupted half-way; it is finished now.\n"
    assert ran.json["applied"]["bug_id"] == "35-01"


def test_a_manifest_that_cannot_be_used_names_its_place(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    manifest = tiny_project / "lab" / "lab.yaml"
    manifest.write_text(manifest.read_text().replace("source: src", "sauce: src"))
    err = breaklab("run", code=2).err
    assert f"{manifest}:" in err
    assert "unknown key `sauce`" in err


def test_an_unknown_language_names_those_there_are(breaklab: Breaklab) -> None:
    err = breaklab("list", "--lang", "fr", code=2).err
    assert "en, es" in err


def test_a_mistyped_command_suggests_the_nearest(breaklab: Breaklab) -> None:
    assert "Did you mean 'status'?" in breaklab("statsu", code=2).err
