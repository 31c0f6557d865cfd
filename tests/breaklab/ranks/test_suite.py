"""pytest in a fork of the warm parent: what it runs, what it reports, and what can't change it."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from breaklab.errors import RunError
from breaklab.ranks.jobs import TestJob, TestOutcome, TestReport, TestResult
from breaklab.ranks.warm import WarmParent

MakeTests = Callable[..., TestJob]


@pytest.fixture
def tests_of(tmp_path: Path) -> MakeTests:
    """Write a project with one test file and return the job that runs it."""

    def make(code: str, *, timeout_s: float = 60.0, targets: tuple[str, ...] = ()) -> TestJob:
        folder = tmp_path / "tests" / "phase35"
        folder.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src").mkdir(exist_ok=True)
        (folder / "test_x.py").write_text(textwrap.dedent(code))
        return TestJob(tmp_path, tmp_path / "src", targets or ("tests/phase35",), timeout_s)

    return make


def outcomes(report: TestReport) -> dict[str, TestOutcome]:
    return {result.nodeid.partition("::")[2]: result.outcome for result in report.results}


def test_each_kind_of_outcome_is_told_apart(warm: WarmParent, tests_of: MakeTests) -> None:
    report = warm.run_tests(
        tests_of(
            """
            import pytest
            @pytest.fixture
            def broken(): raise OSError("set-up")
            @pytest.fixture
            def leaky(): yield; raise OSError("tear-down")
            @pytest.mark.parametrize("x", [1, 2])
            def test_param(x): assert x == 1, "two is not one"
            def test_set_up(broken): pass
            def test_tear_down(leaky): pass
            def test_both(leaky): assert False, "body"
            def test_skip(): pytest.skip("why not")
            @pytest.mark.xfail(strict=True)
            def test_expected(): assert False
            @pytest.mark.xfail(strict=True)
            def test_unexpected(): pass
            """
        )
    )
    assert outcomes(report) == {
        "test_param[1]": TestOutcome.PASSED,
        "test_param[2]": TestOutcome.FAILED,
        "test_set_up": TestOutcome.ERROR,
        "test_tear_down": TestOutcome.ERROR,
        "test_both": TestOutcome.FAILED,
        "test_skip": TestOutcome.SKIPPED,
        "test_expected": TestOutcome.SKIPPED,
        "test_unexpected": TestOutcome.FAILED,
    }
    by_name = {result.nodeid: result for result in report.results}
    failed = by_name["tests/phase35/test_x.py::test_param[2]"]
    assert failed.reason == "AssertionError: two is not one"
    assert "assert 2 == 1" in failed.message
    assert by_name["tests/phase35/test_x.py::test_skip"].reason == "Skipped: why not"
    assert by_name["tests/phase35/test_x.py::test_both"].reason == "AssertionError: body"
    assert report.exit_code == 1
    assert not report.green
    assert "two is not one" in report.output


def test_only_a_run_with_a_passing_test_is_green(warm: WarmParent, tests_of: MakeTests) -> None:
    assert warm.run_tests(tests_of("def test_a(): pass")).green
    empty = warm.run_tests(tests_of("x = 1"))
    assert (empty.green, empty.exit_code, empty.results) == (False, 5, ())


def test_a_node_id_selects_one_test(warm: WarmParent, tests_of: MakeTests) -> None:
    code = "def test_a(): pass\ndef test_b(): assert 0"
    report = warm.run_tests(tests_of(code, targets=("tests/phase35/test_x.py::test_a",)))
    assert [result.nodeid for result in report.results] == ["tests/phase35/test_x.py::test_a"]


def test_a_file_that_cannot_be_collected_is_an_error(warm: WarmParent, tests_of: MakeTests) -> None:
    report = warm.run_tests(tests_of("import no_such_module"))
    assert report.red == ("tests/phase35/test_x.py",)
    assert report.results[0].outcome is TestOutcome.ERROR
    assert "no_such_module" in report.results[0].message


def test_a_target_that_does_not_exist_is_not_green(warm: WarmParent, tests_of: MakeTests) -> None:
    report = warm.run_tests(tests_of("", targets=("tests/nowhere.py",)))
    assert not report.green
    assert report.exit_code == 4
    assert "nowhere.py" in report.output


def test_the_time_limit_keeps_the_results_so_far_and_names_the_test_that_hung(
    warm: WarmParent, tests_of: MakeTests
) -> None:
    code = """
    import signal
    def test_quick(): pass
    def test_hangs(): signal.pause()
    def test_never(): pass
    """
    report = warm.run_tests(tests_of(code, timeout_s=1.5))
    assert report.timed_out
    assert outcomes(report) == {
        "test_quick": TestOutcome.PASSED,
        "test_hangs": TestOutcome.ERROR,
    }
    assert "time limit" in report.results[1].reason


def test_a_test_that_kills_pytest_is_named(warm: WarmParent, tests_of: MakeTests) -> None:
    report = warm.run_tests(tests_of("import os\ndef test_dies(): os.abort()"))
    assert report.exit_code == -6
    assert report.red == ("tests/phase35/test_x.py::test_dies",)
    assert not report.timed_out


def test_results_arrive_while_the_tests_run(
    warm: WarmParent, tests_of: MakeTests, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "gate")
    seen: list[TestResult] = []

    def on_result(result: TestResult) -> None:
        seen.append(result)
        if result.nodeid.endswith("test_a"):
            (tmp_path / "gate").write_text("go")  # test_b only goes on when test_a was seen

    code = "def test_a(): pass\ndef test_b(): assert open('gate').read() == 'go'"
    report = warm.run_tests(tests_of(code), on_result)
    assert report.green
    assert tuple(seen) == report.results


def test_the_source_of_the_job_is_what_runs_and_is_reported(
    warm: WarmParent, tests_of: MakeTests, tmp_path: Path
) -> None:
    job = tests_of("import thing\nfrom pack import x\ndef test_a(): assert thing.y == x == 1")
    (job.source / "thing.py").write_text("y = 1")
    (job.source / "unused.py").write_text("")
    (job.source / "pack").mkdir()
    (job.source / "pack" / "__init__.py").write_text("x = 1")
    report = warm.run_tests(job)
    assert report.green
    assert report.origins == {
        "thing": str(job.source / "thing.py"),
        "pack": str(job.source / "pack" / "__init__.py"),
    }
    (job.source / "thing.py").write_text("y = 2")
    assert not warm.run_tests(job).green
    assert list(tmp_path.rglob("*.pyc")) == []


def test_settings_of_the_project_do_not_change_what_is_run(
    warm: WarmParent, tests_of: MakeTests, tmp_path: Path
) -> None:
    job = tests_of("def test_a(): pass\ndef test_b(): pass")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -k test_a -p no:terminal\n")
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = '--fail'\n")
    assert set(outcomes(warm.run_tests(job))) == {"test_a", "test_b"}


def test_a_conftest_above_the_root_is_not_read(
    warm: WarmParent, tests_of: MakeTests, tmp_path: Path
) -> None:
    job = tests_of("def test_a(): pass")
    inner = TestJob(tmp_path / "tests", job.source, ("phase35",), 60.0)
    (tmp_path / "conftest.py").write_text("raise OSError")
    report = warm.run_tests(inner)
    assert report.green
    assert report.results[0].nodeid == "phase35/test_x.py::test_a"
    (tmp_path / "tests" / "conftest.py").write_text("raise OSError")
    assert not warm.run_tests(inner).green


def test_the_run_ranks_fixture_is_there(warm: WarmParent, tests_of: MakeTests) -> None:
    assert warm.run_tests(tests_of("def test_a(run_ranks): pass")).green


def test_a_suite_leaves_no_temporary_folder(
    warm: WarmParent, tests_of: MakeTests, tmp_path: Path
) -> None:
    code = "def test_a(tmp_path): (tmp_path / 'x').write_text('x'); print(tmp_path); assert 0"
    report = warm.run_tests(tests_of(code))
    folder = Path(report.output.partition("PosixPath('")[2].partition("')")[0])
    assert folder.name == "test_a0"
    assert not folder.exists()


def test_endless_output_is_bounded(warm: WarmParent, tests_of: MakeTests) -> None:
    code = (
        "import os\ndef test_a():\n    for _ in range(2000): os.write(2, b'x' * 1000)\n    assert 0"
    )
    report = warm.run_tests(tests_of(code))
    assert len(report.output) < 400_000
    assert len(report.results[0].message) < 30_000


def test_two_suites_at_once_keep_their_results_apart(warm: WarmParent, tmp_path: Path) -> None:
    def run(number: int) -> tuple[str, ...]:
        root = tmp_path / str(number)
        root.mkdir()
        (root / "test_x.py").write_text(f"def test_{number}(): assert {number} == 1")
        return warm.run_tests(TestJob(root, root, ("test_x.py",), 60.0)).red

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(run, (1, 2))) == [(), ("test_x.py::test_2",)]


def test_an_interpreter_without_pytest_is_named(tests_of: MakeTests, tmp_path: Path) -> None:
    # A module of that name that can't be imported stands for none at all.
    (tmp_path / "pytest.py").write_text("raise ImportError")
    job = tests_of("")
    with (
        WarmParent("", (), env={"PYTHONPATH": str(tmp_path)}) as parent,
        pytest.raises(RunError, match="no pytest"),
    ):
        parent.run_tests(job)


def test_a_lab_module_in_preload_is_refused(tests_of: MakeTests, tmp_path: Path) -> None:
    job = tests_of("import thing\ndef test_a(): pass")
    (job.source / "thing.py").write_text("")
    with (
        WarmParent("", ("thing",), env={"PYTHONPATH": str(job.source)}) as parent,
        pytest.raises(RunError, match="thing"),
    ):
        parent.run_tests(job)
