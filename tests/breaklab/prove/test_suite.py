"""A suite that is run file by file, several at a time, comes to what one run comes to."""

from __future__ import annotations

import pytest

from breaklab.prove.suite import run_suite
from breaklab.ranks.jobs import TestJob


@pytest.fixture
def job(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "thing.py").write_text("ONE = 1\n")
    tests = tmp_path / "tests" / "deep"
    tests.mkdir(parents=True)
    (tests.parent / "test_a.py").write_text(
        "import thing\n\ndef test_one():\n    assert thing.ONE == 1\n\n"
        "def test_two():\n    assert thing.ONE == 2\n"
    )
    (tests / "test_b.py").write_text("import thing\n\ndef test_three():\n    assert thing\n")
    (tests / "test_empty.py").write_text("")
    return TestJob(tmp_path, tmp_path / "src", ("tests",), timeout_s=60.0)


def test_files_run_apart_give_the_results_of_one_run(warm, job):
    seen = []
    apart, whole = run_suite(warm, job, seen.append), warm.run_tests(job)
    assert {(r.nodeid, r.outcome) for r in apart.results} == {
        (r.nodeid, r.outcome) for r in whole.results
    }
    assert len(seen) == 3
    assert apart.red == whole.red == ("tests/test_a.py::test_two",)
    assert apart.exit_code == whole.exit_code == 1
    assert apart.origins == whole.origins


def test_a_file_without_tests_does_not_make_a_green_suite_red(warm, job):
    (job.root / "tests" / "test_a.py").unlink()
    assert run_suite(warm, job).green


def test_a_suite_without_any_test_is_not_green(warm, job):
    for file in (job.root / "tests").rglob("*.py"):
        file.write_text("")
    assert not run_suite(warm, job).green
