"""The warm parent itself: what it may have done before it forks, and errors when it can't start."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from breaklab.errors import RunError
from breaklab.ranks.jobs import RunJob
from breaklab.ranks.warm import WarmParent
from tests.breaklab.ranks.conftest import is_alive, wait_until


def test_a_warm_parent_of_torch_has_one_thread(warm_torch: WarmParent, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("")
    warm_torch.run_ranks(RunJob(tmp_path, tmp_path, script="script.py", num_ranks=1))
    assert os.listdir(f"/proc/{warm_torch.pid}/task") == [str(warm_torch.pid)]  # noqa: PTH208


def test_no_kernel_runs_while_a_warm_parent_imports() -> None:
    code = """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from breaklab.ranks.host import preload
    calls = []
    class Record(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            calls.append(str(function))
            return function(*args, **(kwargs or {}))
    with Record():
        preload(("torch", "torch.distributed", "torch.optim"))
        recorded = list(calls)
        torch.ones(2) + 1
    assert calls != recorded, "the record sees nothing"
    print(recorded)
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    output = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    ).stdout
    # `empty` and `detach` allocate and alias; neither computes.
    allowed = {"aten.empty.memory_format", "aten.detach.default"}
    assert set(__import__("ast").literal_eval(output)) <= allowed


def test_forked_ranks_compute_with_several_threads_each(
    warm_torch: WarmParent, tmp_path: Path
) -> None:
    # It hangs here if the parent has ever started OpenMP's threads.
    (tmp_path / "script.py").write_text(
        "import torch; torch.set_num_threads(2); a = torch.ones(600, 600)\n"
        "print(int((a @ a)[0, 0]))"
    )
    report = warm_torch.run_ranks(
        RunJob(tmp_path, tmp_path, script="script.py", hang_timeout_s=30.0)
    )
    assert [line.text for line in report.lines] == ["600", "600"]


def test_the_first_optimizer_of_a_rank_imports_nothing_more(
    warm_torch: WarmParent, tmp_path: Path
) -> None:
    (tmp_path / "script.py").write_text(
        textwrap.dedent(
            """
            import sys, torch
            before = set(sys.modules)
            torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
            print(sorted(name for name in set(sys.modules) - before if name.startswith("torch")))
            """
        )
    )
    report = warm_torch.run_ranks(RunJob(tmp_path, tmp_path, script="script.py", num_ranks=1))
    assert [line.text for line in report.lines] == ["[]"]


@pytest.mark.parametrize(
    ("files", "preload", "message", "hint"),
    [
        ({}, "no_such_module", "has no module no_such_module", "pip install no_such_module"),
        ({"a.py": "import b_missing"}, "a", "has no module b_missing", "pip install b_missing"),
        ({"a.py": "1 / 0"}, "a", "ZeroDivisionError", "lab.yaml"),
        ({"a.py": "def f(:"}, "a", "SyntaxError", "lab.yaml"),
        ({"a.py": "raise SystemExit('bye')"}, "a", "SystemExit", "lab.yaml"),
        ({"a.py": "import os; os._exit(3)"}, "a", "ended before it could start", "3.11"),
        (
            {"a.py": "import threading as t; t.Thread(target=t.Event().wait, daemon=True).start()"},
            "a",
            "module a of `preload` started threads",
            "Remove a from",
        ),
    ],
)
def test_a_preload_that_cannot_be_used_is_one_clear_line(
    tmp_path: Path, files: dict[str, str], preload: str, message: str, hint: str
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    job = RunJob(tmp_path, tmp_path, script="s.py")
    with WarmParent("", (preload,), env={"PYTHONPATH": str(tmp_path)}) as warm:
        with pytest.raises(RunError) as raised:
            warm.run_ranks(job)
        with pytest.raises(RunError) as second:
            warm.run_ranks(job)
    assert message in raised.value.message
    assert "\n" not in raised.value.message
    assert raised.value.message == second.value.message
    assert hint in raised.value.hint


def test_an_interpreter_that_is_not_there_is_named(tmp_path: Path) -> None:
    python = str(tmp_path / "no-python")
    with pytest.raises(RunError, match=r"no-python can't be started: No such file"):
        WarmParent(python, ()).__enter__()


def test_a_program_that_is_no_interpreter_is_named(tmp_path: Path) -> None:
    job = RunJob(tmp_path, tmp_path, script="s.py")
    with WarmParent("/bin/true", ()) as warm, pytest.raises(RunError, match="/bin/true ended"):
        warm.run_ranks(job)


def test_an_interpreter_without_breaklab_installed_serves(tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = str(environment / "bin" / "python")
    probe = [python, "-c", "import breaklab"]
    assert subprocess.run(probe, capture_output=True, cwd=tmp_path, check=False).returncode == 1
    (tmp_path / "script.py").write_text("import sys; print(sys.prefix)")
    with WarmParent(python, ()) as warm:
        report = warm.run_ranks(RunJob(tmp_path, tmp_path, script="script.py", num_ranks=1))
    assert [line.text for line in report.lines] == [str(environment)]


def test_settings_of_the_user_that_change_verdicts_do_not_reach_ranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONOPTIMIZE", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-x")
    monkeypatch.setenv("MASTER_PORT", "1")
    monkeypatch.setenv("KEPT", "yes")
    (tmp_path / "script.py").write_text(
        "import os, sys; print(sys.flags.optimize, os.environ.get('PYTEST_ADDOPTS'),"
        " os.environ['MASTER_PORT'] != '1', os.environ['KEPT'], '' in sys.path)"
    )
    with WarmParent("", ()) as warm:
        report = warm.run_ranks(RunJob(tmp_path, tmp_path, script="script.py", num_ranks=1))
    assert [line.text for line in report.lines] == ["0 None True yes False"]


def test_closing_twice_is_harmless_and_a_closed_one_says_so(tmp_path: Path) -> None:
    warm = WarmParent("", ())
    with warm:
        pass
    warm.close()
    with pytest.raises(RunError, match="closed"):
        warm.run_ranks(RunJob(tmp_path, tmp_path, script="s.py"))


def test_closing_does_not_wait_for_a_slow_import(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    (tmp_path / "slow.py").write_text("open('gate').read()")
    (tmp_path / "started.py").write_text("open('begun', 'w').close()")
    warm = WarmParent("", ("started", "slow"), env={"PYTHONPATH": str(tmp_path)})
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        warm.__enter__()
    wait_until(lambda: (tmp_path / "begun").exists())
    pid = warm.pid or 0
    warm.close()
    assert not is_alive(pid)


def test_many_jobs_leave_no_file_descriptor_behind(warm: WarmParent, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("print(1)")
    job = RunJob(tmp_path, tmp_path, script="script.py")

    def count(pid: int | str) -> int:
        return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208

    warm.run_ranks(job)
    gc.collect()  # what earlier tests left to the collector must not close in the middle
    before = count("self"), count(warm.pid or 0)
    for _ in range(5):
        warm.run_ranks(job)
    gc.collect()
    assert (count("self"), count(warm.pid or 0)) == before
