"""Run commands of the workspace in processes of their own, and kill them at a given step.

Reads one JSON object a line: ``root``, ``command``, and maybe ``kill_at``, the number of the step
at which the command's process sends itself SIGKILL. Answers with the process's exit code and the
steps it passed. Imports once and forks for each command, since a walk takes hundreds.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import filelock  # noqa: F401 - else each command would import it anew

from breaklab.errors import TreeError
from breaklab.model import Entrypoint, Lab, Project, Text
from breaklab.tree import atomic
from breaklab.tree.workspace import RevertHow, Workspace, recover_if_needed


def main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            os._exit(_work(order, writer))
        os.close(writer)
        with os.fdopen(reader) as pipe:
            steps = pipe.read().splitlines()
        _pid, status = os.waitpid(pid, 0)
        print(json.dumps({"exit": os.waitstatus_to_exitcode(status), "steps": steps}), flush=True)


def _work(order: dict[str, Any], writer: int) -> int:
    passed = 0

    def on_step(name: str) -> None:
        nonlocal passed
        os.write(writer, name.encode() + b"\n")
        if passed == order.get("kill_at"):
            os.kill(os.getpid(), signal.SIGKILL)
        passed += 1

    atomic.on_step = on_step
    try:
        _command(order["command"])(Path(order["root"]))
    except TreeError as error:
        print(error.message, file=sys.stderr)
        return int(error.exit_code)
    return 0


def _command(name: str) -> Callable[[Path], object]:
    how = RevertHow(name) if name in list(RevertHow) else None
    if how is not None:
        return lambda root: _in_workspace(root, lambda workspace: workspace.revert(how))
    return {
        "apply": _apply,
        "solve": lambda root: _in_workspace(root, lambda each: each.mark_solved("35-01")),
        "recover": lambda root: recover_if_needed(_project(root)),
    }[name]


def _apply(root: Path) -> None:
    """Apply ``broken.py``, which lies in the project's root, as the bug it names."""
    lab = Lab(
        root=root / "labs/tiny",
        name="tiny",
        title=Text({"en": "Tiny"}),
        source=root / "labs/tiny/src",
        tests=root / "tests/tiny",
        entrypoint=Entrypoint(module="tiny.train"),
        step_line="",
    )
    (source,) = (root / "labs/tiny/src/tiny").glob("*.py")
    broken = (root / "tests/broken").read_bytes()
    _in_workspace(root, lambda workspace: workspace.apply(lab, "35-01", source, broken))


def _in_workspace(root: Path, act: Callable[[Workspace], object]) -> None:
    with Workspace.open(_project(root)) as workspace:
        act(workspace)


def _project(root: Path) -> Project:
    return Project(root, (root / "labs/tiny",), ())


if __name__ == "__main__":
    main()
