from __future__ import annotations

import json
import math

import pytest

from breaklab.compare import words
from breaklab.compare.document import as_json
from breaklab.compare.tables import rows, steps_to_show
from breaklab.model import Metrics

from .conftest import METRICS, broken_row, compared, healthy_row, report


def test_runs_part_at_the_first_step_that_differs_and_each_key_has_its_own() -> None:
    comparison = compared(report(healthy_row), report(broken_row))
    assert comparison.parting is not None
    assert (comparison.parting.key, comparison.parting.step) == ("grad_norm", 3)
    by_key = {panel.key: panel.parting for panel in comparison.panels}
    assert by_key["loss"] is None
    assert by_key["grad_norm"] is comparison.parting
    assert "part at step 3: grad_norm on rank 0 is 4.4, 4 in" in words.headline(comparison)


def test_equal_runs_do_not_part() -> None:
    comparison = compared(report(healthy_row), report(healthy_row))
    assert comparison.partings == ()
    assert "No number differs" in words.headline(comparison)
    assert words.ending(comparison) == ""
    assert set(comparison.distance[0]) == {(step, 0.0) for step in range(6)}


def test_difference_within_the_tolerance_is_none() -> None:
    near = report(lambda rank, step: {"loss": healthy_row(rank, step)["loss"] * (1 + 1e-7)})
    assert compared(report(healthy_row), near).partings == ()


def test_run_that_ends_early_is_compared_up_to_where_it_got_and_says_so() -> None:
    comparison = compared(report(healthy_row), report(healthy_row, num_steps=2))
    assert comparison.ends_early
    assert "differs up to step 1" in words.headline(comparison)
    assert "numbers end at step 1, the healthy run's at step 5" in words.ending(comparison)
    assert "up to step 1" in words.unparted(comparison)


def test_run_without_any_number_is_told_from_one_that_agrees() -> None:
    nothing = report(healthy_row, num_steps=0)
    assert "before it reported any number" in words.headline(compared(report(healthy_row), nothing))
    assert "Neither run" in words.headline(compared(nothing, nothing, None))


def test_nan_parts_from_a_number_and_json_stays_valid() -> None:
    broken = report(lambda rank, step: {"grad_norm": math.nan, "loss": math.inf})
    comparison = compared(report(healthy_row), broken)
    assert comparison.parting is not None
    assert comparison.parting.step == 0
    assert all(panel.has_gaps for panel in comparison.panels)

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    document = json.loads(json.dumps(as_json(comparison)), parse_constant=refuse)
    assert document["rows"][0]["grad_norm"] == {"healthy": 1.0, "broken": "nan"}
    assert document["parted"]["largest"] == "inf"


def test_distance_is_that_of_the_sketches() -> None:
    comparison = compared(report(healthy_row), report(broken_row))
    assert comparison.distance[1][2] == (2, 0.0)
    assert comparison.distance[1][3] == (3, pytest.approx(1.5 / math.hypot(6, 4)))
    assert comparison.num_projections == 2


def test_lab_without_a_sketch_has_no_distance() -> None:
    metrics = Metrics(args=(), compare=("loss",))
    comparison = compared(report(healthy_row), report(broken_row), metrics)
    assert comparison.distance == {}
    assert as_json(comparison)["distance_standard_error"] is None


def test_rows_hold_both_numbers_of_each_rank_and_mark_where_they_part() -> None:
    comparison = compared(report(healthy_row), report(broken_row, num_steps=4))
    table = rows(comparison, comparison.panels)
    assert [(row.step, row.rank) for row in table[:3]] == [(0, 0), (0, 1), (1, 0)]
    parting = next(row for row in table if row.parts)
    assert (parting.step, parting.rank, parting.parts) == (3, 0, ("grad_norm",))
    assert parting.pairs[1] == (4.0, pytest.approx(4.4))
    assert table[-1].pairs[0] == (pytest.approx(1.81), None)
    assert table[-1].distance is None


def test_document_tells_all_that_was_run() -> None:
    document = as_json(compared(report(healthy_row), report(broken_row)))
    assert document["args"] == ["--sync", "bucket"]
    assert document["broken"]["outcome"] == "wrong"
    assert document["keys"] == list(METRICS.curves)
    assert len(document["rows"]) == 12


def test_few_steps_are_all_shown() -> None:
    assert steps_to_show([2, 0, 1, 1], 3) == ([0, 1, 2], False)


def test_many_steps_are_thinned_but_first_last_and_the_parting_with_its_neighbours_stay() -> None:
    shown, is_thinned = steps_to_show(range(1000), 20, keep={501})
    assert is_thinned
    assert {0, 499, 500, 501, 502, 503, 999} <= set(shown)
    assert len(shown) <= 21
    assert shown == sorted(set(shown))
