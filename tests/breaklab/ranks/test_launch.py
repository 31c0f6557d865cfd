"""From a lab to a job, and a whole lab run with its numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from breaklab.errors import RunError
from breaklab.model import Entrypoint, Lab, Metrics, Outcome, Text
from breaklab.ranks.launch import lab_job, run_lab, script_job, time_limit, warm_parent
from breaklab.ranks.metrics import read_metrics
from breaklab.ranks.outcome import judge
from breaklab.ranks.warm import WarmParent


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(
        root=tmp_path,
        name="tiny",
        title=Text({}),
        source=tmp_path / "src",
        tests=tmp_path / "tests",
        entrypoint=Entrypoint("tiny.train", args=("--a", "1"), num_ranks=3),
        step_line=r"step (?P<step>\d+)",
        metrics=Metrics(("--metrics", "{dir}"), agree=("x",), compare=("x",)),
    )


def test_arguments_of_the_run_come_after_the_lab_s_and_before_the_metrics(lab: Lab) -> None:
    job = lab_job(lab, args=("--a", "2"), metrics_dir=Path("/m"))
    assert job.args == ("--a", "1", "--a", "2", "--metrics", "/m")
    assert (job.module, job.script, job.num_ranks) == ("tiny.train", "", 3)
    assert (job.cwd, job.source, job.metrics_dir) == (lab.root, lab.source, Path("/m"))
    assert job.step_line == lab.step_line


def test_without_a_folder_or_metrics_no_numbers_are_asked_for(lab: Lab) -> None:
    for job in (
        lab_job(lab, num_ranks=2),
        lab_job(replace(lab, metrics=None), num_ranks=2, metrics_dir=Path("/m")),
    ):
        assert job.args == ("--a", "1")
        assert job.metrics_dir is None
        assert job.num_ranks == 2


def test_a_script_is_an_entrypoint_too(lab: Lab) -> None:
    script = replace(lab, entrypoint=Entrypoint("", script="train.py"))
    job = lab_job(script)
    assert (job.module, job.script) == ("", "train.py")


def test_a_lab_is_run_and_judged_by_its_numbers(lab: Lab) -> None:
    (lab.source / "tiny").mkdir(parents=True)
    (lab.source / "tiny" / "train.py").write_text(
        "import json, os, sys\n"
        "rank, folder = os.environ['RANK'], sys.argv[sys.argv.index('--metrics') + 1]\n"
        "with open(f'{folder}/rank{rank}.jsonl', 'w') as file:\n"
        "    for step in range(3):\n"
        "        x = int(rank) if step == 2 and '--diverge' in sys.argv else 0\n"
        "        x = x + (7 if '--wrong' in sys.argv else 0)\n"
        "        print(f'step {step}')\n"
        "        file.write(json.dumps({'step': step, 'x': x}) + '\\n')\n"
    )
    with warm_parent(lab) as warm:
        healthy = run_lab(warm, lab)
        assert healthy.last_step == 2
        assert set(healthy.metrics) == {0, 1, 2}
        assert judge(healthy, lab.metrics, healthy).outcome is Outcome.HEALTHY
        diverged = judge(run_lab(warm, lab, args=("--diverge",)), lab.metrics, healthy)
        assert (diverged.outcome, diverged.step) == (Outcome.DIVERGED, 2)
        wrong = judge(run_lab(warm, lab, args=("--wrong",)), lab.metrics, healthy)
        assert (wrong.outcome, wrong.step) == (Outcome.WRONG, 0)


def test_the_time_limit_has_a_factor_and_a_floor() -> None:
    assert time_limit(0.3) == 20.0
    assert time_limit(60.0) == 300.0


def test_metrics_files_that_are_missing_torn_or_odd_are_read_as_far_as_they_go(
    tmp_path: Path,
) -> None:
    (tmp_path / "rank0.jsonl").write_bytes(b'{"step": 0, "x": NaN}\n\xff\xfe\n7\n\n{"step": 1')
    (tmp_path / "rank2.jsonl").write_bytes(b"")
    found = read_metrics(tmp_path, 3)
    assert set(found) == {0, 2}
    assert [row["step"] for row in found[0]] == [0]
    assert found[2] == ()
    assert read_metrics(None, 3) == {}


def test_metrics_of_a_hostile_size_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("breaklab.ranks.metrics.MAX_ROWS", 5)
    (tmp_path / "rank0.jsonl").write_text('{"step": 0}\n' * 100)
    assert len(read_metrics(tmp_path, 1)[0]) == 5
    monkeypatch.setattr("breaklab.ranks.metrics.MAX_BYTES", 25)
    assert len(read_metrics(tmp_path, 1)[0]) == 2
    monkeypatch.setattr("breaklab.ranks.metrics.MAX_BYTES", 64_000_000)
    (tmp_path / "rank0.jsonl").write_text("[" * 3_000_000)
    assert read_metrics(tmp_path, 1)[0] == ()


def test_a_script_that_is_no_lab_runs_as_torchrun_would_run_it(
    warm: WarmParent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "beside.py").write_text("x = 5")
    script = tmp_path / "scripts" / "train.py"
    script.write_text(
        "import os, sys, beside\nprint('Step: 12', beside.x, sys.argv[1:], os.getcwd())"
    )
    monkeypatch.chdir(tmp_path)
    report = warm.run_ranks(script_job(Path("scripts/train.py"), args=("--a",), num_ranks=1))
    assert [line.text for line in report.lines] == [f"Step: 12 5 ['--a'] {tmp_path}"]
    assert report.last_step == 12


def test_a_script_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"nothing\.py"):
        script_job(tmp_path / "nothing.py")
