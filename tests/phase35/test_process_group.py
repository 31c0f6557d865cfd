"""Ranks join and leave together, and wait for work that one of them does for all."""

from __future__ import annotations

import time

import pytest
import torch
import torch.distributed as dist
from minidp.allreduce import Communicator
from minidp.build import load_data
from minidp.config import Config
from minidp.process_group import process_group, rank0_first, shared_folder

TIMEOUT_S = 3600  # nobody waits for it to pass


def group_at(path):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    dist.destroy_process_group()
    return f"file://{path}?rank={rank}&world_size={world_size}"


def leave_after_the_slowest(folder):
    url = group_at(folder / "store")
    with process_group(TIMEOUT_S, init_method=url) as comm:
        rank = comm.rank
        if rank == 1:
            time.sleep(0.2)  # far longer than leaving takes
            (folder / "rank 1 was there").touch()
    return (folder / "rank 1 was there").exists(), dist.is_initialized()


def fail_together(comm):
    comm.barrier()  # a peer that is still joining would see this rank leave, and fail otherwise
    raise ZeroDivisionError


def leave_by_an_error(folder):
    url = group_at(folder / "store")
    with pytest.raises(ZeroDivisionError), process_group(TIMEOUT_S, init_method=url) as comm:
        fail_together(comm)
    return dist.is_initialized()


def join_again(folder):
    totals = []
    for name in ("first", "second"):
        if not totals:
            url = group_at(folder / name)
        else:
            url = f"file://{folder / name}?{url.partition('?')[2]}"
        with process_group(TIMEOUT_S, init_method=url) as comm:
            totals.append(int(comm.all_reduce_sum(torch.tensor(comm.rank + 1))))
    return totals


def timeout_of_group(folder):
    with process_group(1234, init_method=group_at(folder / "store")):
        return dist.group.WORLD._get_backend(torch.device("cpu")).options._timeout.total_seconds()


def read_what_rank_zero_wrote(folder):
    comm = Communicator()
    path = folder / "prepared"

    def prepare():
        time.sleep(0.2)  # far longer than reading takes
        with path.open("a") as file:
            file.write(f"whole, by rank {comm.rank}")

    rank0_first(comm, prepare)
    return path.read_text()


def cached_data(folder):
    calls = []
    comm = Communicator(before=calls.append)
    with_cache = load_data(Config(cache=folder), comm)
    without = load_data(Config(prepare_s=0.001), comm)
    return calls, [
        torch.equal(a.images, b.images) and torch.equal(a.labels, b.labels)
        for a, b in zip(with_cache, without, strict=True)
    ]


def folder_of_all():
    comm = Communicator()
    with shared_folder(comm) as folder:
        (folder / str(comm.rank)).touch()
        comm.barrier()
        names = sorted(path.name for path in folder.iterdir())
        comm.barrier()
        if comm.rank:
            time.sleep(0.2)  # far longer than leaving takes
            assert folder.exists()
    comm.barrier()
    return names, folder.exists()


def operations_in_a_group():
    """Return what each operation gives on ranks 1 and 2 of 3; rank 0 takes no part."""
    group = dist.new_group([1, 2])
    if dist.get_rank() == 0:
        return None
    comm, late = Communicator(group), Communicator(group, lazy=True)
    mine = torch.tensor([comm.rank + 1.0])  # 1, 2
    found = {
        "sum": comm.all_reduce_sum(mine.clone()),
        "largest": comm.all_reduce_max(mine.clone()),
        "from 0": comm.broadcast(mine.clone()),
        "from 1": comm.broadcast(mine.clone(), src=1),
        "gathered": torch.cat(comm.all_gather(mine)),
        "objects": torch.cat(comm.all_gather_object(mine)),
        "exchanged": torch.zeros(1),
    }
    comm.exchange(mine, 1 - comm.rank, found["exchanged"], 1 - comm.rank)
    for name, each in (("now", comm), ("late", late)):
        found[f"sum {name}"], found[f"from 1 {name}"] = mine.clone(), mine.clone()
        each.start_sum(found[f"sum {name}"]).wait()
        each.start_broadcast(found[f"from 1 {name}"], src=1).wait()
    comm.barrier()
    return {name: value.tolist() for name, value in found.items()}


def test_no_rank_leaves_before_the_last_one(run_ranks, tmp_path):
    ranks = run_ranks(leave_after_the_slowest, world_size=2, args=(tmp_path,))
    assert ranks == [(True, False)] * 2


def test_a_rank_that_fails_leaves_at_once(run_ranks, tmp_path):
    assert run_ranks(leave_by_an_error, world_size=2, args=(tmp_path,)) == [False, False]


def test_a_group_can_be_joined_again_after_leaving(run_ranks, tmp_path):
    assert run_ranks(join_again, world_size=2, args=(tmp_path,)) == [[3, 3], [3, 3]]


def test_collectives_may_take_as_long_as_asked_for(run_ranks, tmp_path):
    assert run_ranks(timeout_of_group, world_size=2, args=(tmp_path,)) == [1234.0] * 2


def test_work_of_rank_zero_is_there_for_all(run_ranks, tmp_path):
    ranks = run_ranks(read_what_rank_zero_wrote, world_size=3, args=(tmp_path,))
    assert ranks == ["whole, by rank 0"] * 3


def test_prepared_data_equal_the_file_s(run_ranks, tmp_path):
    for calls, equal in run_ranks(cached_data, world_size=2, args=(tmp_path,)):
        assert calls == ["barrier", "barrier"]
        assert equal == [True, True]


def test_a_shared_folder_is_one_folder_and_goes(run_ranks):
    assert run_ranks(folder_of_all, world_size=2) == [(["0", "1"], False)] * 2


def test_operations_of_a_group_ask_nobody_else(run_ranks):
    outside, *inside = run_ranks(operations_in_a_group, world_size=3)
    assert outside is None
    for rank, found in enumerate(inside):
        assert found.pop("exchanged") == [2.0 - rank]
        assert found.pop("largest") == [2.0]
        assert found.pop("gathered") == found.pop("objects") == [1.0, 2.0]
        assert {name: value for name, value in found.items() if "sum" in name} == {
            "sum": [3.0],
            "sum now": [3.0],
            "sum late": [3.0],
        }
        assert found.pop("from 0") == [1.0]
        assert [found[name] for name in ("from 1", "from 1 now", "from 1 late")] == [[2.0]] * 3
