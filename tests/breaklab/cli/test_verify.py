"""verify, lint and doctor: what an instructor reads, and the exit codes that CI sees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

Breaklab = Callable[..., Any]


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_break_that_keeps_its_promises_is_proven_and_the_tree_not_changed(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    before = {path: path.read_bytes() for path in tiny_project.rglob("*.py")}
    lines = breaklab("verify", "35-02").out.splitlines()
    assert lines[0].startswith("35-02  proven  ")
    assert lines[-1] == "1 of 1 break proven"
    assert {path: path.read_bytes() for path in tiny_project.rglob("*.py")} == before


def test_without_an_id_the_applied_break_is_proven(breaklab: Breaklab) -> None:
    breaklab("apply", "35-02")
    answer = breaklab("verify", "--json").json
    assert answer["proven"] is True
    assert [proof["bug_id"] for proof in answer["proofs"]] == ["35-02"]


def test_with_all_every_break_is_proven_also_while_one_is_applied(breaklab: Breaklab) -> None:
    breaklab("apply", "35-02")
    answer = breaklab("verify", "--all", "--jobs", "2", "--json").json
    assert [(proof["bug_id"], proof["proven"]) for proof in answer["proofs"]] == [
        ("35-01", True),
        ("35-02", True),
    ]
    proof = answer["proofs"][0]
    assert set(proof) == {"bug_id", "proven", "seconds", "checks", "phases", "red"}
    assert all(phase["seconds"] >= 0 for phase in proof["phases"])


def test_a_promise_that_is_not_kept_is_named_and_exits_1(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    spec = tiny_project / "breaks" / "35-02.yaml"
    change(spec, "outcome: wrong", "outcome: crash")
    out = breaklab("verify", "35-02", code=1).out
    assert "35-02  NOT PROVEN" in out
    assert "run:silent: promised crash, was wrong" in out
    assert "0 of 1 break proven" in out


def test_a_spec_that_cannot_be_used_is_not_proven(breaklab: Breaklab, tiny_project: Path) -> None:
    (tiny_project / "breaks" / "35-01.yaml").unlink()
    (tiny_project / "breaks" / "35-03.yaml").write_text("format: 1\nbug-id: 35-03\n")
    ran = breaklab("verify", "--all", code=1)
    assert "35-03.yaml:1:1: the key `slug` is missing" in ran.err
    assert "1 of 2 breaks proven" in ran.out


def test_shards_on_several_machines_are_merged_into_one_report(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    stall = "    - {variant: stall, args: [--mode, wait], outcome: stall, at_step: 1, "
    stall += "output: starting all-reduce}\n"
    change(tiny_project / "breaks" / "35-01.yaml", stall, "")  # it would take 15 seconds
    for part in ("1/2", "2/2"):
        out = breaklab("verify", "--shard", part, "--json").out
        (tiny_project / f"part-{part[0]}.json").write_text(out)
    parts = ("part-1.json", "part-2.json")
    answer = breaklab("verify", "--merge", *parts, "--json").json
    assert (answer["proven"], answer["missing"]) == (True, [])
    assert [proof["bug_id"] for proof in answer["proofs"]] == ["35-01", "35-02"]
    out = breaklab("verify", "--merge", *parts, "--junit", "proofs.xml").out
    assert out.endswith("2 of 2 breaks proven\n")
    assert "2 breaks in " in out
    assert " in 2 shards: " in out
    suites = ElementTree.parse(tiny_project / "proofs.xml").getroot()
    assert [suite.get("name") for suite in suites] == ["35-01", "35-02"]
    ran = breaklab("verify", "--merge", "part-2.json", code=1)
    assert "No shard proved 35-0" in ran.out
    assert ran.out.endswith("1 of 2 breaks proven\n")


def test_a_test_that_is_red_only_sometimes_is_found_by_repeating(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    (tiny_project / "tests" / "test_moody.py").write_text(
        "from pathlib import Path\n"
        "from tiny.data import mean\n\n\n"
        "def test_moody():\n"
        "    count = Path(__file__).with_name('count')\n"
        "    if mean([[1] * 12]) != 1:\n"
        "        count.write_text(count.read_text() + 'x' if count.exists() else 'x')\n"
        "        assert len(count.read_text()) % 2 == 0\n"
    )
    spec = tiny_project / "breaks" / "35-02.yaml"
    change(spec, "  red:\n", "  red:\n    - tests/test_moody.py::test_moody\n")
    assert "35-02  proven" in breaklab("verify", "35-02").out
    out = breaklab("verify", "35-02", "--repeat", "3", code=1).out
    assert "R6: tests/test_moody.py::test_moody went red in 2 of 3 rounds\n" in out
    change(spec, "expect:\n", "waive: {R6: it is moody}\nexpect:\n")
    out = breaklab("verify", "35-02", "--repeat", "3").out
    assert "R6 waived: it is moody (tests/test_moody.py::test_moody went red" in out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--shard", "3/2"), "3/2 is no shard; write 2/5 for the second of five"),
        (("--shard", "two"), "two is no shard"),
        (("--junit", "nowhere/proofs.xml"), "nowhere does not exist"),
        (("--merge",), "--merge needs at least one file"),
        (("--merge", "pyproject.toml"), "pyproject.toml is no report of verify"),
    ],
)
def test_what_verify_cannot_use_is_told_before_anything_runs(
    breaklab: Breaklab, args: tuple[str, ...], message: str
) -> None:
    assert message in breaklab("verify", *args, code=2).err


def test_lint_of_good_specs_finds_nothing(breaklab: Breaklab) -> None:
    assert breaklab("lint").out == "2 specs, 0 findings\n"
    assert breaklab("lint", "--json").json == {"findings": []}


def test_lint_names_place_rule_and_remedy_and_exits_1(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    spec = tiny_project / "breaks" / "35-01.yaml"
    change(spec, "slug: short-shard", "slgu: short-shard")
    out = breaklab("lint", str(spec), code=1).out
    assert f"{spec}:3:1: unknown key `slgu` [unknown-key]\n  did you mean `slug`?\n" in out
    assert out.endswith("1 spec, 2 findings\n")
    (first, _second) = breaklab("lint", "--json", code=1).json["findings"]
    assert set(first) == {"path", "line", "column", "rule", "message", "hint"}


def test_lint_speaks_to_ci(breaklab: Breaklab, tiny_project: Path) -> None:
    change(tiny_project / "breaks" / "35-01.yaml", "slug: short-shard", "slgu: short-shard")
    github = breaklab("lint", "--format", "github", code=1).out
    assert "::error file=breaks/35-01.yaml,line=1,col=1,title=breaklab missing-key::" in github
    sarif = breaklab("lint", "--format", "sarif", code=1).json
    assert sarif["version"] == "2.1.0"


def test_lint_of_a_path_that_does_not_exist_says_so(breaklab: Breaklab) -> None:
    assert "nowhere.yaml does not exist" in breaklab("lint", "nowhere.yaml", code=2).err


def test_doctor_looks_at_everything_that_breaklab_leans_on(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    findings = breaklab("doctor", "--json").json["findings"]
    names = [each["name"] for each in findings]
    assert names == [
        *("python", "platform", "git", "cores", "/dev/shm", "loopback"),
        *("torch", "gloo", "recorder", "project", "state", "lock", "lab tiny", "breaks"),
    ]
    assert not [each for each in findings if each["level"] == "FAIL"]
    assert str(tiny_project) in findings[names.index("project")]["seen"]


def test_doctor_outside_a_project_says_what_is_missing(
    breaklab: Breaklab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    out = breaklab("doctor", code=2).out
    assert "FAIL  project      no breaklab project in" in out
    assert "[tool.breaklab]" in out


def test_doctor_counts_specs_that_cannot_be_used(breaklab: Breaklab, tiny_project: Path) -> None:
    (tiny_project / "breaks" / "35-03.yaml").write_text("format: 1\n")
    out = breaklab("doctor").out
    assert "warn  breaks       2 usable, 1 not" in out
