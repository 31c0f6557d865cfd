"""Warm parents shared by the tests of a session, and scripts for ranks to run."""

from __future__ import annotations

import os
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from breaklab.ranks.jobs import RunJob
from breaklab.ranks.warm import WarmParent


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmParent]:
    """A warm parent without torch: for scripts that communicate with nobody."""
    with WarmParent("", ()) as parent:
        yield parent


@pytest.fixture(scope="session")
def warm_torch() -> Iterator[WarmParent]:
    """A warm parent with torch, as labs have it."""
    with WarmParent("", ("torch", "torch.distributed")) as parent:
        yield parent


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., RunJob]:
    """Write a script and return the job that runs it; keyword arguments go to the job."""

    def make(code: str, **options: object) -> RunJob:
        (tmp_path / "script.py").write_text(textwrap.dedent(code))
        settings: dict[str, object] = {"hang_timeout_s": 30.0, "total_timeout_s": 60.0, **options}
        return RunJob(cwd=tmp_path, source=tmp_path, script="script.py", **settings)  # type: ignore[arg-type]

    return make


def wait_until(condition: Callable[[], object], timeout_s: float = 20.0) -> None:
    """Poll ``condition`` until it holds; fail when it never does."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "never became true"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether ``pid`` runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def pids_in(folder: Path) -> list[int]:
    """The pids that processes left as names of files in ``folder``."""
    return [int(name) for name in os.listdir(folder)] if folder.is_dir() else []  # noqa: PTH208
