from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from breaklab.ranks import harness
from breaklab.ranks.harness import RanksFailed


def rank_and_sum(scale: int, *, offset: int = 0) -> tuple[int, torch.Tensor]:
    total = torch.tensor([dist.get_rank() * scale + offset])
    dist.all_reduce(total)
    return dist.get_rank(), total


def rank_one_raises() -> None:
    if dist.get_rank() == 1:
        raise ValueError("bad batch\nsecond line")
    dist.barrier()


def rank_one_raises_late() -> None:
    if dist.get_rank() == 1:
        dist.all_reduce(torch.ones(4))
        raise ValueError("bad batch")
    for _ in range(3):
        dist.all_reduce(torch.ones(4))


def peers_wrap_the_noise() -> None:
    if dist.get_rank() == 2:
        raise KeyError("the cause")
    try:
        dist.barrier()
    except RuntimeError as error:
        raise ValueError("training failed") from error


def rank_two_is_killed() -> None:
    if dist.get_rank() == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()


def sizes_differ() -> None:
    dist.all_reduce(torch.ones(1000 if dist.get_rank() == 1 else 2000))


def rank_zero_exits() -> None:
    if dist.get_rank() == 0:
        os._exit(7)
    dist.barrier()


def rank_one_calls_sys_exit() -> None:
    if dist.get_rank() == 1:
        sys.exit("no data")
    dist.barrier()


def rank_one_returns_early() -> None:
    if dist.get_rank() != 1:
        dist.barrier()


def rank_one_sleeps() -> None:
    if dist.get_rank() == 1:
        time.sleep(600)
    dist.barrier()


def first_leaves_long_before_the_last() -> int:
    if dist.get_rank() == 2:
        time.sleep(1.5)  # longer than a returned rank is held back
    return dist.get_rank()


def speak() -> None:
    print(f"out of {dist.get_rank()}")
    print("no newline", end="", file=sys.stderr)


def draw() -> list[float]:
    return torch.rand(3).tolist()


def returns_a_lock() -> object:
    return threading.Lock() if dist.get_rank() == 1 else None


def world() -> tuple[str, ...]:
    return tuple(os.environ[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"))


def test_each_rank_returns_its_own_value_by_rank(run_ranks):
    values = run_ranks(rank_and_sum, 3, args=(10,), kwargs={"offset": 1})
    assert [rank for rank, _ in values] == [0, 1, 2]
    assert all(torch.equal(total, torch.tensor([33])) for _, total in values)


def test_a_world_of_one_is_a_reference_for_larger_ones(run_ranks):
    ((rank, total),) = run_ranks(rank_and_sum, 1, args=(10,), kwargs={"offset": 5})
    assert (rank, total.item()) == (0, 5)


def test_ranks_know_their_place_from_the_environment_too(run_ranks):
    assert run_ranks(world, 2) == [("0", "0", "2"), ("1", "1", "2")]


def test_a_world_without_ranks_is_refused(run_ranks):
    with pytest.raises(ValueError, match="world_size"):
        run_ranks(world, 0)


def test_what_a_rank_prints_appears_here_with_its_rank(run_ranks, capsys):
    run_ranks(speak, 2)
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines) == [
        "[rank=0] no newline",
        "[rank=0] out of 0",
        "[rank=1] no newline",
        "[rank=1] out of 1",
    ]


def test_random_numbers_do_not_depend_on_what_ran_before(run_ranks):
    first = run_ranks(draw, 1)
    torch.manual_seed(12345)
    assert run_ranks(draw, 1) == first


def test_the_error_names_the_rank_that_raised_and_shows_its_traceback(run_ranks):
    with pytest.raises(RanksFailed) as caught:
        run_ranks(rank_one_raises, 3)
    message = str(caught.value)
    assert caught.value.rank == 1
    assert message.splitlines()[0] == "rank 1 failed first: ValueError: bad batch"
    assert "only lost a peer: rank 0, 2" in message
    assert 'raise ValueError("bad batch' in message
    assert "Connection closed" not in message
    assert caught.value.ends[1].error == "ValueError: bad batch"
    assert all("by peer" in caught.value.ends[rank].error for rank in (0, 2))


def test_peers_in_the_middle_of_a_collective_are_not_blamed(run_ranks):
    with pytest.raises(RanksFailed, match="rank 1 failed first: ValueError: bad batch"):
        run_ranks(rank_one_raises_late, 3)


def test_peers_that_wrap_the_noise_in_an_error_of_their_own_are_not_blamed(run_ranks):
    with pytest.raises(RanksFailed, match="rank 2 failed first: KeyError: 'the cause'"):
        run_ranks(peers_wrap_the_noise, 3)


def test_a_rank_killed_by_a_signal_is_named_with_the_signal(run_ranks):
    with pytest.raises(
        RanksFailed, match="rank 2 failed first: killed by signal SIGKILL"
    ) as caught:
        run_ranks(rank_two_is_killed, 3)
    assert caught.value.ends[2].exit_code == -signal.SIGKILL


def test_an_abort_in_gloo_is_told_with_gloos_own_text(run_ranks):
    with pytest.raises(
        RanksFailed, match="a peer sent 1336 bytes where 668 were expected"
    ) as caught:
        run_ranks(sizes_differ, 3)
    assert "Received data size doesn't match expected size" in str(caught.value)
    assert "Extension modules" not in str(caught.value)


def test_a_rank_that_leaves_without_a_value_is_named_with_its_exit_code(run_ranks):
    with pytest.raises(RanksFailed, match="rank 0 failed first: left with exit code 7"):
        run_ranks(rank_zero_exits, 3)


def test_sys_exit_in_a_rank_is_a_failure(run_ranks):
    with pytest.raises(RanksFailed, match="rank 1 failed first: SystemExit: no data"):
        run_ranks(rank_one_calls_sys_exit, 2)


def test_a_rank_that_returns_while_the_others_need_it_is_named(run_ranks):
    with pytest.raises(RanksFailed) as caught:
        run_ranks(rank_one_returns_early, 3)
    assert "rank 1" in str(caught.value).split("Traceback")[0]


def test_ranks_may_return_long_before_the_others(run_ranks):
    assert run_ranks(first_leaves_long_before_the_last, 3) == [0, 1, 2]


def test_a_value_that_cannot_travel_is_a_clear_failure_of_its_rank(run_ranks):
    with pytest.raises(
        RanksFailed, match="rank 1 failed first: TypeError: cannot pickle"
    ) as caught:
        run_ranks(returns_a_lock, 2)
    assert "rank 1 returned a lock, which can't be sent" in str(caught.value)


def test_ranks_that_do_not_finish_are_ended_and_their_places_told(run_ranks):
    began = time.monotonic()
    with pytest.raises(RanksFailed, match="did not finish within 1 s") as caught:
        run_ranks(rank_one_sleeps, 3, timeout_s=1.0)
    assert time.monotonic() - began < 10
    stall = caught.value.stall
    assert stall is not None
    assert stall.kind == "timed"
    waits = {wait.rank: wait for wait in stall.waits}
    assert [waits[rank].operation for rank in range(3)] == ["barrier", "", "barrier"]
    places = [wait.place.rsplit(":", 1) for wait in stall.waits]
    assert {file.rsplit("/", 1)[-1] for file, _ in places} == {"test_harness.py"}
    first = rank_one_sleeps.__code__.co_firstlineno
    assert [int(line) - first for _, line in places] == [3, 2, 3]


def test_a_forked_rank_can_run_a_local_function(run_ranks):
    if harness.spawn_reason():
        pytest.skip(harness.spawn_reason())
    assert run_ranks(lambda: dist.get_world_size(), 2) == [2, 2]


def test_ranks_started_by_spawn_return_the_same_as_forked_ones():
    values = harness.run_ranks(rank_and_sum, 2, args=(10,), start="spawn")
    assert [(rank, total.item()) for rank, total in values] == [(0, 10), (1, 10)]


def test_ranks_started_by_spawn_see_this_process_environment_and_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("SOME_SETTING", "42")
    monkeypatch.chdir(tmp_path)
    assert harness.run_ranks(where, 2, start="spawn") == [("42", str(tmp_path))] * 2


def where() -> tuple[str, str]:
    return os.environ["SOME_SETTING"], str(Path.cwd())


def test_a_failure_of_a_spawned_rank_is_told_as_a_forked_ones():
    with pytest.raises(RanksFailed, match="rank 1 failed first: ValueError: bad batch"):
        harness.run_ranks(rank_one_raises, 3, start="spawn")


def test_a_local_function_cannot_be_spawned_and_the_error_says_what_to_do():
    with pytest.raises(TypeError, match="top level") as caught:
        harness.run_ranks(lambda: 1, 2, start="spawn")
    assert "<lambda>" in str(caught.value)
    assert (harness.spawn_reason() or "start='spawn' was given") in str(caught.value)
