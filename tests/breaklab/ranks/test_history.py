from __future__ import annotations

import pytest

from breaklab.ranks import history as history_module
from breaklab.ranks.history import Histories
from breaklab.ranks.records import NUM_SLOTS, Board
from breaklab.ranks.records_writer import GroupChannels, Writer, encode_call

KEY = ("collective", -1, 0)


class Rank:
    """A rank that writes to its page as the recorder does."""

    def __init__(self, num_ranks: int = 1) -> None:
        self.board = Board.create(num_ranks)
        self.writer = Writer(self.board.page(0))
        self.group = GroupChannels("default", tuple(range(num_ranks)))

    def enter(self) -> int:
        channel = self.writer.channel(self.group, KEY)
        return self.writer.enter(channel, encode_call(channel, b"all_reduce\x1f(3,)", 12, -1))

    def leave(self, number: int) -> None:
        self.writer.block(number)
        self.writer.unblock(number)


def test_more_records_than_slots_are_kept_if_looked_at_in_time() -> None:
    rank = Rank()
    histories = Histories(rank.board.pages)
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
    rank = Rank()
    histories = Histories(rank.board.pages)
    for _number in range(NUM_SLOTS + 40):
        rank.leave(rank.enter())
    histories.collect()
    (history,) = histories.get()
    assert history.num_left_out == 40
    assert len(history.records) == NUM_SLOTS


def test_end_that_comes_after_a_look_is_seen_by_the_next() -> None:
    rank = Rank()
    histories = Histories(rank.board.pages)
    first, second = rank.enter(), rank.enter()
    histories.collect()
    assert [record.left_ns for record in histories.get()[0].records] == [0, 0]
    rank.leave(first)
    third = rank.enter()
    rank.writer.block(second)
    histories.collect()
    (history,) = histories.get()
    assert [bool(record.left_ns) for record in history.records] == [True, False, False]
    assert history.waiting == {second}
    assert third not in history.waiting


def test_rank_that_recorded_nothing_has_an_empty_history() -> None:
    histories = Histories(Rank(num_ranks=2).board.pages)
    histories.collect()
    assert [(each.rank, each.records, each.num_left_out) for each in histories.get()] == [
        (0, (), 0),
        (1, (), 0),
    ]


def test_endless_run_keeps_only_its_latest_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "MAX_RECORDS", 100)
    rank = Rank()
    histories = Histories(rank.board.pages)
    for _round in range(5):
        for _number in range(60):
            rank.leave(rank.enter())
        histories.collect()
    (history,) = histories.get()
    assert [history.records[0].number, history.records[-1].number] == [200, 299]
    assert history.num_left_out == 200


def test_looks_that_come_too_soon_read_nothing() -> None:
    rank = Rank()
    histories = Histories(rank.board.pages)
    histories.look(100.0)
    rank.leave(rank.enter())
    histories.look(100.01)
    assert histories.get()[0].records == ()
    histories.look(100.2)
    assert len(histories.get()[0].records) == 1
