"""Each outcome from the facts of a run, and nothing but the facts."""

from __future__ import annotations

import math
from typing import Any

import pytest

from breaklab.model import Metrics, Outcome
from breaklab.ranks.jobs import RankEnd, RunReport, Stall
from breaklab.ranks.outcome import Judged, judge

METRICS = Metrics(args=(), agree=("digest",), compare=("loss",), count=("calls",), tolerance=1e-5)
PEER = "RuntimeError: [pair.cc:553] Connection closed by peer [127.0.0.1]:1"


def rows(
    num_steps: int = 4, *, digest: Any = "d", loss: Any = 2.0, calls: int = 3
) -> list[dict[str, Any]]:
    return [
        {"step": step, "digest": digest, "loss": loss, "calls": calls} for step in range(num_steps)
    ]


def run(*of_ranks: list[dict[str, Any]], **facts: Any) -> RunReport:
    return RunReport(
        ends=facts.pop("ends", tuple(RankEnd(rank, 0, 1.0) for rank in range(2))),
        lines=(),
        duration_s=1.0,
        last_step=facts.pop("last_step", 3),
        metrics={rank: tuple(of_rank) for rank, of_rank in enumerate(of_ranks)},
        **facts,
    )


HEALTHY = run(rows(), rows())


def judged(report: RunReport, reference: RunReport | None = HEALTHY) -> Judged:
    return judge(report, METRICS, reference)


def test_equal_numbers_are_healthy() -> None:
    verdict = judged(run(rows(), rows()))
    assert verdict.outcome is Outcome.HEALTHY
    assert verdict.step == 3
    assert "equal the reference" in verdict.summary


def test_without_numbers_no_comparison_is_claimed() -> None:
    for report, metrics, reference in [
        (run(), METRICS, HEALTHY),
        (HEALTHY, METRICS, None),
        (HEALTHY, None, None),
    ]:
        verdict = judge(report, metrics, reference)
        assert verdict.outcome is Outcome.HEALTHY
        assert "reference" not in verdict.summary


def test_a_stall_says_how_long_nothing_was_printed() -> None:
    verdict = judged(run(stall=Stall("timed", 60.02), last_step=1))
    assert (verdict.outcome, verdict.step) == (Outcome.STALL, 1)
    assert verdict.summary == "no rank printed anything for 60 s; the last step was 1"


def test_why_a_stall_is_one_is_a_detail_and_not_told_with_the_symptom() -> None:
    verdict = judged(run(stall=Stall("proven", 0.42, "ranks wait for each other"), last_step=None))
    assert verdict.outcome is Outcome.STALL
    assert verdict.summary == "no rank can ever go on, proven after 0.4 s; no step was printed"
    assert verdict.details == ("ranks wait for each other",)


def test_a_crash_names_the_rank_with_a_reason_of_its_own() -> None:
    ends = (
        RankEnd(0, 1, 0.9, PEER),
        RankEnd(1, 1, 1.0, "ValueError: mine"),
        RankEnd(2, None, 5.0),
        RankEnd(3, 0, 0.5),
        RankEnd(4, -9, 1.1, "killed by signal SIGKILL"),
    )
    verdict = judged(run(ends=ends, last_step=2))
    assert (verdict.outcome, verdict.step) == (Outcome.CRASH, 2)
    assert verdict.summary == "rank 1 failed first: ValueError: mine"
    assert verdict.details == (
        "rank 0 lost its peer",
        "rank 2 was still running and was stopped",
        "rank 3 ended by itself",
        "rank 4 failed too: killed by signal SIGKILL",
    )


def test_a_crash_in_which_every_rank_lost_its_peer_names_the_first() -> None:
    verdict = judged(run(ends=(RankEnd(0, 1, 2.0, PEER), RankEnd(1, 1, 1.0, PEER))))
    assert verdict.summary.startswith("rank 1 failed first")


def test_a_crash_because_a_rank_left_early_names_that_rank() -> None:
    verdict = judged(run(ends=(RankEnd(0, 0, 0.5), RankEnd(1, 1, 0.6, PEER))))
    assert verdict.outcome is Outcome.CRASH
    assert verdict.summary == "rank 1 lost its peer: rank 0 had already ended by itself"
    verdict = judged(run(ends=(RankEnd(0, 0, 0.5), RankEnd(1, 1, 0.6, "ValueError: x"))))
    assert verdict.summary == "rank 1 failed first: ValueError: x"


def test_ranks_that_disagree_have_diverged_from_their_first_step_apart() -> None:
    other = rows()
    other[2]["digest"] = other[3]["digest"] = "e"
    verdict = judged(run(rows(), other))
    assert (verdict.outcome, verdict.step) == (Outcome.DIVERGED, 2)
    assert verdict.summary == (
        "digest differs between ranks from step 2 on: e on rank 1, d on rank 0"
    )
    assert verdict.details == ("2 of 4 steps differ",)


def test_agreement_is_exact() -> None:
    verdict = judged(run(rows(digest=1.0), rows(digest=math.nextafter(1.0, 2.0))))
    assert verdict.outcome is Outcome.DIVERGED


def test_nan_on_every_rank_is_agreement() -> None:
    report = run(rows(digest=math.nan), rows(digest=math.nan))
    assert judged(report, None).outcome is Outcome.HEALTHY


def test_a_rank_that_makes_fewer_steps_or_writes_nothing_has_diverged() -> None:
    verdict = judged(run(rows(4), rows(2)))
    assert verdict.outcome is Outcome.DIVERGED
    assert verdict.summary == "rank 1 ended at step 1, rank 0 at step 3"
    verdict = judged(run(rows(4)))
    assert verdict.outcome is Outcome.DIVERGED
    assert verdict.summary == "rank 1 wrote no numbers, rank 0 up to step 3"


def test_numbers_off_the_reference_are_wrong_and_it_is_said_by_how_much() -> None:
    off = rows()
    off[1]["loss"], off[2]["loss"] = 2.02, 2.5
    verdict = judged(run(off, rows()))
    assert (verdict.outcome, verdict.step) == (Outcome.WRONG, 1)
    assert verdict.summary == (
        "loss differs from the reference from step 1 on, by up to 20 %: "
        "2.02 on rank 0 at that step, 2 in the reference"
    )
    assert verdict.difference is not None
    assert verdict.difference.largest == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("loss", "outcome"),
    [
        (2.0 * (1 + 0.9e-5), Outcome.HEALTHY),
        (2.0 * (1 + 1.2e-5), Outcome.WRONG),
        (math.nan, Outcome.WRONG),
        (math.inf, Outcome.WRONG),
        ("2.0", Outcome.WRONG),
        ([2.0], Outcome.WRONG),
        (True, Outcome.WRONG),
    ],
)
def test_the_tolerance_is_relative_and_what_is_no_number_is_wrong(
    loss: Any, outcome: Outcome
) -> None:
    assert judged(run(rows(loss=loss), rows(loss=loss))).outcome is outcome


def test_lists_are_compared_item_by_item() -> None:
    reference = run(rows(loss=[1.0, 2.0]), rows(loss=[1.0, 2.0]))
    same = run(rows(loss=[1.0, 2.0 + 1e-7]), rows(loss=[1.0, 2.0]))
    assert judged(same, reference).outcome is Outcome.HEALTHY
    off = run(rows(loss=[1.0, 4.0]), rows(loss=[1.0, 2.0]))
    verdict = judged(off, reference)
    assert verdict.difference is not None
    assert verdict.difference.largest == 0.5
    longer = run(rows(loss=[1.0, 2.0, 3.0]), rows(loss=[1.0, 2.0]))
    assert judged(longer, reference).outcome is Outcome.WRONG


def test_numbers_next_to_zero_are_equal() -> None:
    reference = run(rows(loss=0.0), rows(loss=1e-14))
    assert judged(run(rows(loss=1e-15), rows(loss=0.0)), reference).outcome is Outcome.HEALTHY


def test_a_run_that_ends_earlier_than_the_reference_is_wrong() -> None:
    verdict = judged(run(rows(2), rows(2)))
    assert verdict.outcome is Outcome.WRONG
    assert verdict.summary == "rank 0 ended at step 1, in the reference at step 3"


def test_more_calls_than_the_reference_are_slow() -> None:
    verdict = judged(run(rows(calls=4), rows(calls=3)))
    assert (verdict.outcome, verdict.step) == (Outcome.SLOW, 0)
    assert verdict.summary == "calls is 4 on rank 0 at step 0, 3 in the reference"
    assert judged(run(rows(calls=2), rows(calls=3))).outcome is Outcome.HEALTHY


def test_a_run_over_its_time_is_slow_unless_its_numbers_are_wrong() -> None:
    verdict = judged(run(rows(2), rows(2), over_time=True, last_step=1))
    assert (verdict.outcome, verdict.step) == (Outcome.SLOW, 1)
    assert "limit on the total time" in verdict.summary
    assert judged(run(rows(2, loss=9.0), rows(2), over_time=True)).outcome is Outcome.WRONG


def test_worse_comes_before_better() -> None:
    everything = rows(digest="e", loss=9.0, calls=9)
    stall, ends = Stall("timed", 1.0), (RankEnd(0, 1, 1.0, "x"), RankEnd(1, 0, 1.0))
    assert judged(run(everything, rows(), stall=stall, ends=ends)).outcome is Outcome.STALL
    assert judged(run(everything, rows(), ends=ends)).outcome is Outcome.CRASH
    assert judged(run(everything, rows())).outcome is Outcome.DIVERGED
    same = rows(loss=9.0, calls=9)
    assert judged(run(same, same)).outcome is Outcome.WRONG


def test_an_interrupted_run_is_judged_by_what_it_showed() -> None:
    verdict = judged(run(rows(2), rows(1), interrupted=True, last_step=1))
    assert verdict.outcome is Outcome.HEALTHY
    assert "interrupted at step 1" in verdict.summary
    assert judged(run(rows(2, loss=9.0), interrupted=True)).outcome is Outcome.WRONG


def test_rows_that_are_no_numbers_of_a_step_are_passed_over() -> None:
    odd: list[dict[str, Any]] = [{"digest": "e"}, {"step": "x", "digest": "e"}, *rows()]
    assert judged(run(odd, rows())).outcome is Outcome.HEALTHY
