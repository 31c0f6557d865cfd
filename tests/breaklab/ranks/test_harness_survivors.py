"""No rank, nothing a rank forked, and no temporary folder outlives a call, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import torch.distributed as dist

from breaklab.ranks.harness import RanksFailed


def holds_on_with_children(folder: str) -> None:
    """Ignore polite signals, fork twice, say who is there, and never return."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    child = subprocess.Popen(["sleep", "600"])
    escaped = subprocess.Popen(["sleep", "600"], start_new_session=True)
    pids = (os.getpid(), os.getppid(), child.pid, escaped.pid)
    dist.barrier()
    file = Path(folder, f"{dist.get_rank()}.tmp")
    file.write_text(" ".join(map(str, pids)))
    file.rename(file.with_suffix(".pids"))
    time.sleep(600)


def forks_children_and_returns() -> list[int]:
    child = subprocess.Popen(["sleep", "600"])
    escaped = subprocess.Popen(["sleep", "600"], start_new_session=True)
    return [os.getpid(), child.pid, escaped.pid]


def forks_children_and_fails(folder: str) -> None:
    pids = forks_children_and_returns()
    Path(folder, str(dist.get_rank())).write_text(" ".join(map(str, pids)))
    dist.barrier()
    raise ValueError("after forking")


def ignores_sigterm_and_hangs(folder: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(folder, str(dist.get_rank())).write_text(str(os.getpid()))
    time.sleep(600)


def interrupts_its_caller(folder: str, caller: int) -> None:
    Path(folder, str(dist.get_rank())).write_text(str(os.getpid()))
    dist.barrier()
    if dist.get_rank() == 0:
        os.kill(caller, signal.SIGINT)
    time.sleep(600)


def gone(pids: list[int], limit_s: float = 10.0) -> list[int]:
    """Wait until all ``pids`` have ended; return those that have not."""
    deadline = time.monotonic() + limit_s
    while (alive := [pid for pid in pids if lives(pid)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return alive


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def written(folder: Path) -> list[int]:
    return [int(word) for file in folder.iterdir() for word in file.read_text().split()]


@pytest.fixture
def no_new_temp_files(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("temp")
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    # torch makes the other one, of a fixed name, whenever torch._dynamo is imported.
    left = [path.name for path in folder.iterdir()]
    assert [name for name in left if not name.startswith("torchinductor_")] == []


def test_what_ranks_forked_ends_with_a_call_that_succeeds(run_ranks, no_new_temp_files):
    pids = [pid for value in run_ranks(forks_children_and_returns, 2) for pid in value]
    assert len(pids) == 6
    assert [pid for pid in pids if lives(pid)] == []  # already when the call returns


def test_what_ranks_forked_ends_with_a_call_that_fails(run_ranks, tmp_path, no_new_temp_files):
    with pytest.raises(RanksFailed, match="after forking"):
        run_ranks(forks_children_and_fails, 2, args=(str(tmp_path),))
    assert len(written(tmp_path)) == 6
    assert [pid for pid in written(tmp_path) if lives(pid)] == []


def test_ranks_that_ignore_sigterm_end_at_the_time_limit(run_ranks, tmp_path, no_new_temp_files):
    with pytest.raises(RanksFailed, match="did not finish"):
        run_ranks(ignores_sigterm_and_hangs, 2, timeout_s=0.5, args=(str(tmp_path),))
    assert [pid for pid in written(tmp_path) if lives(pid)] == []


def test_an_interrupt_ends_the_ranks(run_ranks, tmp_path, no_new_temp_files):
    with pytest.raises(KeyboardInterrupt):
        run_ranks(interrupts_its_caller, 2, args=(str(tmp_path), os.getpid()))
    assert len(written(tmp_path)) == 2
    assert gone(written(tmp_path)) == []  # they may still be on their way out


# With a forked supervisor killed, nobody is left to find what left its process group, and with its
# caller killed as well nobody to end what did not: then only the kernel ends the ranks.
@pytest.mark.parametrize(
    ("start", "victims", "num_ended"),
    [
        ("auto", "caller", 4),
        ("auto", "supervisor", 3),
        ("auto", "caller supervisor", 2),
        ("spawn", "caller", 4),
        ("spawn", "supervisor", 4),
    ],
)
def test_nothing_is_left_when_a_process_is_killed(
    start: str, victims: str, num_ended: int, tmp_path: Path, no_new_temp_files: None
) -> None:
    everything: list[int] = []
    caller = start_caller(tmp_path, start)
    try:
        ranks = wait_for_ranks(tmp_path)
        everything = [pid for rank in ranks for pid in rank]
        if "caller" in victims:
            caller.kill()
        if "supervisor" in victims:
            os.kill(ranks[0][1], signal.SIGKILL)
        assert gone([pid for rank in ranks for pid in rank[:num_ended]]) == []
        assert caller.wait(20) != 0
    finally:
        caller.kill()
        caller.wait()
        for pid in filter(lives, everything):
            os.kill(pid, signal.SIGKILL)


def start_caller(folder: Path, start: str) -> subprocess.Popen[bytes]:
    """Start a process that calls run_ranks."""
    code = (
        "import sys; from pathlib import Path; from breaklab.ranks.harness import run_ranks;"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r});"
        f"from {Path(__file__).stem} import holds_on_with_children as work;"
        f"run_ranks(work, 2, 600.0, args=({str(folder)!r},), start={start!r})"
    )
    return subprocess.Popen([sys.executable, "-c", code], start_new_session=True)


def wait_for_ranks(folder: Path) -> list[list[int]]:
    """Return rank pid, supervisor pid, child pid, escaped child's pid for both ranks."""
    deadline = time.monotonic() + 60
    while len(files := sorted(folder.glob("*.pids"))) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return [[int(word) for word in file.read_text().split()] for file in files]
