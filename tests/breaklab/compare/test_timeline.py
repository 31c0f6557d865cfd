from __future__ import annotations

import json

import pytest

from breaklab.compare.lanes import MAX_BARS, lay_out, operations
from breaklab.compare.recorded import recorded_timeline
from breaklab.compare.timeline import make_timeline
from breaklab.compare.trace import chrome_trace
from breaklab.ranks.history import History
from breaklab.ranks.records import Channel, Record

from .conftest import collectives

TWO_RANKS = collectives([(1, 10.5, 11.0), (0, 10.0, 11.0), (0, 12.0, None), (1, 11.5, 12.0)])


def test_time_counts_from_the_first_operation_of_any_rank() -> None:
    timeline = make_timeline("run", 2, TWO_RANKS)
    assert [(each.rank, each.entered_s) for each in timeline.collectives] == [
        (0, 0.0),
        (0, 2.0),
        (1, 0.5),
        (1, 1.5),
    ]
    assert timeline.until_s == 2.0


def test_bars_lie_in_order_within_the_width_and_what_never_returned_reaches_the_edge() -> None:
    (layout,) = lay_out([make_timeline("run", 2, TWO_RANKS)])
    first, stuck = layout.lanes[0].bars
    assert first.x == 0
    assert first.x + first.width <= stuck.x
    assert stuck.x + stuck.width == pytest.approx(layout.width)
    assert layout.lanes[1].y >= layout.lanes[0].y + layout.lanes[0].height


def test_all_runs_share_one_scale() -> None:
    short = make_timeline("short", 1, collectives([(0, 0.0, 1.0)]))
    long = make_timeline("long", 1, collectives([(0, 0.0, 4.0)]))
    widths = [layout.lanes[0].bars[0].width for layout in lay_out([short, long])]
    assert widths[1] == pytest.approx(4 * widths[0])


def test_operations_that_overlap_get_rows_and_do_not_hide_each_other() -> None:
    overlapping = collectives([(0, 0.0, 2.0), (0, 1.0, 3.0), (0, 2.5, 4.0)])
    (layout,) = lay_out([make_timeline("run", 1, overlapping)])
    (lane,) = layout.lanes
    assert [bar.y - lane.y for bar in lane.bars] == [0, 22, 0]
    assert lane.height == 44


def test_bar_too_short_to_see_is_drawn_all_the_same() -> None:
    (layout,) = lay_out([make_timeline("run", 1, collectives([(0, 0.0, 1e-6), (0, 1.0, 2.0)]))])
    assert layout.lanes[0].bars[0].width >= 3


def test_label_is_as_long_as_its_bar_allows() -> None:
    times = [(0, 0.0, 0.001), (0, 1.0, 1.1), (0, 2.0, 4.0)]
    (layout,) = lay_out([make_timeline("run", 1, collectives(times))])
    assert [bar.label for bar in layout.lanes[0].bars] == ["", "#2", "all_reduce #3"]


def test_more_operations_than_can_be_drawn_leave_out_the_oldest_and_count_them() -> None:
    many = collectives([(0, float(number), number + 0.5) for number in range(MAX_BARS + 7)])
    (layout,) = lay_out([make_timeline("run", 1, many)])
    assert len(layout.lanes[0].bars) == MAX_BARS
    assert layout.lanes[0].bars[0].collective.sequence == 8
    assert layout.lanes[0].bars[0].x == 0
    assert layout.num_left_out == 7


def test_ticks_are_round_and_inside() -> None:
    (layout,) = lay_out([make_timeline("run", 1, collectives([(0, 0.0, 0.37)]))])
    assert [round(seconds, 9) for _x, seconds in layout.ticks] == [
        0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35,
    ]  # fmt: skip
    assert all(0 <= x <= layout.width for x, _seconds in layout.ticks)


def test_run_and_rank_without_operations_are_laid_out_too() -> None:
    empty, half = lay_out(
        [make_timeline("empty", 1, []), make_timeline("half", 2, collectives([(1, 0.0, 1.0)]))]
    )
    assert [len(lane.bars) for lane in empty.lanes + half.lanes] == [0, 0, 1]


def test_each_operation_has_one_kind_in_all_runs() -> None:
    one = make_timeline("one", 1, collectives([(0, 0.0, 1.0)], operation="broadcast"))
    other = make_timeline("other", 1, collectives([(0, 0.0, 1.0)], operation="barrier"))
    assert operations(lay_out([one, other, one])) == [(0, "broadcast"), (1, "barrier")]


def test_trace_holds_complete_events_in_microseconds_by_run_and_rank() -> None:
    times = collectives([(0, 1.0, 1.25), (1, 1.5, None)], shape="(4,)", dtype="float32", peer=1)
    healthy = make_timeline("healthy", 2, [])
    document = chrome_trace([healthy, make_timeline("broken", 2, times)])
    assert json.loads(json.dumps(document)) == document
    first, stuck = [event for event in document["traceEvents"] if event["ph"] == "X"]
    assert (first["pid"], first["tid"], first["ts"], first["dur"]) == (1, 0, 0.0, 250_000.0)
    assert first["args"] == {
        "sequence": 1,
        "shape": "(4,)",
        "dtype": "float32",
        "peer": 1,
        "returned": True,
        "waited_for": True,
    }
    assert (stuck["tid"], stuck["ts"], stuck["dur"]) == (1, 500_000.0, 0.0)
    assert stuck["args"]["returned"] is False


def test_trace_names_runs_and_ranks() -> None:
    document = chrome_trace([make_timeline("the healthy run", 2, [])])
    named = [
        (event["name"], event["pid"], event["tid"], event["args"].get("name"))
        for event in document["traceEvents"]
        if event["name"].endswith("_name")
    ]
    assert named == [
        ("process_name", 0, 0, "the healthy run"),
        ("thread_name", 0, 0, "rank 0"),
        ("thread_name", 0, 1, "rank 1"),
    ]


def recorded(number: int, left_ns: int, kind: str = "collective", peer: int = -1) -> Record:
    channel = Channel(kind, "default", (0, 1), peer)
    entered_ns = 1_000_000_000 + number * 1_000_000
    return Record(number, channel, number + 1, "op", entered_ns=entered_ns, left_ns=left_ns)


def test_operation_is_stuck_only_if_its_rank_was_waiting_for_it() -> None:
    history = History(
        0, (recorded(0, 1_000_500_000), recorded(1, 0), recorded(2, 0)), waiting=frozenset({2})
    )
    ended, forgotten, stuck = recorded_timeline("run", 1, [history]).collectives
    assert (ended.left_s, ended.has_end) == (pytest.approx(0.0005), True)
    assert (forgotten.left_s, forgotten.has_end) == (pytest.approx(0.001), False)
    assert (stuck.left_s, stuck.has_end) == (None, True)


def test_peer_is_known_for_sends_and_receives_only() -> None:
    history = History(0, (recorded(0, 1_000_500_000), recorded(1, 0, "send", 1)), num_left_out=3)
    timeline = recorded_timeline("run", 1, [history])
    assert [each.peer for each in timeline.collectives] == [None, 1]
    assert timeline.num_left_out == 3
