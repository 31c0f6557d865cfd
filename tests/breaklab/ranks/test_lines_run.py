"""Which lines a test ran, as the control run of a proof reports them."""

from __future__ import annotations

import textwrap
from pathlib import Path

from breaklab.ranks.jobs import TestJob
from breaklab.ranks.warm import WarmParent

THING = """
def double(x):
    if x > 3:
        return 7
    return x * 2
"""
TESTS = """
import thing

def test_small():
    assert thing.double(1) == 2

def test_large():
    assert thing.double(9) == 7

def test_forked(run_ranks):
    assert run_ranks(thing.double, world_size=2, args=(9,)) == [7, 7]

def test_nothing():
    pass
"""


def test_each_test_is_told_the_lines_it_ran_also_in_its_ranks(
    warm_torch: WarmParent, tmp_path: Path
) -> None:
    source, tests = tmp_path / "src", tmp_path / "tests"
    source.mkdir()
    tests.mkdir()
    (source / "thing.py").write_text(textwrap.dedent(THING).lstrip())
    (tests / "test_thing.py").write_text(textwrap.dedent(TESTS))
    job = TestJob(tmp_path, source, ("tests",), 60.0, trace_lines=True)
    report = warm_torch.run_tests(job)
    assert report.green, report.output
    runs = {nodeid.partition("::")[2]: set(run) for nodeid, run in report.lines_run.items()}
    assert runs["test_small"] == {"thing.py:2", "thing.py:4"}
    assert runs["test_large"] == {"thing.py:2", "thing.py:3"}
    assert runs["test_forked"] == {"thing.py:2", "thing.py:3"}
    assert "test_nothing" not in runs
