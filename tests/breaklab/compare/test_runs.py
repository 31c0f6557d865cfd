"""Real runs: ranks of a lab that talks over gloo, healthy and broken, and what was recorded."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from breaklab.cli.app import build_app
from breaklab.ranks.warm import WarmParent
from breaklab.spec.project import find_project, load_labs
from breaklab.tree.events import read_events
from breaklab.tree.workspace import Workspace

TRAIN = """\
import argparse
import json
import os
from pathlib import Path

import torch
import torch.distributed as dist

from talk.mean import mean_over


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--metrics")
    parser.add_argument("--steps", type=int, default=4)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    param = torch.ones(3)
    with Path(options.metrics or os.devnull, f"rank{rank}.jsonl").open("a") as file:
        for step in range(options.steps):
            grad = torch.full((3,), float(rank + step))
            print(f"[rank={rank}] step {step} starting all-reduce ...", flush=True)
            dist.all_reduce(grad)
            if step == 2:
                other_sums(rank)
            param = param - 0.1 * mean_over(grad, world_size)
            row = {"step": step, "grad_norm": float(grad.norm()), "params": param.tolist()}
            file.write(json.dumps(row) + "\\n")
            file.flush()
    dist.destroy_process_group()


def other_sums(rank):
    extra = torch.zeros(5)
    dist.all_reduce(extra)


if __name__ == "__main__":
    main()
"""
MEAN = "def mean_over(total, world_size):\n    return total / world_size\n"
SPEC = """\
format: 1
bug-id: {bug_id}
slug: {slug}
family: reduction
concept: {{en: a mean divides, es: una media divide}}
symptom: {{en: "{symptom}", es: "{symptom}"}}
hidden_cause: {{en: hidden, es: oculta}}
hints: [{{en: look, es: mira}}, {{en: look again, es: mira otra vez}}]
lesson: {{en: divide once, es: divide una vez}}
sources: ["pytorch/pytorch#1 an example"]
inject:
  file: {file}
  inside: {inside}
  find: {find}
  replace_with: {code}
fix_diff: nobody applies it here
expect:
  red: [tests/test_mean.py::test_mean]
  runs:
{runs}
"""
LAB = """\
format: 1
name: talk
source: src
tests: ../tests
entrypoint: {module: talk.train, num_ranks: 2}
step_line: '^\\[rank=(?P<rank>\\d+)\\] step (?P<step>\\d+)(?: loss=(?P<loss>\\S+)| starting.*)$'
metrics:
  args: ["--metrics", "{dir}"]
  compare: [grad_norm]
  sketch: params
preload: [torch, torch.distributed]
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose lab sums over gloo; two breaks: a wrong mean, and a rank that never comes."""
    root = tmp_path_factory.mktemp("talk")
    files = {
        "pyproject.toml": '[tool.breaklab]\nlabs = ["lab"]\nbreaks = ["breaks"]\n',
        "lab/lab.yaml": LAB,
        "lab/src/talk/__init__.py": "",
        "lab/src/talk/train.py": TRAIN,
        "lab/src/talk/mean.py": MEAN,
        "tests/test_mean.py": "def test_mean():\n    pass\n",
        "breaks/35-01.yaml": SPEC.format(
            bug_id="35-01",
            slug="no-mean",
            symptom="it learns too fast",
            file="src/talk/mean.py",
            inside="mean_over",
            find="total / world_size",
            code="total * 1.0",
            runs="    - {variant: silent, args: [--steps, '3'], outcome: healthy}\n"
            "    - {variant: longer, args: [--steps, '6'], outcome: healthy}",
        ),
        "breaks/35-02.yaml": SPEC.format(
            bug_id="35-02",
            slug="absent",
            symptom="it stands still",
            file="src/talk/train.py",
            inside="other_sums",
            find="dist.all_reduce(extra)",
            code="dist.all_reduce(extra) if rank == 0 else dist.barrier()",
            runs="    - {variant: stall, args: [], outcome: stall}",
        ),
    }
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmParent]:
    """One warm parent for all commands: each would import torch anew."""
    with WarmParent("", ("torch", "torch.distributed")) as parent:
        yield parent


@pytest.fixture
def breaklab(
    project: Path, warm: WarmParent, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    monkeypatch.chdir(project)
    monkeypatch.setattr("breaklab.ranks.launch.warm_parent", lambda lab: nullcontext(warm))
    monkeypatch.delenv("BREAKLAB_LANG", raising=False)

    def run(*args: str, code: int = 0) -> Any:
        result = CliRunner().invoke(build_app("en"), list(args))
        assert result.exit_code == code, result.stdout + result.stderr
        return result

    return run


@pytest.fixture(autouse=True)
def _untouched(project: Path) -> Iterator[None]:
    """No command here may change a byte of the learner's files, or leave one."""
    kept = {path: path.read_bytes() for path in tree(project)}
    yield
    assert {path: path.read_bytes() for path in tree(project)} == kept


def tree(project: Path) -> list[Path]:
    return [path for path in sorted(project.rglob("*"))
            if path.is_file() and ".breaklab" not in path.parts]  # fmt: skip


def test_wrong_run_is_compared_to_its_end(breaklab: Callable[..., Any]) -> None:
    document = json.loads(breaklab("compare", "35-01", "--json").stdout)
    assert document["variant"] == "silent"
    assert document["healthy"]["last_step_with_numbers"] == 2
    assert document["broken"]["outcome"] == "healthy"  # the gradient itself stays right
    steps = {(row["step"], row["rank"]): row for row in document["rows"]}
    # step 0: the mean of 0 and 1 is 0.5; without it the parameter moves by 0.1 instead of 0.05.
    assert steps[0, 0]["distance"] == pytest.approx(0.05 / 0.95, rel=1e-4)
    assert steps[2, 1]["grad_norm"]["healthy"] == steps[2, 1]["grad_norm"]["broken"]


def test_another_variant_brings_its_arguments(breaklab: Callable[..., Any]) -> None:
    document = json.loads(breaklab("compare", "35-01", "--variant", "longer", "--json").stdout)
    assert document["args"] == ["--steps", "6"]
    assert document["healthy"]["last_step_with_numbers"] == 5


def test_stalled_run_is_compared_up_to_where_it_got_and_page_and_trace_show_who_waits(
    breaklab: Callable[..., Any], tmp_path: Path
) -> None:
    page, trace = tmp_path / "out.html", tmp_path / "out.json"
    ran = breaklab("compare", "35-02", "--html", str(page), "--trace", str(trace))
    assert "numbers end at step 1, the healthy run's at step 3" in ran.stdout
    events = [each for each in json.loads(trace.read_text())["traceEvents"] if each["ph"] == "X"]
    healthy = [each for each in events if each["pid"] == 0]
    assert all(each["args"]["returned"] for each in healthy)
    of_rank = [[each["name"] for each in healthy if each["tid"] == rank] for rank in (0, 1)]
    assert of_rank[0] == of_rank[1] == ["all_reduce"] * 5
    stuck = {each["tid"]: each for each in events if not each["args"]["returned"]}
    assert {rank: each["name"] for rank, each in stuck.items()} == {0: "all_reduce", 1: "barrier"}
    assert all(each["pid"] == 1 for each in stuck.values())
    assert stuck[0]["args"]["sequence"] == stuck[1]["args"]["sequence"]
    assert "5" in stuck[0]["args"]["shape"]
    assert "train.py:" in stuck[0]["args"]["source"]
    html = page.read_text()
    assert html.count('class="bar stuck"') == 2
    assert "it stands still" in html


def test_applied_break_is_compared_as_the_tree_stands(
    breaklab: Callable[..., Any], project: Path
) -> None:
    source = project / "lab/src/talk/mean.py"
    breaklab("apply", "35-01")
    try:
        broken = json.loads(breaklab("compare", "--json").stdout)
        # Halfway to a fix: what is compared is the learner's file, not the spec's break.
        source.write_text(source.read_text().replace("total * 1.0", "total / world_size"))
        fixed = json.loads(breaklab("compare", "--json").stdout)
        other = json.loads(breaklab("compare", "35-02", "--json").stdout)
    finally:
        breaklab("revert", "--discard")
    assert broken["as_it_stands"]
    assert broken["rows"][0]["distance"] > 0
    assert {row["distance"] for row in fixed["rows"]} == {0.0}
    assert not other["as_it_stands"]
    assert {row["distance"] for row in other["rows"]} == {0.0, None}  # its healthy side is pristine
    kinds = [event.kind for event in read_events(find_project(project))]
    assert kinds.count("compare") >= 3


def test_healthy_lab_that_fails_is_an_error_with_its_reason(
    breaklab: Callable[..., Any], project: Path
) -> None:
    source = project / "lab/src/talk/mean.py"
    kept = source.read_bytes()
    source.write_text('raise RuntimeError("no mean today")\n' + MEAN)
    try:
        ran = breaklab("compare", "35-02", code=2)
    finally:
        source.write_bytes(kept)
    assert "healthy lab's run is crash" in ran.stderr
    assert "no mean today" in ran.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["compare"], "no break is applied"),
        (["compare", "35-99"], "35-99"),
        (["compare", "35-01", "--variant", "none"], "no variant 'none'"),
        (["compare", "35-01", "--html", "no/such/folder/out.html"], "no such folder"),
        (["compare", "35-01", "--trace", "lab"], "no such folder, or it is one"),
    ],
)
def test_mistake_is_told_before_anything_runs(
    breaklab: Callable[..., Any], args: list[str], message: str
) -> None:
    ran = breaklab(*args, code=2)
    assert message in ran.stderr
    assert "running" not in ran.stderr


def test_lab_without_torch_is_compared_and_says_that_nothing_was_recorded(
    tiny_project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tiny_project)
    page = tmp_path / "out.html"
    result = CliRunner().invoke(build_app("en"), ["compare", "35-02", "--html", str(page)])
    assert result.exit_code == 0, result.stderr
    assert "loss on rank 0 is 6, 5.5 in the healthy run" in result.stdout
    assert "No communication was recorded" in page.read_text()


def test_name_of_a_mystery_break_is_never_told(
    tiny_project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tiny_project)
    file = tiny_project / "lab/src/tiny/data.py"
    project = find_project(tiny_project)
    (lab,) = load_labs(project)
    broken = file.read_bytes().replace(b"/ NUM_NUMBERS", b"/ (NUM_NUMBERS - 1)")
    with Workspace.open(project) as workspace:
        workspace.apply(lab, "35-02", file, broken, hidden=True)
    page = tmp_path / "out.html"
    shown = CliRunner().invoke(build_app("en"), ["compare", "--html", str(page)])
    document = CliRunner().invoke(build_app("en"), ["compare", "--json"])
    named = CliRunner().invoke(build_app("en"), ["compare", "35-02", "--json"])
    assert (shown.exit_code, document.exit_code, named.exit_code) == (0, 0, 0)
    assert "loss on rank 0 is 6, 5.5" in shown.stdout
    for text in (shown.output, document.output, page.read_text()):
        assert "35-02" not in text
        assert "short-mean" not in text
        assert "larger than it should be" not in text  # its symptom
    # Asked by name, the answer is the same as with nothing applied.
    assert not json.loads(named.stdout)["as_it_stands"]


def test_sketch_of_the_lab_keeps_distances(tmp_path: Path) -> None:
    """minidp's sketch of two models is as far apart as the models, within four standard errors."""
    code = textwrap.dedent(
        """
        import math, sys
        import torch
        from minidp.metrics import SKETCH_SIZE, params_sketch
        from minidp.model import DigitClassifier
        for seed in range(5):
            torch.manual_seed(seed)
            one, other = DigitClassifier(32), DigitClassifier(32)
            flat = [torch.cat([p.detach().flatten() for p in m.parameters()]) for m in (one, other)]
            true = float((flat[0] - flat[1]).norm())
            told = math.dist(params_sketch(one), params_sketch(other))
            assert abs(told / true - 1) < 4 / math.sqrt(2 * SKETCH_SIZE), (told, true)
            assert params_sketch(one) == params_sketch(one)
            state = torch.random.get_rng_state()
            params_sketch(one)
            assert torch.equal(state, torch.random.get_rng_state())
        """
    )
    source = Path(__file__).resolve().parents[3] / "labs/phase35/src"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
