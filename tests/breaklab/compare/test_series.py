from __future__ import annotations

import math

from breaklab.compare.series import curve_keys, last_step, numeric_keys, points_of, watched_keys
from breaklab.model import Metrics

ROWS = {
    1: ({"step": 0, "loss": 2, "note": "x"}, {"step": 1, "loss": 1.5, "lr": 0.1}),
    0: ({"step": 2, "loss": 1.0}, {"step": 0, "loss": 3.0}, {"step": 0, "loss": 2.5}),
}


def test_points_are_by_rank_and_step_and_a_later_row_wins() -> None:
    assert points_of(ROWS, "loss") == {0: ((0, 2.5), (2, 1.0)), 1: ((0, 2.0), (1, 1.5))}
    assert list(points_of(ROWS, "loss")) == [0, 1]


def test_rank_without_the_key_has_no_series() -> None:
    assert points_of(ROWS, "lr") == {1: ((1, 0.1),)}


def test_truth_values_texts_and_lists_are_no_numbers_and_nan_is_one() -> None:
    rows = {0: ({"step": 0, "a": True, "b": "1", "c": [1.0], "d": math.nan},)}
    assert numeric_keys(rows) == ("d",)
    assert math.isnan(points_of(rows, "d")[0][0][1])
    assert points_of(rows, "a") == {}


def test_row_without_a_step_belongs_nowhere() -> None:
    rows = {0: ({"loss": 1.0}, {"step": "1", "loss": 1.0}, {"step": True, "loss": 1.0})}
    assert points_of(rows, "loss") == {}
    assert last_step(rows) is None


def test_curves_are_what_the_lab_names_or_everything_with_the_compared_first() -> None:
    named = Metrics((), curves=("lr", "loss", "absent"))
    assert curve_keys(named, ROWS) == ("lr", "loss")
    assert curve_keys(Metrics((), compare=("lr",)), ROWS) == ("lr", "loss")


def test_only_declared_numbers_tell_that_runs_part() -> None:
    rows = {0: ({"step": 0, "loss": 1.0, "seconds": 0.3, "digest": "ab"},)}
    assert watched_keys(Metrics((), compare=("loss",), agree=("digest",)), rows) == ("loss",)


def test_last_step_is_the_highest_of_all_ranks() -> None:
    assert last_step(ROWS) == 2
