from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breaklab.compare.sparkline import ASCII, BLOCKS, bounds, sparkline


def test_lowest_and_highest_value_get_the_lowest_and_highest_mark() -> None:
    points = ((0, 1.0), (1, 2.0), (2, 3.0))
    assert sparkline(points, (0, 2), (1.0, 3.0), 10) == "▁▅█"


def test_marks_of_two_curves_are_on_one_scale() -> None:
    low, high = ((0, 1.0),), ((0, 9.0),)
    scale = bounds(low, high)
    assert (sparkline(low, (0, 0), scale, 5), sparkline(high, (0, 0), scale, 5)) == ("▁", "█")


def test_step_without_a_number_is_blank_and_curve_that_ends_early_stays_short() -> None:
    assert sparkline(((0, 1.0), (2, 1.0)), (0, 4), (1.0, 2.0), 10) == "▁ ▁  "


def test_nan_and_infinity_show_as_such() -> None:
    points = ((0, 1.0), (1, math.nan), (2, math.inf))
    assert sparkline(points, (0, 2), bounds(points), 10) == "▁!!"
    assert sparkline(((0, math.nan),), (0, 0), None, 10) == "!"


def test_more_steps_than_letters_are_averaged() -> None:
    points = tuple((step, float(step // 5)) for step in range(10))
    assert sparkline(points, (0, 9), (0.0, 1.0), 2, ASCII) == ".@"


@given(values=st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=300), width=st.integers(1, 80))
def test_line_is_never_longer_than_its_width_and_holds_only_marks(
    values: list[float], width: int
) -> None:
    points = tuple(enumerate(values))
    drawn = sparkline(points, (0, len(values) - 1), bounds(points), width)
    assert len(drawn) == min(width, len(values))
    assert set(drawn) <= set(BLOCKS)


@pytest.mark.parametrize("value", [0.0, -3.0, 1e300])
def test_constant_curve_is_a_flat_line(value: float) -> None:
    points = ((0, value), (1, value))
    assert sparkline(points, (0, 1), bounds(points), 5) == "▁▁"
