"""refresh: the diff of what a changed lab changes in specs, written or only shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from breaklab.spec.breaks import load_spec

Breaklab = Callable[..., Any]
SOURCE = "lab/src/tiny/data.py"
SEEN_ONCE = "tests/test_shards.py::test_every_number_is_seen_once"


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_specs_that_are_up_to_date_stay_as_they_are(breaklab: Breaklab, tiny_project: Path) -> None:
    before = {path: path.read_bytes() for path in (tiny_project / "breaks").iterdir()}
    assert breaklab("refresh").out == "0 of 2 specs rewritten\n"
    assert {path: path.read_bytes() for path in (tiny_project / "breaks").iterdir()} == before


def test_what_a_renamed_function_changes_is_shown_and_written(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    change(tiny_project / SOURCE, "def shard(", "def own_numbers(")
    out = breaklab("refresh", "35-01").out
    assert out.startswith("35-01  inject.inside\n")
    assert "    -  inside: shard\n    +  inside: own_numbers\n" in out
    assert out.endswith("1 of 1 spec rewritten\n")
    assert load_spec(tiny_project / "breaks" / "35-01.yaml").inject.inside == "own_numbers"
    assert breaklab("lint", "breaks/35-01.yaml").out == "1 spec, 0 findings\n"


def test_a_dry_run_writes_nothing(breaklab: Breaklab, tiny_project: Path) -> None:
    change(tiny_project / SOURCE, "def shard(", "def own_numbers(")
    before = (tiny_project / "breaks" / "35-01.yaml").read_bytes()
    ran = breaklab("refresh", "35-01", "--dry-run")
    assert "    +  inside: own_numbers\n" in ran.out
    assert ran.out.endswith("1 of 1 spec is out of date\n")
    (row,) = breaklab("refresh", "35-01", "--dry-run", "--json").json["specs"]
    assert (row["changed"], row["written"]) == (["inject.inside"], False)
    assert (tiny_project / "breaks" / "35-01.yaml").read_bytes() == before


def test_a_spec_that_cannot_be_refreshed_does_not_keep_the_others_from_it(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    change(tiny_project / SOURCE, "mine = numbers[rank::world_size]", "mine = split(numbers)")
    change(tiny_project / SOURCE, '"""Return the mean over', '"""Give the mean over')
    ran = breaklab("refresh", code=1)
    assert "breaks/35-01.yaml: " in ran.err
    assert "has no site in `shard`" in ran.err
    assert ran.out.startswith("35-02  fix_diff\n")
    assert ran.out.endswith("1 of 2 specs rewritten, 1 can't be refreshed\n")
    rows = breaklab("refresh", "--json", code=1).json["specs"]
    assert [bool(row["error"]) for row in rows] == [True, False]


def test_red_lists_the_tests_that_go_red_now(breaklab: Breaklab, tiny_project: Path) -> None:
    spec = tiny_project / "breaks" / "35-01.yaml"
    change(spec, f"    - {SEEN_ONCE}\n", "")
    breaklab("refresh", "35-01", "--red")
    assert SEEN_ONCE in load_spec(spec).red
    (row,) = breaklab("refresh", "35-01", "--red", "--json").json["specs"]
    assert row["changed"] == []


def test_red_measures_the_refreshed_pattern_while_another_break_is_applied(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    change(tiny_project / SOURCE, "def mean(shards)", "def mean(parts)")
    change(tiny_project / SOURCE, "map(sum, shards)", "map(sum, parts)")
    breaklab("apply", "35-01")
    breaklab("refresh", "35-02", "--red")
    breaklab("revert")
    assert "35-02  proven" in breaklab("verify", "35-02").out


def test_a_break_that_no_test_notices_any_more_is_told(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    tests = tiny_project / "tests" / "test_shards.py"
    change(tests, " == 5.5", " > 0")
    out = breaklab("refresh", "35-02", "--red").out
    assert "no test goes red: nobody can observe this break" in out


def test_a_spec_that_cannot_be_read_is_told(breaklab: Breaklab, tiny_project: Path) -> None:
    (tiny_project / "breaks" / "35-03.yaml").write_text("format: 1\n")
    ran = breaklab("refresh", code=1)
    assert "35-03.yaml:1:1: the key `slug` is missing" in ran.err
