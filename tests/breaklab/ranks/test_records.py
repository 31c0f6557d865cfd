"""What ranks write down about their communication, and what a watcher reads of it."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed import all_reduce as bound_before_recording

from breaklab.ranks.ranges import format_ranks, parse_ranks
from breaklab.ranks.records import NUM_SLOTS, Board, Channel, Page, Record, parse_channel
from breaklab.ranks.records_install import COLLECTIVES, POINT_TO_POINT, install
from breaklab.ranks.records_trace import parse_trace
from breaklab.ranks.records_writer import Call, GroupChannels, Writer

COLLECTIVE = ("collective", -1, 0)


def recorded(work: Callable[[Page], Any]) -> Any:
    """In a rank of a harness that records nothing itself: record ``work`` and return its value."""
    page = Board.create(dist.get_world_size()).page(dist.get_rank())
    assert install(page) == ""
    return work(page)


def world() -> GroupChannels:
    return GroupChannels("0", (0, 1, 2))


def line_of(function: Callable[..., Any], offset: int) -> str:
    return f"test_records.py:{function.__code__.co_firstlineno + offset}"


def every_kind(page: Page) -> tuple[Record, ...]:
    rank, three = dist.get_rank(), [torch.ones(2) for _ in range(3)]
    one, many = torch.ones(2), torch.ones(6)
    rooted = three if rank == 1 else None
    pair = dist.new_group([0, 1])
    bound_before_recording(one)
    dist.broadcast(one, 2)
    dist.reduce(one, 1)
    dist.all_gather(three, one)
    dist.all_gather_single(many, one)
    dist.gather(one, rooted, dst=1)
    dist.scatter(one, rooted, src=1)
    dist.reduce_scatter(one, three)
    dist.reduce_scatter_single(one, many)
    dist.all_to_all(list(torch.ones(3, 2)), three)
    dist.all_to_all_single(torch.ones(6), many)
    dist.barrier()
    dist.monitored_barrier()
    if rank < 2:
        dist.all_reduce(one.double(), group=pair)
    if rank == 0:
        dist.send(one, 1, tag=5)
    elif rank == 1:
        dist.recv(one, 0, tag=5)
    return page.snapshot().recent


def test_every_collective_is_recorded_with_its_name_order_and_root(run_ranks):
    for rank, records in enumerate(run_ranks(recorded, args=(every_kind,), records=False)):
        everyone = Channel("collective", "0", (0, 1, 2))
        calls = [one for one in records if one.channel == everyone]
        assert [one.operation for one in calls] == [
            "all_reduce",
            "broadcast",
            "reduce",
            "all_gather",
            "all_gather_single",
            "gather",
            "scatter",
            "reduce_scatter",
            "reduce_scatter_single",
            "all_to_all",
            "all_to_all_single",
            "barrier",
            "monitored_barrier",
        ], rank
        assert [one.sequence for one in calls] == list(range(1, 14))
        assert [one.root for one in calls if one.root >= 0] == [2, 1, 1, 1]
        assert [one.shape for one in calls[:3]] == ["(2,)"] * 3
        assert calls[4].num_bytes == 8
        assert calls[8].num_bytes == 24
        assert all(one.left_ns >= one.entered_ns > 0 for one in calls)
        assert all(
            line.place.endswith(line_of(every_kind, 5 + at)) for at, line in enumerate(calls)
        )


def test_groups_messages_and_dtypes_are_recorded(run_ranks):
    first, second, third = run_ranks(recorded, args=(every_kind,), records=False)
    for records in (first, second):
        (pair,) = (one for one in records if one.channel.members == (0, 1))
        assert (pair.operation, pair.sequence, pair.dtype, pair.num_bytes) == (
            "all_reduce",
            1,
            "float64",
            16,
        )
    assert not any(one.channel.members == (0, 1) for one in third)
    sent, received = first[-1], second[-1]
    assert (sent.operation, sent.channel.peer, sent.channel.tag) == ("send", 1, 5)
    assert (received.operation, received.channel.peer, received.channel.tag) == ("recv", 0, 5)


def helpers(page: Page) -> tuple[Record, ...]:
    dist.all_gather_object([None] * 2, {"rank": dist.get_rank()})
    for work in dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, torch.ones(1), 1 - dist.get_rank()),
            dist.P2POp(dist.irecv, torch.ones(1), 1 - dist.get_rank()),
        ]
    ):
        work.wait()
    return page.snapshot().recent


def test_object_collectives_and_batches_are_seen_as_what_they_are_made_of(run_ranks):
    for records in run_ranks(recorded, 2, args=(helpers,), records=False):
        assert [one.operation for one in records] == ["all_gather", "all_gather", "send", "recv"]
        assert all(one.place.endswith(line_of(helpers, 1)) for one in records[:2])


def asynchronous(page: Page) -> list[tuple[int, bool]]:
    """Number of waits and whether the record was left: before, and after, waiting for each."""
    first = dist.all_reduce(torch.ones(1), async_op=True)
    second = dist.all_reduce(torch.ones(1), async_op=True)
    seen = [page.snapshot().recent]
    for work in (second, first):
        work.wait()
        seen.append(page.snapshot().recent)
    return [tuple(record.left_ns > 0 for record in records) for records in seen]


def test_an_asynchronous_operation_is_left_when_it_was_waited_for(run_ranks):
    for left in run_ranks(recorded, 2, args=(asynchronous,), records=False):
        assert left == [(False, False), (False, True), (True, True)]


def refused(page: Page) -> tuple[int, list[str]]:
    for bad in (lambda: dist.broadcast(torch.ones(1), src=9), lambda: dist.all_reduce("text")):
        with pytest.raises(Exception, match=r".+"):
            bad()
    dist.all_reduce(torch.ones(1))
    snapshot = page.snapshot()
    (count,) = snapshot.channels.values()
    return count, [record.operation for record in snapshot.recent]


def test_an_operation_that_torch_refuses_was_never_issued(run_ranks):
    assert run_ranks(recorded, 2, args=(refused,), records=False) == [(1, ["all_reduce"])] * 2


def unexpected(page: Page) -> tuple[bool, bool]:
    """Calls a wrapped method as torch itself never does."""
    before = page.snapshot().complete
    options = dist.BroadcastOptions()
    dist.distributed_c10d._get_default_group().broadcast(tensors=[torch.ones(1)], opts=options)
    dist.all_reduce(torch.ones(1))
    return before, page.snapshot().complete


def test_an_unexpected_call_ends_the_recording_and_not_the_training(run_ranks):
    assert run_ranks(recorded, 1, args=(unexpected,), records=False) == [(True, False)]


def in_a_forked_worker(page: Page) -> int:
    """A process forked from a rank, as a loader's worker is, calls something recorded."""
    before = page.snapshot().moves
    pid = os.fork()
    if pid == 0:
        with pytest.raises(Exception, match=r".+"):
            dist.broadcast(torch.ones(1), src=9)
        os._exit(0)
    os.waitpid(pid, 0)
    return page.snapshot().moves - before


def test_a_worker_forked_from_a_rank_writes_nothing(run_ranks):
    assert run_ranks(recorded, 1, args=(in_a_forked_worker,), records=False) == [0]


def blocked(page: Page) -> list[str]:
    """What the board says of rank 0 while its main thread is blocked in a collective."""
    seen = []

    def look() -> None:
        while not (waiting := page.snapshot().waiting):
            time.sleep(0.001)
        seen.extend(
            f"{one.operation} {one.left_ns} {page.snapshot().free_threads}" for one in waiting
        )
        dist.send(torch.ones(1), 1)

    if dist.get_rank() == 0:
        thread = threading.Thread(target=look)
        thread.start()
        dist.barrier()
        thread.join()
    else:
        dist.recv(torch.ones(1), 0)
        dist.barrier()
    return seen


def test_a_blocked_rank_shows_what_it_waits_for_and_that_a_thread_is_free(run_ranks):
    assert run_ranks(recorded, 2, args=(blocked,), records=False)[0] == ["barrier 0 1"]


def traced(page: Page) -> Any:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
    model(torch.ones(1, 4)).sum().backward()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        request = page.request_trace()
        while (answer := page.trace(request)) is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert answer is not None
        trace = parse_trace(answer)
        if all(one.retired for one in trace.collectives):  # gloo's thread says so a moment later
            break
    return trace


def test_the_trace_tells_collectives_that_cpp_issued(run_ranks):
    for trace in run_ranks(recorded, 2, args=(traced,), records=False):
        assert trace.available
        last = trace.collectives[-1]
        assert (last.operation, last.shape, last.dtype, last.retired) == (
            "all_reduce",
            "(10,)",
            "float32",
            True,
        )
        assert last.num_bytes == 40
        assert trace.groups == {"0": (0, 1)}
        assert not trace.in_torch
        assert trace.place.rpartition(":")[0].endswith("test_records.py")


def test_the_methods_that_are_wrapped_exist_in_this_torch():
    required = {"allreduce", "broadcast", "reduce", "allgather", "gather", "scatter", "barrier"}
    assert required <= COLLECTIVES.keys()
    for method in required | POINT_TO_POINT.keys():
        assert hasattr(dist.ProcessGroup, method), method


def test_a_torch_that_cannot_be_wrapped_is_told_and_harms_nothing(run_ranks):
    def work() -> str:
        del dist.ProcessGroup.send
        return install(Board.create(1).page(0))

    (reason,) = run_ranks_forked(run_ranks, work)
    assert "does not let its communication be recorded" in reason


def run_ranks_forked(run_ranks: Any, work: Callable[[], Any]) -> Any:
    try:
        return run_ranks(work, 1, records=False)
    except TypeError:
        pytest.skip("ranks can't be forked here, and a local function can't be spawned")


def writer(num_ranks: int = 1) -> tuple[Page, Writer, int]:
    page = Board.create(num_ranks).page(0)
    one = Writer(page)
    return page, one, one.channel(world(), COLLECTIVE)


def call(channel: int, operation: str = "all_reduce") -> Call:
    return Call(channel, f"{operation}\x1f(2,)\x1ffloat32\x1fa.py:1".encode(), 8, -1)


def test_a_record_that_was_written_over_leaves_its_position_counted():
    page, one, channel = writer()
    for _number in range(NUM_SLOTS + 10):
        one.enter(call(channel))
    snapshot = page.snapshot()
    assert snapshot.channels == {Channel("collective", "0", (0, 1, 2)): NUM_SLOTS + 10}
    assert len(snapshot.recent) == NUM_SLOTS
    assert snapshot.recent[0].sequence == 11
    assert [record.number for record in page.history(after=NUM_SLOTS + 7)] == [264, 265]


def test_a_wait_for_a_record_that_was_written_over_makes_the_snapshot_incomplete():
    page, one, channel = writer()
    one.block(one.enter(call(channel)))
    assert page.snapshot().complete
    for _number in range(NUM_SLOTS):
        one.enter(call(channel))
    assert not page.snapshot().complete


def test_waits_of_several_threads_are_all_shown():
    page, one, channel = writer()
    numbers = [one.enter(call(channel)) for _number in range(3)]
    for number in numbers:
        one.block(number)
    one.unblock(numbers[1])
    assert [record.number for record in page.snapshot().waiting] == [numbers[0], numbers[2]]


def test_every_change_moves_the_counter():
    page, one, channel = writer()
    seen = [page.head()[0]]
    number = one.enter(call(channel))
    for change in (one.block, one.unblock):
        seen.append(page.head()[0])
        change(number)
    seen.append(page.head()[0])
    page.finish()
    seen.append(page.head()[0])
    assert seen == sorted(set(seen))
    assert page.snapshot().left


def test_long_paths_and_odd_text_are_cut_not_harmful():
    page, one, channel = writer()
    texts = b"\x1f".join([b"all_reduce", b"(2,)", b"float32", b"/deep" * 200 + "ü".encode()])
    one.enter(Call(channel, texts, 8, -1))
    (record,) = page.snapshot().recent
    assert record.operation == "all_reduce"
    assert record.place.startswith("/deep/deep")


def test_more_channels_than_fit_are_told_as_incomplete():
    page = Board.create(1).page(0)
    one = Writer(page)
    group = GroupChannels("0", (0, 1))
    for tag in range(300):
        channel = one.channel(group, ("send", 1, tag))
        one.enter(call(channel, "send"))
    snapshot = page.snapshot()
    assert not snapshot.complete
    assert len(snapshot.recent) == NUM_SLOTS


def test_a_board_in_a_file_is_shared_between_processes(tmp_path):
    path = tmp_path / "board"
    board = Board.at(path, 2)
    code = (
        "import sys; from breaklab.ranks.records import Board;"
        "Board.at(sys.argv[1], 2).page(1).finish()"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    assert [snapshot.left for snapshot in board.snapshot()] == [False, True]
    assert [one.left for one in board.snapshot(left=frozenset({0}))] == [True, True]


def test_a_reader_never_sees_half_a_wait():
    """A writer in another process blocks and unblocks as fast as it can; a reader looks on."""
    board = Board.create(1)
    stop = multiprocessing.get_context("fork").Event()
    pid = os.fork()
    if pid == 0:
        one = Writer(board.page(0))
        channel = one.channel(world(), COLLECTIVE)
        while not stop.is_set():
            for _time in range(100):
                number = one.enter(call(channel, "barrier"))
                one.block(number)
                one.unblock(number)
        os._exit(0)
    try:
        page, looks = board.page(0), 0
        deadline = time.monotonic() + 20
        while looks < 100 and time.monotonic() < deadline:
            snapshot = page.snapshot()
            for record in snapshot.recent:
                assert (record.operation, record.place) == ("barrier", "a.py:1")
            looks += 1
        assert looks == 100
    finally:
        stop.set()
        os.waitpid(pid, 0)


@pytest.mark.parametrize(
    ("ranks", "text"),
    [((), ""), ((3,), "3"), ((0, 1), "0,1"), ((0, 1, 2, 3, 6), "0-3,6"), ((7, 5, 6), "5-7")],
)
def test_sets_of_ranks_are_written_and_read(ranks, text):
    assert format_ranks(ranks) == text
    assert parse_ranks(text) == tuple(sorted(ranks))


def test_a_channel_is_read_as_it_was_written():
    for key in (COLLECTIVE, ("send", 2, 7), ("recv_any", -1, 0)):
        kind, peer, tag = key
        assert parse_channel(world().text(key)) == Channel(kind, "0", (0, 1, 2), peer, tag)
