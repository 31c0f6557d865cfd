"""A proof believes nothing: each test tells one lie in a spec, in a lab or in its tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from breaklab.inject.diff import fix_diff
from breaklab.inject.edit import inject
from breaklab.model import Injection, Outcome, Text
from breaklab.prove.controls import Controls
from breaklab.prove.proof import prove
from breaklab.spec.catalogue import load_catalogue
from breaklab.spec.project import find_project, lab_of


@pytest.fixture
def proven(tiny_project, warm):
    """Prove a break of the tiny project after changing its spec; return the proof."""

    def run(bug_id="35-01", change=lambda spec: spec, hang_timeout_s=1.0):
        project = find_project(tiny_project)
        spec = change(load_catalogue(project).find(bug_id))
        lab = lab_of(project, spec)
        controls = Controls(project, lab, hang_timeout_s=hang_timeout_s)
        return prove(project, lab, spec, warm, controls)

    return run


def broken_promises(proof):
    return {check.name: check.detail for check in proof.checks if not check.kept}


def content(root: Path):
    return {
        path.relative_to(root): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_an_honest_break_is_proven_and_the_project_is_not_touched(proven, tiny_project):
    before = content(tiny_project)
    proof = proven()
    assert broken_promises(proof) == {}
    assert proof.proven
    assert len(proof.red) == 2
    assert content(tiny_project) == before


def test_a_replaced_expression_is_proven_too(proven):
    assert broken_promises(proven("35-02")) == {}


def test_every_phase_is_timed_once(proven):
    names = [phase.name for phase in proven().phases]
    assert names[:4] == ["controls", "transform", "apply", "test"]
    assert len(names) == len(set(names))


def test_a_red_test_that_is_not_promised_is_a_finding(proven):
    proof = proven(change=lambda spec: replace(spec, red=spec.red[:1]))
    assert "test_ranks_own_equally_many" in broken_promises(proof)["red"]


def test_a_promised_test_that_stays_green_is_a_finding(proven):
    green = "tests/test_shards.py::test_mean_of_shards_is_mean_of_all"
    proof = proven(change=lambda spec: replace(spec, red=(*spec.red, green)))
    assert green in broken_promises(proof)["red"]


def test_a_promised_test_that_does_not_exist_is_a_finding(proven):
    proof = proven(change=lambda spec: replace(spec, red=(*spec.red, "tests/test_no.py::test_no")))
    assert not proof.proven


@pytest.mark.parametrize("outcome", [Outcome.CRASH, Outcome.HEALTHY, Outcome.DIVERGED])
def test_another_outcome_than_promised_is_a_finding(proven, outcome):
    def change(spec):
        return replace(spec, runs=(replace(spec.runs[1], outcome=outcome),))

    assert f"promised {outcome}, was wrong" in broken_promises(proven(change=change))["run:silent"]


def test_another_step_or_output_than_promised_is_a_finding(proven):
    def change(spec):
        return replace(spec, runs=(replace(spec.runs[2], at_step=7, output="all is well"),))

    detail = broken_promises(proven(change=change))["run:error"]
    assert "promised at step 7, was at step 1" in detail
    assert "all is well" in detail


def test_a_fix_diff_that_git_refuses_is_a_finding(proven):
    proof = proven(change=lambda spec: replace(spec, fix_diff="remove the tweak"))
    assert "fix_diff" in broken_promises(proof)


def test_a_fix_diff_that_gives_other_bytes_is_a_finding(proven, tiny_project):
    def change(spec):
        pristine = (tiny_project / "lab" / spec.inject.file).read_bytes()
        broken = inject(pristine, spec.inject).source
        more = pristine.replace(b"return mine", b"return mine  # fixed")
        return replace(spec, fix_diff=fix_diff(broken, more, spec.inject.file))

    assert "pristine bytes" in broken_promises(proven(change=change))["fix_diff"]


def test_a_pattern_without_a_site_is_a_finding_not_an_exception(proven):
    def change(spec):
        return replace(spec, inject=replace(spec.inject, find="mine = numbers[other]"))

    assert "has no site" in broken_promises(proven(change=change))["site"]


def test_a_break_that_no_test_sees_is_a_finding(proven):
    def change(spec):
        harmless = Injection("src/tiny/data.py", "shard", spec.inject.find, code="$X = 1 + 1")
        harmless = replace(harmless, find="return mine", code="return list(mine)")
        return replace(spec, inject=harmless, red=(), runs=())

    assert {"R3", "fix_diff"} <= set(broken_promises(proven(change=change)))


def test_a_waived_rule_is_named_and_does_not_spoil_the_proof(proven):
    def change(spec):
        return replace(spec, lesson=Text({"en": "only one language"}), waive={"R8": "a draft"})

    proof = proven(change=change)
    assert proof.proven
    assert [check.waived for check in proof.checks if check.name == "R8"] == ["a draft"]


def test_a_lab_that_is_red_already_proves_nothing(proven, tiny_project):
    tests = tiny_project / "tests" / "test_shards.py"
    tests.write_text(tests.read_text() + "\n\ndef test_red():\n    assert False\n")
    assert "test_red" in broken_promises(proven())["green"]


def test_tests_that_never_import_the_lab_prove_nothing(proven, tiny_project):
    tests = tiny_project / "tests" / "test_shards.py"
    tests.write_text("def test_every_number_is_seen_once():\n    pass\n")
    broken = broken_promises(proven())
    assert "imported nothing" in broken["control:copy"]
    assert "control:red" in broken


def test_tests_that_run_another_copy_of_the_lab_prove_nothing(proven, tiny_project):
    tests = tiny_project / "tests" / "test_shards.py"
    elsewhere = tiny_project / "lab" / "src"
    tests.write_text(f"import sys\nsys.path.insert(0, {str(elsewhere)!r})\n" + tests.read_text())
    broken = broken_promises(proven())
    assert str(elsewhere) in broken["control:copy"]


def test_the_learners_own_edit_does_not_count_where_a_break_is_applied(tiny_project, warm):
    project = find_project(tiny_project)
    spec = load_catalogue(project).find("35-02")
    lab = lab_of(project, spec)
    file = "lab/src/tiny/data.py"
    pristine = (tiny_project / file).read_bytes()
    (tiny_project / file).write_bytes(b"learner's half-finished work(")
    proof = prove(project, lab, spec, warm, Controls(project, lab, {file: pristine}))
    assert proof.proven
    assert (tiny_project / file).read_bytes() == b"learner's half-finished work("
