"""Tests again at every save, from a real warm parent, on a lab that needs no torch."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from breaklab.learn.retest import Retester, Verdict, fingerprint
from breaklab.ranks.warm import WarmParent
from breaklab.spec.catalogue import load_catalogue
from breaklab.spec.project import find_project, load_labs

FIRST_RED = "tests/test_shards.py::test_every_number_is_seen_once"


@dataclass
class Watched:
    retester: Retester
    source: Path

    def next_verdict(self) -> Verdict:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            verdict = self.retester.poll()
            if verdict is not None:
                return verdict
            time.sleep(0.01)
        raise AssertionError("no verdict")

    def save(self, text: str) -> None:
        self.source.write_text(text)


@pytest.fixture
def watched(tiny_project: Path) -> Iterator[Watched]:
    project = find_project(tiny_project)
    (lab,) = load_labs(project)
    spec = load_catalogue(project).find("35-01")
    source = lab.source / "tiny" / "data.py"
    retester = None
    try:
        with WarmParent(sys.executable, ()) as warm:
            retester = Retester(project, lab, spec, warm)
            yield Watched(retester, source)
    finally:
        if retester:
            retester.close()


def test_the_tests_that_the_break_turns_red_come_first_and_once_green_all(
    watched: Watched,
) -> None:
    first = watched.next_verdict()
    assert first.report.results[0].nodeid == FIRST_RED
    assert (len(first.report.results), first.whole, first.report.green) == (2, False, True)
    second = watched.next_verdict()
    assert (len(second.report.results), second.whole, second.report.green) == (3, True, True)
    assert watched.retester.poll() is None
    assert not watched.retester.is_testing


def test_a_save_leads_to_a_new_verdict_of_the_new_code(watched: Watched) -> None:
    pristine = watched.source.read_text()
    assert watched.next_verdict().report.green
    watched.save(pristine.replace("return mine", "return mine[1:]"))
    while (verdict := watched.next_verdict()).report.green:
        pass  # of the code before the save
    assert FIRST_RED in verdict.report.red
    watched.save(pristine)
    assert watched.next_verdict().report.green


def test_saves_in_quick_succession_end_with_the_verdict_of_the_last(watched: Watched) -> None:
    pristine = watched.source.read_text()
    for number in range(5):
        watched.save(pristine + f"\nraise RuntimeError({number})\n")
        watched.retester.poll()
    watched.save(pristine)
    verdicts = [watched.next_verdict()]
    while watched.retester.is_testing:
        verdicts.append(watched.next_verdict())
    assert verdicts[-1].report.green
    assert verdicts[-1].whole


def test_a_hanging_test_does_not_hold_up_the_next_save(watched: Watched) -> None:
    pristine = watched.source.read_text()
    hanging = pristine.replace("return mine\n", "import threading; threading.Event().wait()\n")
    watched.save(hanging)
    assert watched.retester.poll() is None
    assert watched.retester.is_testing
    watched.save(pristine)
    assert watched.next_verdict().report.green


def test_only_python_files_count_as_saves(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "m.py").write_text("a = 1\n")
    before = fingerprint([tmp_path])
    for name in ("pkg/m.py~", "notes.md", "pkg/m.pyc"):
        (tmp_path / name).write_text("x")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "n.py").write_text("x")
    assert fingerprint([tmp_path]) == before
    (tmp_path / "pkg" / "m.py").write_text("a = 22\n")
    assert fingerprint([tmp_path]) != before
    (tmp_path / "pkg" / "m.py").unlink()
    assert fingerprint([tmp_path]) == {}
