"""Any fix that meets every invariant counts; deleting tests or doing nothing does not."""

from __future__ import annotations

import pytest

from breaklab.inject.edit import inject
from breaklab.prove.check import check_fix
from breaklab.spec.catalogue import load_catalogue
from breaklab.spec.project import find_project, lab_of, source_file
from breaklab.tree.workspace import Workspace


@pytest.fixture
def judged(tiny_project, warm):
    """Apply 35-01, let ``edit(source, tests)`` change files, and judge."""

    def run(edit):
        project = find_project(tiny_project)
        spec = load_catalogue(project).find("35-01")
        lab = lab_of(project, spec)
        file = source_file(lab, spec)
        with Workspace.open(project) as workspace:
            broken = inject(file.read_bytes(), spec.inject).source
            active = workspace.apply(lab, spec.bug_id, file, broken)
        edit(file, tiny_project / "tests" / "test_shards.py")
        return check_fix(project, lab, active, warm)

    return run


def replaced(file, old, new):
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def test_an_untouched_break_is_not_solved(judged):
    verdict = judged(lambda source, tests: None)
    assert verdict.untouched
    assert not verdict.solved
    assert verdict.report is None  # no need to run what apply has broken


def test_the_original_fix_is_solved_and_recognised(judged):
    verdict = judged(
        lambda source, tests: replaced(source, "    if rank == 0:\n        mine = mine[:-1]\n", "")
    )
    assert verdict.solved
    assert verdict.equals_original


def test_another_fix_is_solved_too(judged):
    verdict = judged(lambda source, tests: replaced(source, "mine[:-1]", "mine[:]"))
    assert verdict.solved
    assert not verdict.equals_original


def test_a_wrong_fix_is_not_solved(judged):
    verdict = judged(lambda source, tests: replaced(source, "rank == 0", "rank == 1"))
    assert not verdict.solved
    assert not verdict.untouched


def test_changing_the_tests_until_they_pass_does_not_solve(judged):
    def edit(source, tests):
        tests.write_text("from tiny.data import shard\n\ndef test_nothing():\n    assert shard\n")
        replaced(source, "mine[:-1]", "mine[:-1] ")

    verdict = judged(edit)
    assert verdict.report.green
    assert verdict.changed_tests == ("tests/test_shards.py",)
    assert not verdict.solved
