"""Commands in processes of their own, which are killed at a random moment.

`Workspaces` forks from this process and calls breaklab's workspace: thousands of kills a minute,
nearly all of them in the middle of a write. `CommandLines` starts the real command line, with its
ranks, and kills breaklab, one process below it, or its whole group.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import statistics
import subprocess
import sys
import time
import traceback
import uuid
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from story_world import World

from breaklab.errors import BreaklabError
from breaklab.model import Lab, Project
from breaklab.ranks.process import descendants, marked
from breaklab.tree.workspace import RevertHow, Workspace, recover_if_needed

MARK = "BREAKLAB_STORY"


@dataclass(frozen=True)
class Ended:
    """How one command ended."""

    exit_code: int
    killed: str  # what was killed; ``""``: nothing, or it had ended before
    output: str


@dataclass
class Commands:
    """What both kinds share: how long a command takes, to aim the kill."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def delay(self, name: str, rng: random.Random) -> float:
        """Return a moment within the command's usual duration, often near its end."""
        usual = statistics.median(self.seconds[name] or [0.01])
        return usual * (rng.uniform(0.5, 1.05) if rng.random() < 0.5 else rng.uniform(0.0, 1.05))


class Workspaces(Commands):
    """Commands on the workspace itself, each in a fork of this process."""

    def __init__(self, project: Project, lab: Lab, source: Path) -> None:
        super().__init__()
        self.project, self.lab, self.source = project, lab, source

    def next(self, rng: random.Random) -> list[str]:
        """Return a command for a learner to give next."""
        names = ["apply"] * 5 + ["merge"] * 4 + ["keep", "discard", "solve", "recover"]
        return [rng.choice(names), str(rng.randrange(10**6))]

    def run(self, args: list[str], world: World, kill: random.Random | None) -> Ended:
        """Run one command, and kill it at a random moment if ``kill`` is given."""
        log = world.root.parent / "output"
        log.write_text("")
        started = time.perf_counter()
        pid = os.fork()
        if pid == 0:
            os._exit(self._child(args, log))
        if kill is not None:
            time.sleep(self.delay(args[0], kill))
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _pid, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if kill is None:
            self.seconds[args[0]].append(time.perf_counter() - started)
        output = log.read_text(errors="replace")
        return Ended(code, "breaklab" if code == -signal.SIGKILL else "", output)

    def _child(self, args: list[str], log: Path) -> int:
        with log.open("w") as file:
            try:
                self._command(args[0], random.Random(args[1]))
            except BreaklabError as error:
                print(error.message, file=file)
                return int(error.exit_code)
            except BaseException:
                traceback.print_exc(file=file)
                return 70
        return 0

    def _command(self, name: str, rng: random.Random) -> None:
        if name == "recover":
            recover_if_needed(self.project)
            return
        with Workspace.open(self.project) as workspace:
            if name == "apply":
                content = self.source.read_bytes() if self.source.exists() else b""
                broken = _mutate(content, rng)
                workspace.apply(self.lab, "35-01", self.source, broken)
            elif name == "solve":
                workspace.mark_solved("35-01")
            else:
                workspace.revert(RevertHow(name))

    def finish(self) -> list[list[str]]:
        """Return the commands that end any break."""
        return [["merge", "0"], ["discard", "0"], ["keep", "0"]]

    def survivors(self) -> list[int]:
        """Return processes that outlived their story; a fork leaves none but git, for a moment."""
        return []


def _mutate(content: bytes, rng: random.Random) -> bytes:
    """Return ``content`` with one line doubled, dropped or changed."""
    lines = content.splitlines(keepends=True) or [b"\n"]
    at = rng.randrange(len(lines))
    change: Callable[[], None] = rng.choice(
        [
            lambda: lines.insert(at, b"bug = True\n"),
            lambda: lines.__setitem__(at, b"bug = " + lines[at]),
            lambda: lines.pop(at) and None,
        ]
    )
    change()
    return b"".join(lines)


class CommandLines(Commands):
    """The real command line, with all the processes it starts."""

    def __init__(self) -> None:
        super().__init__()
        self.mark = uuid.uuid4().hex

    def next(self, rng: random.Random) -> list[str]:
        """Return a command for a learner to give next."""
        bug_id = rng.choice(["35-01", "35-02"])
        often = [["apply", bug_id]] * 4 + [["revert"]] * 3
        runs = [["run", "--hang-timeout", "1"], ["run", "--variant", "silent"], ["test"]]
        learn = [["hint"], ["check"], ["check"], ["status"], ["list"], ["reveal"]]
        return rng.choice([*often, *runs, *learn, ["revert", "--keep"], ["revert", "--discard"]])

    def run(self, args: list[str], world: World, kill: random.Random | None) -> Ended:
        """Run one command, and kill some of it at a random moment if ``kill`` is given."""
        temporary = world.root.parent / "tmp"
        temporary.mkdir(exist_ok=True)
        env = os.environ | {MARK: self.mark, "TMPDIR": str(temporary)}
        started = time.perf_counter()
        with subprocess.Popen(
            [sys.executable, "-m", "breaklab", *args],
            cwd=world.root,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            killed = self._kill(process, args, kill, world) if kill else ""
            output = process.communicate(timeout=120)[0].decode(errors="replace")
        if not killed:
            self.seconds[args[0]].append(time.perf_counter() - started)
        return Ended(process.returncode, killed, output)

    def _kill(
        self, process: subprocess.Popen[Any], args: list[str], rng: random.Random, world: World
    ) -> str:
        if args[0] in ("apply", "revert", "check") and rng.random() < 0.6:
            # Aim at the writes, which are a few milliseconds of the whole.
            while process.poll() is None and not (world.root / ".breaklab/holder.json").exists():
                time.sleep(0.0002)
            wait_s = rng.uniform(0.0, 0.04)
        else:
            wait_s = self.delay(args[0], rng)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait_s)
            return ""
        target = rng.choice(["breaklab", "breaklab", "group", "child"])
        with contextlib.suppress(ProcessLookupError):
            if target == "group":
                os.killpg(process.pid, signal.SIGKILL)
            elif target == "breaklab":
                process.kill()
            else:
                below = descendants(process.pid)
                if not below:
                    return ""
                os.kill(rng.choice(below), signal.SIGKILL)
        return target

    def finish(self) -> list[list[str]]:
        """Return the commands that end any break."""
        return [["revert"], ["revert", "--discard"], ["revert", "--keep"]]

    def survivors(self) -> list[int]:
        """Return processes of this story that live on after ten seconds."""
        deadline = time.monotonic() + 10.0
        while (alive := marked(MARK, self.mark)) and time.monotonic() < deadline:
            time.sleep(0.02)
        return alive
