from __future__ import annotations

import pytest

from breaklab.errors import RunError
from breaklab.model import Outcome
from breaklab.prove.controls import Controls
from breaklab.prove.observe import observe
from breaklab.spec.project import find_project, load_labs

FILE = "src/tiny/data.py"


@pytest.fixture
def seen(tiny_project, warm):
    """What is observed after a change of the tiny lab that its author has made in the tree."""

    def run(old, new, args=()):
        source = tiny_project / "lab" / FILE
        pristine = source.read_bytes()
        broken = pristine.replace(old, new)
        assert broken != pristine
        source.write_bytes(broken)
        project = find_project(tiny_project)
        lab = load_labs(project)[0]
        overlay = {f"lab/{FILE}": pristine}
        controls = Controls(project, lab, overlay, hang_timeout_s=1.0)
        return observe(project, lab, FILE, broken, warm, controls, args=args)

    return run


def test_red_tests_and_the_outcome_of_a_stall_are_seen(seen):
    found = seen(b"return mine", b"return mine[: -1 if rank == 0 else None]", ("--mode", "wait"))
    assert found.red == (
        "tests/test_shards.py::test_every_number_is_seen_once",
        "tests/test_shards.py::test_ranks_own_equally_many",
    )
    assert (found.outcome, found.at_step) == (Outcome.STALL, 1)


def test_wrong_numbers_are_seen_beside_the_pristine_run(seen):
    found = seen(b"/ NUM_NUMBERS", b"/ (NUM_NUMBERS - 1)", ("--mode", "silent"))
    assert found.red == ("tests/test_shards.py::test_mean_of_shards_is_mean_of_all",)
    assert found.outcome is Outcome.WRONG


def test_change_that_changes_nothing_is_healthy(seen):
    found = seen(b"return mine", b"return list(mine)", ("--mode", "silent"))
    assert (found.red, found.outcome) == ((), Outcome.HEALTHY)


def test_lab_that_is_not_green_before_the_change_is_refused(seen, tiny_project):
    (tiny_project / "tests/test_red.py").write_text("def test_red(): assert False\n")
    with pytest.raises(RunError, match="pristine lab is not green"):
        seen(b"return mine", b"return mine[1:]")
