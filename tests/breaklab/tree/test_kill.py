"""Kill apply and revert with SIGKILL at every step of their writes; the next command recovers.

The steps are collected from a run that is not killed, so a write that is added later is walked,
too. Each kill is of a real process.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from breaklab.errors import TreeError
from breaklab.tree.events import read_events
from breaklab.tree.workspace import RevertHow, read_active, recover_if_needed

TOTAL = b"    total = sum(values)\n"
MY_TOTAL = b"    total = math.fsum(values)  # mine\n"


class Commands:
    """Commands in processes that die at a step of choice."""

    def __init__(self, server: subprocess.Popen[str]) -> None:
        self._server = server

    def run(self, learner: Any, command: str, kill_at: int | None = None) -> list[str]:
        order = {"root": str(learner.project.root), "command": command, "kill_at": kill_at}
        self._server.stdin.write(json.dumps(order) + "\n")
        self._server.stdin.flush()
        answer = json.loads(self._server.stdout.readline())
        assert answer["exit"] == (0 if kill_at is None else -signal.SIGKILL), answer
        return answer["steps"]


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    script = Path(__file__).with_name("kill_server.py")
    with subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        yield Commands(server)
        server.stdin.close()
        server.wait(timeout=30)


@dataclass
class Scene:
    """What there is before the command that is killed."""

    command: str
    applied: bool = True
    edit: Callable[[Any], None] = lambda learner: None
    solved: bool = False


def _edit_elsewhere(learner: Any) -> None:
    learner.edit(TOTAL, MY_TOTAL)


def _fix_otherwise(learner: Any) -> None:
    learner.edit(b"shard[:-1]", b"shard[:]")


def _fix(learner: Any) -> None:
    learner.source.write_bytes(learner.pristine)


def _delete(learner: Any) -> None:
    learner.source.unlink()


SCENES = {
    "apply": Scene("apply", applied=False),
    "apply over a solved break": Scene("apply", edit=_fix_otherwise, solved=True),
    "revert": Scene("merge"),
    "revert after the fix": Scene("merge", edit=_fix),
    "revert of a deleted file": Scene("merge", edit=_delete),
    "revert with a merge": Scene("merge", edit=_edit_elsewhere),
    "revert after a solution": Scene("merge", edit=_fix_otherwise, solved=True),
    "keep": Scene("keep", edit=_fix_otherwise),
    "keep a deleted file": Scene("keep", edit=_delete),
    "discard": Scene("discard", edit=_fix_otherwise),
    "solve": Scene("solve", edit=_fix_otherwise),
}


@dataclass
class Stage:
    """One scene, set up afresh for each kill."""

    learner: Any
    commands: Commands
    scene: Scene
    template: Path
    mine: bytes | None = None  # the learner's bytes before the command

    def set(self) -> None:
        root = self.learner.project.root
        if not self.template.exists():
            self._build()
            shutil.copytree(root, self.template, symlinks=True)
        shutil.rmtree(root)
        shutil.copytree(self.template, root, symlinks=True)

    def _build(self) -> None:
        learner, scene = self.learner, self.scene
        broken = learner.project.root / "tests" / "broken"
        broken.write_bytes(learner.broken)
        if scene.applied:
            learner.apply()
        scene.edit(learner)
        if scene.solved:
            self.commands.run(learner, "solve")
        self.mine = self.content()

    def check_recovered(self) -> None:
        """No byte of the learner's is lost, and nothing half done is left."""
        learner = self.learner
        recover_if_needed(learner.project)
        assert learner.left_over() == []
        content = self.content()
        active = read_active(learner.project)
        kept = {content, *learner.saved().values()} | ({active.pristine} if active else set())
        merged = learner.pristine.replace(TOTAL, MY_TOTAL)
        assert content in {learner.pristine, learner.broken, self.mine, merged}
        if self.mine not in (None, learner.pristine, learner.broken):
            assert self.mine in kept
        assert learner.pristine in kept or content == merged
        assert all(event.kind in {"applied", "reverted", "solved"} for event in self.events())
        assert len(self.events()) <= 3  # recovering tells nothing twice

    def events(self) -> list[Any]:
        return read_events(self.learner.project)

    def check_revert_ends_it(self) -> None:
        """Whatever was recovered, reverting leads to what was there before the break."""
        learner = self.learner
        if read_active(learner.project) is not None:
            try:
                learner.revert(RevertHow.MERGE)
            except TreeError:
                learner.revert(RevertHow.DISCARD)
        assert read_active(learner.project) is None
        merged = learner.pristine.replace(TOTAL, MY_TOTAL)
        ends = {learner.pristine, merged}
        if self.scene.command == "keep" or self.scene.solved:
            ends.add(self.mine)
        assert self.content() in ends

    def is_done(self) -> bool:
        """Whether recovering finished what was asked, so that asking again would be an error."""
        active = read_active(self.learner.project)
        if self.scene.command == "apply":
            return active is not None and not active.solved
        return active is None

    def content(self) -> bytes | None:
        return self.learner.source.read_bytes() if self.learner.source.exists() else None


@pytest.fixture
def set_stage(new_learner, commands) -> Iterator[Callable[[Scene], Stage]]:
    # In memory where there is such a place: what a kill leaves is the same, and fsync is free.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        learner = new_learner(Path(folder) / "project")
        yield lambda scene: Stage(learner, commands, scene, Path(folder) / "template")


@pytest.mark.parametrize("name", SCENES)
def test_killed_at_any_step_nothing_is_lost_and_the_command_can_be_given_again(
    name, set_stage, commands
):
    stage = set_stage(SCENES[name])
    stage.set()
    steps = commands.run(stage.learner, stage.scene.command)
    assert len(steps) > 5
    done, active = stage.content(), read_active(stage.learner.project)
    for kill_at in range(len(steps)):
        stage.set()
        passed = commands.run(stage.learner, stage.scene.command, kill_at)
        assert passed == steps[: kill_at + 1]
        stage.check_recovered()
        if not stage.is_done():
            commands.run(stage.learner, stage.scene.command)
        assert stage.content() == done
        again = read_active(stage.learner.project)
        assert (again is None) == (active is None)
        assert again is None or (again.broken, again.solved) == (active.broken, active.solved)
        stage.check_revert_ends_it()


@pytest.mark.parametrize("name", SCENES)
def test_killed_again_while_recovering_nothing_is_lost(name, set_stage, commands):
    stage = set_stage(SCENES[name])
    stage.set()
    steps = commands.run(stage.learner, stage.scene.command)
    seen: set[tuple[str, ...]] = set()
    for kill_at in range(len(steps)):
        stage.set()
        commands.run(stage.learner, stage.scene.command, kill_at)
        again = commands.run(stage.learner, "recover")
        if tuple(again) in seen:
            continue  # this way of recovering was walked already
        seen.add(tuple(again))
        for kill_recovery_at in range(len(again)):
            stage.set()
            commands.run(stage.learner, stage.scene.command, kill_at)
            commands.run(stage.learner, "recover", kill_recovery_at)
            stage.check_recovered()
            stage.check_revert_ends_it()
    assert max(len(again) for again in seen) > 1


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("content", ["pristine", "broken", None])
def test_whatever_the_source_is_made_between_kill_and_recovery_nothing_is_left_over(
    name, content, set_stage, commands
):
    stage = set_stage(SCENES[name])
    stage.set()
    steps = commands.run(stage.learner, stage.scene.command)
    for kill_at in range(len(steps)):
        stage.set()
        commands.run(stage.learner, stage.scene.command, kill_at)
        if content is None:
            stage.learner.source.unlink(missing_ok=True)
        else:
            stage.learner.source.write_bytes(getattr(stage.learner, content))
        made = stage.content()
        recover_if_needed(stage.learner.project)
        assert stage.learner.left_over() == []
        assert stage.content() == made


@pytest.mark.parametrize("name", ["apply", "revert", "discard"])
def test_edits_made_between_the_kill_and_the_next_command_survive(name, set_stage, commands):
    stage = set_stage(SCENES[name])
    stage.set()
    steps = commands.run(stage.learner, stage.scene.command)
    note = b"# a note, made before breaklab ran again\n"
    for kill_at in range(len(steps)):
        stage.set()
        passed = commands.run(stage.learner, stage.scene.command, kill_at)
        edited = stage.learner.source.read_bytes() + note
        stage.learner.source.write_bytes(edited)
        recover_if_needed(stage.learner.project)
        assert stage.learner.source.read_bytes() == edited
        begun, done = "source: temporary file made" in passed, "source: renamed" in passed
        if name == "apply" and begun and not done:
            assert read_active(stage.learner.project) is None  # it is their own file they edited
        if read_active(stage.learner.project) is not None:
            try:
                stage.learner.revert()
            except TreeError:
                stage.learner.revert(RevertHow.DISCARD)
        content = stage.learner.source.read_bytes()
        assert content == stage.learner.pristine + note or edited in stage.learner.saved().values()
        assert stage.learner.left_over() == []
