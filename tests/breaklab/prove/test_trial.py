"""What becomes of a candidate: caught, not reached, survived, or no program at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from breaklab.errors import RunError
from breaklab.inject.operators.candidates import Candidate
from breaklab.prove import trial
from breaklab.prove.controls import Controls
from breaklab.prove.trial import Fate, Trial, try_candidate
from breaklab.ranks.warm import WarmParent
from breaklab.spec.project import find_project, load_labs

FILE = "src/tiny/data.py"
ONCE = "tests/test_shards.py::test_every_number_is_seen_once"
EQUAL = "tests/test_shards.py::test_ranks_own_equally_many"
Try = Callable[..., Trial]


@pytest.fixture
def tried(tiny_project: Path, warm: WarmParent) -> Try:
    project = find_project(tiny_project)
    lab = load_labs(project)[0]
    controls = Controls(project, lab)

    def run(old: bytes, new: bytes, *, file: str = FILE, first_red: bool = False) -> Trial:
        pristine = (lab.root / file).read_bytes()
        broken = pristine.replace(old, new)
        assert broken != pristine
        candidate = Candidate("k", file, 1, "", "other", "", pristine, broken)
        return try_candidate(project, lab, candidate, warm, controls, first_red=first_red)

    return run


def test_all_tests_that_go_red_are_found_or_the_first_one(tried: Try) -> None:
    change = (b"[rank::world_size]", b"[rank + 1:]")
    everything = tried(*change)
    assert (everything.fate, set(everything.red)) == (Fate.CAUGHT, {ONCE, EQUAL})
    first = tried(*change, first_red=True)
    assert first.fate is Fate.CAUGHT
    assert len(first.red) == 1


def test_a_change_that_does_the_same_survives_the_tests_that_reach_it(tried: Try) -> None:
    found = tried(b"return mine", b"return list(mine)", first_red=True)
    assert (found.fate, found.red) == (Fate.SURVIVED, ())


def test_a_line_that_no_test_runs_is_not_reached(tried: Try) -> None:
    found = tried(b"loss = mean(shards)", b"loss = 0", file="src/tiny/train.py")
    assert (found.fate, found.red) == (Fate.NOT_REACHED, ())


def test_what_can_not_be_imported_is_no_catch(tried: Try) -> None:
    found = tried(b"NUM_NUMBERS = 12", b"NUM_NUMBERS = 12 / 0", first_red=True)
    assert found.fate is Fate.NO_IMPORT


def test_later_tests_are_run_where_the_quick_ones_stay_green(
    tried: Try, tiny_project: Path
) -> None:
    more = "".join(f"\n\ndef test_quick_{n}():\n    shard(0, 2)\n" for n in range(10))
    slow = "\n\ndef test_slow():\n    sum(range(10**6))\n    assert shard(0, 2)[0] == 0\n"
    tests = tiny_project / "tests/test_shards.py"
    tests.write_text(tests.read_text() + more + slow)
    found = tried(b"numbers = list(range(NUM_NUMBERS))", b"numbers = [1] * 12", first_red=True)
    assert found.fate is Fate.CAUGHT


def test_a_candidate_that_never_ends_is_caught(tried: Try, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "_LIMIT_FLOOR_S", 0.5)
    found = tried(b"return mine", b"while True: rank += 1")
    assert found.fate is Fate.CAUGHT
    assert found.red[-1] in (ONCE, EQUAL)


def test_a_lab_that_is_not_green_teaches_nothing(tried: Try, tiny_project: Path) -> None:
    (tiny_project / "tests/test_red.py").write_text("def test_red(): assert False\n")
    with pytest.raises(RunError, match="pristine lab is not green"):
        tried(b"return mine", b"return mine[1:]")
