from __future__ import annotations

import math
import random

import pytest

from breaklab.compare.distance import distances, sketch_size, standard_error


def rows(*sketches: object) -> dict[int, tuple[dict[str, object], ...]]:
    return {0: tuple({"step": step, "s": sketch} for step, sketch in enumerate(sketches))}


def test_distance_is_relative_to_the_reference() -> None:
    assert distances(rows([3.0, 9.0]), rows([3.0, 4.0]), "s") == {0: ((0, 1.0),)}


def test_equal_sketches_are_at_exactly_no_distance() -> None:
    assert distances(rows([0.1, 0.2]), rows([0.1, 0.2]), "s") == {0: ((0, 0.0),)}


def test_only_steps_and_ranks_of_both_runs_are_compared() -> None:
    longer = {**rows([1.0], [2.0]), 1: ({"step": 0, "s": [1.0]},)}
    assert distances(rows([1.0]), longer, "s") == {0: ((0, 0.0),)}
    assert distances(rows([1.0]), {}, "s") == {}


@pytest.mark.parametrize("sketch", ["text", None, ["a"], 3.0])
def test_what_is_no_list_of_numbers_is_left_out(sketch: object) -> None:
    assert distances(rows(sketch), rows([1.0]), "s") == {}


def test_lengths_that_differ_and_nan_give_nan() -> None:
    for other in ([1.0, 2.0], [math.nan]):
        ((_step, value),) = distances(rows(other), rows([1.0]), "s")[0]
        assert math.isnan(value)


def test_reference_of_norm_zero_gives_infinity_where_the_run_is_elsewhere() -> None:
    assert distances(rows([1.0]), rows([0.0]), "s") == {0: ((0, math.inf),)}
    assert distances(rows([0.0]), rows([0.0]), "s") == {0: ((0, 0.0),)}


def test_sketch_size_is_that_of_any_sketch() -> None:
    assert sketch_size(rows("no", [1.0, 2.0, 3.0]), "s") == 3
    assert sketch_size(rows("no"), "s") == 0


def test_standard_error_is_what_random_projections_really_have() -> None:
    """400 estimates of one distance by 32 projections each scatter as much as is claimed."""
    stream = random.Random(7)
    # A projection of any fixed vector on a Gaussian one is Gaussian: its length is all that counts.
    estimates = [
        math.sqrt(sum(stream.gauss(0, 1) ** 2 for _ in range(32)) / 32) for _ in range(400)
    ]
    mean = sum(estimates) / len(estimates)
    scatter = math.sqrt(sum((each - mean) ** 2 for each in estimates) / len(estimates))
    assert scatter == pytest.approx(standard_error(32), rel=0.15)
