"""The proof as a pure function of what the ranks recorded."""

from __future__ import annotations

from dataclasses import replace

from breaklab.ranks.jobs import RankWait
from breaklab.ranks.records import Channel, RankSnapshot, Record
from breaklab.ranks.verdict import (
    first_difference,
    format_waits,
    prove_deadlock,
    wait_columns,
)

WORLD = Channel("collective", "0", (0, 1, 2))
PAIR = Channel("collective", "1", (0, 1))


def collective(operation: str, sequence: int, channel: Channel = WORLD, **fields) -> Record:
    return Record(
        number=sequence, channel=channel, sequence=sequence, operation=operation, **fields
    )


def message(kind: str, peer: int, sequence: int = 1, tag: int = 0) -> Record:
    return Record(0, Channel(kind, "0", (0, 1, 2), peer, tag), sequence, kind)


def rank(number: int, *issued: Record, waits: bool = True, **fields) -> RankSnapshot:
    """A rank that issued these records and, unless told otherwise, waits for the last of them."""
    counts: dict[Channel, int] = {}
    for record in issued:
        counts[record.channel] = max(counts.get(record.channel, 0), record.sequence)
    return RankSnapshot(
        number,
        moves=7,
        waiting=issued[-1:] if waits else (),
        channels=counts,
        recent=issued,
        **fields,
    )


def reason(*ranks: RankSnapshot, quiet: bool = False) -> str:
    stall = prove_deadlock(ranks, ranks, quiet=quiet)
    return stall.reason if stall else ""


def test_different_collectives_at_one_position_are_a_deadlock():
    ranks = [
        rank(0, collective("all_reduce", 1), collective("all_reduce", 2)),
        rank(1, collective("all_reduce", 1), collective("barrier", 2)),
        rank(2, collective("all_reduce", 1), collective("all_reduce", 2)),
    ]
    assert reason(*ranks) == (
        "different collectives at the same position: rank 0 waits in all_reduce #2,"
        " where rank 1 called barrier #2"
    )


def test_the_same_collective_on_all_ranks_is_on_its_way():
    ranks = [rank(number, collective("all_reduce", 1)) for number in range(3)]
    assert reason(*ranks) == ""
    assert reason(*ranks, quiet=True) == ""


def test_collectives_that_gloo_carries_out_alike_are_not_different():
    for one, other in [
        ("all_reduce", "reduce_scatter_single"),
        ("all_gather", "all_gather_single"),
        ("all_to_all", "all_to_all_single"),
    ]:
        ranks = [rank(number, collective((one, other, one)[number], 1)) for number in range(3)]
        assert reason(*ranks, quiet=True) == "", (one, other)


def test_a_rank_that_moved_between_the_looks_prevents_the_proof():
    ranks = [
        rank(0, collective("all_reduce", 1)),
        rank(1, collective("barrier", 1)),
        rank(2, collective("barrier", 1)),
    ]
    moved = [ranks[0], ranks[1], replace(ranks[2], moves=8)]
    assert prove_deadlock(ranks, ranks) is not None
    assert prove_deadlock(ranks, moved) is None


def test_a_rank_that_waits_for_nothing_prevents_the_proof():
    ranks = [
        rank(0, collective("all_reduce", 1)),
        rank(1, collective("barrier", 1)),
        rank(2, collective("barrier", 1), waits=False),
    ]
    assert reason(*ranks, quiet=True) == ""


def test_a_thread_that_may_still_communicate_prevents_the_proof():
    ranks = [
        rank(0, collective("all_reduce", 1)),
        rank(1, collective("barrier", 1), free_threads=1),
        rank(2, collective("barrier", 1)),
    ]
    assert reason(*ranks) == ""


def test_a_rank_whose_channels_could_not_be_counted_prevents_the_proof():
    ranks = [
        rank(0, collective("all_reduce", 1)),
        rank(1, collective("barrier", 1), complete=False),
        rank(2, collective("barrier", 1)),
    ]
    assert reason(*ranks) == ""


def test_no_rank_is_left_to_be_deadlocked_when_all_have_left():
    assert reason(*(rank(number, left=True, waits=False) for number in range(3))) == ""


def test_waiting_for_a_rank_that_left_is_a_deadlock_that_names_it():
    ranks = [
        rank(0, collective("barrier", 4)),
        rank(1, collective("all_reduce", 3), left=True, waits=False),
        rank(2, collective("barrier", 4)),
    ]
    assert reason(*ranks) == "rank 0 waits in barrier #4 for rank 1, which has left"


def test_a_rank_that_left_after_doing_its_part_is_not_waited_for():
    ranks = [
        rank(0, collective("all_reduce", 1)),
        rank(1, collective("all_reduce", 1)),
        rank(2, collective("all_reduce", 1), left=True, waits=False),
    ]
    assert reason(*ranks, quiet=True) == ""


def test_a_rank_that_can_go_on_frees_those_that_wait_for_it():
    # 0 waits for 1, 1 for 2, and 2 only for a message that 0 has sent.
    sent = message("send", peer=2)
    ranks = [
        rank(0, sent, collective("barrier", 1)),
        rank(1, message("recv", peer=2)),
        rank(2, message("recv", peer=0)),
    ]
    assert reason(*ranks, quiet=True) == ""
    without = rank(0, collective("barrier", 1))
    assert "rank 2 waits in recv #1 for rank 0" in reason(without, *ranks[1:])


def test_a_circle_of_receives_is_told_as_such():
    ranks = [rank(number, message("recv", (number + 1) % 3)) for number in range(3)]
    assert reason(*ranks) == (
        "sends and receives wait in a circle: rank 0 waits in recv #1 for rank 1,"
        " rank 1 waits in recv #1 for rank 2, rank 2 waits in recv #1 for rank 0"
    )


def test_sends_that_wait_for_each_other_are_told_as_such():
    ranks = [rank(0, message("send", 1)), rank(1, message("send", 0)), rank(2, message("recv", 0))]
    assert reason(*ranks).startswith("blocking sends wait for each other: rank 0 waits in send #1")


def test_a_send_whose_receive_is_posted_is_on_its_way():
    ranks = [
        rank(0, message("send", 1)),
        rank(1, message("recv", 0), message("send", 2)),
        rank(2, message("recv", 1)),
    ]
    assert reason(*ranks, quiet=True) == ""


def test_the_second_send_needs_the_second_receive():
    second = message("send", 1, sequence=2)
    ranks = [
        rank(0, message("send", 1), second),
        rank(1, message("recv", 0), message("send", 0)),
        rank(2, collective("barrier", 1)),
    ]
    assert "rank 0 waits in send #2 for rank 1" in reason(*ranks)


def test_tags_that_differ_are_told():
    ranks = [
        rank(0, message("send", 1, tag=3)),
        rank(1, message("recv", 0, tag=4)),
        rank(2, collective("barrier", 1)),
    ]
    assert reason(*ranks) == (
        "tags differ: rank 0 waits in send #1 with tag 3, rank 1 in recv #1 with tag 4"
    )


def test_a_receive_from_anyone_is_satisfied_by_any_unclaimed_message():
    anyone = message("recv_any", -1)
    others = [rank(1, message("recv", 0)), rank(2, message("send", 0), message("recv", 1))]
    assert reason(rank(0, anyone), *others, quiet=True) == ""
    assert "recv_any #1" in reason(rank(0, message("recv", 2), anyone), *others)


def test_a_subgroups_collective_waits_for_a_member_that_is_stuck_elsewhere():
    ranks = [
        rank(0, collective("all_reduce", 1, PAIR)),
        rank(1, collective("barrier", 1)),
        rank(2, collective("barrier", 1)),
    ]
    assert reason(*ranks) == (
        "collectives wait in a circle: rank 0 waits in all_reduce #1 for rank 1,"
        " rank 1 waits in barrier #1 for rank 0"
    )


def test_sizes_that_differ_are_a_deadlock_only_when_nothing_can_be_on_its_way():
    ranks = [
        rank(0, collective("all_reduce", 1, shape="(4,)", dtype="float32", num_bytes=16)),
        rank(1, collective("all_reduce", 1, num_bytes=12), collective("all_reduce", 2)),
        rank(2, collective("all_reduce", 1, num_bytes=16), collective("all_reduce", 2)),
    ]
    assert reason(*ranks) == ""
    assert reason(*ranks, quiet=True).startswith("sizes differ: rank 0 waits in all_reduce #1")


def test_a_broadcast_waits_for_its_root_alone():
    def broadcast(number: int) -> RankSnapshot:
        return rank(number, collective("broadcast", 1, root=0))

    elsewhere = rank(2, message("recv", 1))
    # Rank 1 has what it needs from the root; whether the root needs rank 2 depends on gloo.
    assert reason(broadcast(0), broadcast(1), elsewhere) == ""
    assert reason(broadcast(0), broadcast(1), elsewhere, quiet=True) != ""


def test_a_broadcasts_root_that_nobody_hears_is_deadlocked():
    ranks = [
        rank(0, collective("broadcast", 1, root=0)),
        rank(1, collective("all_reduce", 1)),
        rank(2, collective("all_reduce", 1)),
    ]
    assert reason(*ranks) != ""


def test_the_table_tells_operation_tensor_peer_group_and_place():
    ranks = [
        rank(0, collective("all_reduce", 1, PAIR, shape="(3, 4)", dtype="float32", place="a.py:3")),
        rank(1, message("recv", 0)),
        rank(2, left=True, waits=False),
    ]
    stall = prove_deadlock(ranks, ranks)
    assert stall is not None
    assert stall.waits == (
        RankWait(0, "all_reduce", 1, "0,1", "(3, 4)", "float32", None, "a.py:3"),
        RankWait(1, "recv", 1, peer=0),
        RankWait(2, "left"),
    )
    rows = format_waits(stall.waits)
    assert rows == [
        ["0", "", "all_reduce #1", "0,1", "float32(3, 4)", "", "a.py:3"],
        ["1", "", "recv #1", "", "", "0", ""],
        ["2", "", "(has left)", "", "", "", ""],
    ]
    assert len(wait_columns()) == len(rows[0])


def test_the_first_difference_is_where_the_sequences_part():
    same = collective("all_reduce", 1, num_bytes=8, entered_ns=1)
    ranks = [
        rank(0, same, collective("all_reduce", 2, entered_ns=2), collective("barrier", 3)),
        rank(1, same, collective("broadcast", 2, entered_ns=3), collective("barrier", 3)),
        rank(2, same),
    ]
    row = first_difference(ranks)
    assert [(wait.rank, wait.operation, wait.sequence) for wait in row] == [
        (0, "all_reduce", 2),
        (1, "broadcast", 2),
        (2, "", None),
    ]
    assert first_difference([rank(number, same) for number in range(3)]) == ()


def test_a_different_size_is_a_first_difference_too():
    ranks = [
        rank(0, collective("all_reduce", 1, num_bytes=16)),
        rank(1, collective("all_reduce", 1, num_bytes=16)),
        rank(2, collective("all_reduce", 1, num_bytes=12)),
    ]
    assert [wait.rank for wait in first_difference(ranks)] == [0, 1, 2]
