"""Histories over a page that holds the latest records only; real ranks: compare's test_runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from breaklab.ranks import history as history_module
from breaklab.ranks.history import Histories
from breaklab.ranks.records import NUM_SLOTS, Channel, RankSnapshot, Record

CHANNEL = Channel("collective", "default", (0,))


class Page:
    """What a watcher sees of a rank: the latest records, older ones written over."""

    def __init__(self, rank: int = 0) -> None:
        self.rank = rank
        self.records: list[Record] = []
        self.waiting: list[int] = []
        self.readable = True

    def enter(self) -> int:
        number = len(self.records)
        self.records.append(Record(number, CHANNEL, number + 1, "all_reduce", entered_ns=number))
        return number

    def leave(self, number: int) -> None:
        self.records[number] = replace(self.records[number], left_ns=number + 1)

    def snapshot(self, after: int = -1) -> RankSnapshot | None:
        if not self.readable:
            return None
        recent = self.records[max(0, len(self.records) - NUM_SLOTS, after + 1) :]
        waiting = tuple(self.records[number] for number in self.waiting)
        return RankSnapshot(self.rank, len(self.records), waiting, recent=tuple(recent))


def watched(*pages: Page) -> Histories:
    return Histories(pages)  # type: ignore[arg-type]


def test_more_records_than_slots_are_kept_if_looked_at_in_time() -> None:
    rank = Page()
    histories = watched(rank)
    for number in range(3 * NUM_SLOTS):
        rank.leave(rank.enter())
        if number % 100 == 99:
            histories.collect()
    histories.collect()
    (history,) = histories.get()
    assert [record.number for record in history.records] == list(range(3 * NUM_SLOTS))
    assert all(record.left_ns for record in history.records)
    assert history.num_left_out == 0
    assert history.records[5].operation == "all_reduce"


def test_records_written_over_unseen_are_counted() -> None:
    rank = Page()
    histories = watched(rank)
    for _number in range(NUM_SLOTS + 40):
        rank.leave(rank.enter())
    histories.collect()
    (history,) = histories.get()
    assert history.num_left_out == 40
    assert len(history.records) == NUM_SLOTS


def test_end_that_comes_after_a_look_is_seen_by_the_next() -> None:
    rank = Page()
    histories = watched(rank)
    first, second = rank.enter(), rank.enter()
    histories.collect()
    assert [record.left_ns for record in histories.get()[0].records] == [0, 0]
    rank.leave(first)
    third = rank.enter()
    rank.waiting = [second]
    histories.collect()
    (history,) = histories.get()
    assert [bool(record.left_ns) for record in history.records] == [True, False, False]
    assert history.waiting == {second}
    assert third not in history.waiting


def test_rank_that_recorded_nothing_has_an_empty_history() -> None:
    histories = watched(Page(0), Page(1))
    histories.collect()
    assert [(each.rank, each.records, each.num_left_out) for each in histories.get()] == [
        (0, (), 0),
        (1, (), 0),
    ]


def test_endless_run_keeps_only_its_latest_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "MAX_RECORDS", 100)
    rank = Page()
    histories = watched(rank)
    for _round in range(5):
        for _number in range(60):
            rank.leave(rank.enter())
        histories.collect()
    (history,) = histories.get()
    assert [history.records[0].number, history.records[-1].number] == [200, 299]
    assert history.num_left_out == 200


def test_looks_that_come_too_soon_read_nothing() -> None:
    rank = Page()
    histories = watched(rank)
    histories.look(100.0)
    rank.leave(rank.enter())
    histories.look(100.01)
    assert histories.get()[0].records == ()
    histories.look(100.2)
    assert len(histories.get()[0].records) == 1


def test_page_that_cannot_be_read_keeps_what_was_seen_before() -> None:
    rank = Page()
    histories = watched(rank)
    rank.leave(rank.enter())
    histories.collect()
    rank.readable = False
    histories.collect()
    assert len(histories.get()[0].records) == 1
