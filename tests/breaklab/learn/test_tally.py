from __future__ import annotations

import pytest

from breaklab.learn.progress import State
from breaklab.learn.tally import MYSTERY, hide_mysteries, tally, tally_all
from breaklab.tree.events import Event


def at(minute: float, kind: str, bug_id: str = "35-01", **data: object) -> Event:
    seconds = round(minute * 60)
    time = f"2026-01-01T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}+00:00"
    return Event(kind, bug_id, time, data)


def test_everything_a_learner_did_is_counted() -> None:
    events = [
        at(0, "applied"),
        at(1, "run", diagnosed=False),
        at(2, "run", diagnosed=True),
        at(3, "hint", level=2),
        at(4, "hint", level=1),
        at(5, "hint", level=2),
        at(6, "diagnosed"),
        at(7, "compare"),
        at(8, "test"),
        at(9, "checked", solved=False),
        at(10, "checked", solved=True),
        at(10, "solved"),
        at(11, "run"),
        at(12, "applied", "35-02"),
    ]
    counted = tally(events, "35-01")
    assert (counted.runs, counted.tests, counted.checks) == (3, 1, 2)
    assert (counted.hints, counted.diagnoses, counted.state) == ((1, 2), 3, State.SOLVED)
    assert counted.active_s == 10 * 60
    assert counted.solved_at == "2026-01-01T00:10:00+00:00"


def test_a_long_pause_counts_as_half_an_hour() -> None:
    events = [at(0, "applied"), at(10, "run"), at(700, "checked"), at(700, "solved")]
    assert tally(events, "35-01").active_s == 40 * 60


def test_time_between_revert_and_the_next_apply_does_not_count() -> None:
    events = [at(0, "applied"), at(5, "reverted"), at(20, "applied"), at(22, "solved")]
    assert tally(events, "35-01").active_s == 7 * 60


def test_a_clock_that_jumps_back_or_is_missing_takes_no_time_away() -> None:
    events = [at(10, "applied"), at(5, "run"), Event("run", "35-01", "yesterday"), at(6, "solved")]
    assert tally(events, "35-01").active_s == 60


def test_a_mystery_that_was_never_solved_counts_under_no_name() -> None:
    events = hide_mysteries(
        [at(0, "applied", hidden=True), at(1, "run"), at(2, "reverted"), at(3, "hint", level=1)]
    )
    named, mystery = tally_all(events, ["35-01"])
    assert (named.bug_id, named.runs, named.hints, named.state) == ("35-01", 0, (1,), State.OPEN)
    assert (mystery.bug_id, mystery.runs) == (MYSTERY, 1)


@pytest.mark.parametrize("end", ["solved", "revealed"])
def test_a_mystery_that_came_to_an_end_counts_under_its_name(end: str) -> None:
    events = hide_mysteries(
        [at(0, "applied", hidden=True), at(1, "run"), at(2, end), at(3, "run"), at(4, "reverted")]
    )
    (counted,) = tally_all(events, ["35-01"])
    assert counted.runs == 2


def test_a_mystery_that_is_applied_now_is_applied_under_no_name() -> None:
    events = hide_mysteries([at(0, "applied", hidden=True)])
    named, mystery = tally_all(events, ["35-01"], MYSTERY)
    assert (named.state, mystery.state) == (State.OPEN, State.APPLIED)
