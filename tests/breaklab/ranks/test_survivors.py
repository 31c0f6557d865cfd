"""Nothing outlives a run, whoever is killed: breaklab, the warm parent, a rank, or by Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from breaklab.errors import RunError
from breaklab.ranks.jobs import RunEvent, RunJob, TestJob
from breaklab.ranks.process import descendants
from breaklab.ranks.warm import WarmParent
from tests.breaklab.ranks.conftest import is_alive, pids_in, wait_until

MakeJob = Callable[..., RunJob]

# Each rank ignores what can be ignored and has two children: one in its group, one that left the
# session and has a child of its own. Each of the five leaves its pid in the folder `pids`.
FAMILY = """
import os, signal
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
os.makedirs("pids", exist_ok=True)
def settle():
    open(f"pids/{os.getpid()}", "w").close()
    while True:
        signal.pause()
if os.fork() == 0:
    settle()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 100)
        settle()
    settle()
print("family")
settle()
"""
NUM_PROCESSES = 2 * 4  # in a family of two ranks


def family_is_complete(folder: Path) -> bool:
    return len(pids_in(folder / "pids")) == NUM_PROCESSES


def family_is_gone(folder: Path) -> bool:
    return not any(map(is_alive, pids_in(folder / "pids")))


@contextmanager
def breaklab_running(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A breaklab of its own, in a session of its own, that runs a family of two ranks."""
    (folder / "script.py").write_text(FAMILY)
    (folder / "tmp").mkdir()
    driver = folder / "driver.py"
    driver.write_text(
        textwrap.dedent(
            """
            from pathlib import Path
            from breaklab.ranks.jobs import RunJob
            from breaklab.ranks.warm import WarmParent
            here = Path(__file__).parent
            with WarmParent("", ()) as warm:
                print("host", warm.pid, flush=True)
                report = warm.run_ranks(RunJob(here, here, script="script.py"))
                print("interrupted", report.interrupted, flush=True)
            """
        )
    )
    process = subprocess.Popen(
        [sys.executable, str(driver)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder / "tmp")},
        start_new_session=True,
    )
    with process:
        try:
            wait_until(lambda: family_is_complete(folder))
            yield process
        finally:
            process.kill()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for a family; what is left of it when a test fails is killed."""
    yield tmp_path
    for pid in pids_in(tmp_path / "pids"):
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name
)
def test_nothing_survives_when_breaklab_is_killed(folder: Path, number: signal.Signals) -> None:
    with breaklab_running(folder) as process:
        assert process.stdout is not None
        host = int(process.stdout.readline().split()[1])
        process.send_signal(number)
        wait_until(lambda: family_is_gone(folder) and not is_alive(host))
    assert os.listdir(folder / "tmp") == []  # noqa: PTH208


def test_nothing_survives_when_the_whole_process_group_is_killed(folder: Path) -> None:
    with breaklab_running(folder) as process:
        os.killpg(process.pid, signal.SIGKILL)
        wait_until(lambda: family_is_gone(folder))


@pytest.mark.parametrize("times", [1, 2])
def test_nothing_survives_ctrl_c(folder: Path, times: int) -> None:
    with breaklab_running(folder) as process:
        for _ in range(times):
            process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=30)
        assert family_is_gone(folder)  # already when breaklab ends, not some time later
    if times == 1:
        assert "interrupted True" in output
        assert process.returncode == 0


def test_nothing_survives_when_the_warm_parent_is_killed(folder: Path, job: MakeJob) -> None:
    with WarmParent("", ()) as warm:
        threading.Thread(target=_kill_when_complete, args=(folder, warm)).start()
        with pytest.raises(RunError, match="ended unexpectedly"):
            warm.run_ranks(job(FAMILY))
        wait_until(lambda: family_is_gone(folder))  # a killed process takes a moment to end
        with pytest.raises(RunError, match="ended unexpectedly"):
            warm.run_ranks(job("print(1)"))


def _kill_when_complete(folder: Path, warm: WarmParent) -> None:
    wait_until(lambda: family_is_complete(folder))
    assert warm.pid is not None
    os.kill(warm.pid, signal.SIGKILL)


def test_nothing_survives_a_rank_that_is_killed(
    folder: Path, job: MakeJob, warm: WarmParent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("breaklab.ranks.watch.PEER_GRACE_S", 0.2)
    ranks: list[int] = []

    def on_event(event: RunEvent) -> None:
        ranks.extend(event.pids)
        if event.pids:
            threading.Thread(target=kill_one).start()

    def kill_one() -> None:
        wait_until(lambda: family_is_complete(folder))
        os.kill(ranks[1], signal.SIGKILL)

    report = warm.run_ranks(job(FAMILY), None, on_event)
    assert [end.exit_code for end in report.ends] == [None, -signal.SIGKILL]
    assert family_is_gone(folder)


def test_nothing_survives_a_supervisor_that_is_killed(
    folder: Path, job: MakeJob, warm: WarmParent
) -> None:
    def kill_supervisor() -> None:
        wait_until(lambda: family_is_complete(folder))
        for pid in descendants(warm.pid or 0):
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1] == str(warm.pid):
                os.kill(pid, signal.SIGKILL)

    threading.Thread(target=kill_supervisor).start()
    report = warm.run_ranks(job(FAMILY))
    assert [end.exit_code for end in report.ends] == [None, None]
    assert family_is_gone(folder)


def test_nothing_survives_a_stall(folder: Path, job: MakeJob, warm: WarmParent) -> None:
    report = warm.run_ranks(job(FAMILY, hang_timeout_s=1.0))
    assert report.stall is not None
    assert family_is_complete(folder)
    assert family_is_gone(folder)


def test_children_that_ranks_leave_behind_end_with_a_healthy_run(
    folder: Path, job: MakeJob, warm: WarmParent
) -> None:
    code = FAMILY.replace('print("family")\nsettle()', "raise SystemExit(0)")
    report = warm.run_ranks(job(code))
    assert [end.exit_code for end in report.ends] == [0, 0]
    assert family_is_gone(folder)
    assert pids_in(folder / "pids")


def test_nothing_survives_a_test_suite_over_its_time_limit(folder: Path, warm: WarmParent) -> None:
    (folder / "test_family.py").write_text(
        f"import os\ndef test_family():\n    exec({FAMILY!r}, {{}})\n"
    )
    report = warm.run_tests(TestJob(folder, folder, ("test_family.py",), timeout_s=3.0))
    assert report.timed_out
    assert len(pids_in(folder / "pids")) == NUM_PROCESSES // 2
    assert family_is_gone(folder)


def test_closing_ends_a_run_in_another_thread(folder: Path, job: MakeJob) -> None:
    warm = WarmParent("", ())
    errors: list[RunError] = []

    def run() -> None:
        try:
            warm.run_ranks(job(FAMILY))
        except RunError as error:
            errors.append(error)

    with warm:
        thread = threading.Thread(target=run)
        thread.start()
        wait_until(lambda: family_is_complete(folder))
    thread.join(20)
    assert family_is_gone(folder)
    assert "closing" in errors[0].message
