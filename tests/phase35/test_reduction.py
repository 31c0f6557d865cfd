"""After synchronisation every rank holds the gradient of the global batch, and only that."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from minidp.allreduce import Communicator
from minidp.data_parallel import DataParallel
from minidp.gradient_sync import flatten_gradients
from minidp.loss import count_labels_everywhere, label_loss_sum, rank_loss
from minidp.model import DigitClassifier
from minidp.node_groups import TwoLevel, plan_groups
from minidp.ring import chunk_bounds, ring_all_reduce, ring_schedule
from torch import nn

WORLD_SIZES = (2, 3, 4)
TOLERANCE = 1e-6
IMAGES, LABELS = 64, 10


class Forked(nn.Module):
    """Two layers of the same shape; a batch uses one, the other, or neither."""

    def __init__(self):
        super().__init__()
        self.left, self.right, self.idle = (nn.Linear(4, 4) for _ in range(3))

    def forward(self, x, use):
        for name in use:
            x = getattr(self, name)(x)
        return x.sum() if use else x.sum() + self.left.bias.sum() * 0


def batch_of(rank, step=0, rows=5):
    generator = torch.Generator().manual_seed(1000 * step + rank)
    images = torch.rand(rows + rank, IMAGES, generator=generator)
    labels = torch.randint(LABELS, (rows + rank,), generator=generator)
    return images, labels.masked_fill(torch.arange(rows + rank) % (rank + 2) == 0, -100)


def seeded_model():
    torch.manual_seed(3)
    return DigitClassifier(16)


def grads_of(module):
    return {n: p.grad.clone() for n, p in module.named_parameters() if p.grad is not None}


def steps_with_minidp(num_steps, lazy):
    """Return the gradients of each step, and those of one process on all ranks' data."""
    comm = Communicator(lazy=lazy)
    model = DataParallel(seeded_model(), comm, bucket_cap=300)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    found = []
    for step in range(num_steps):
        images, labels = batch_of(comm.rank, step)
        count = count_labels_everywhere([labels], comm)
        model.zero_grad()
        rank_loss(label_loss_sum(model(images), labels), count, comm.world_size).backward()
        model.finish()
        found.append(grads_of(model.module))
        optimizer.step()
    return found, steps_in_one_process(num_steps, comm.world_size)


def steps_in_one_process(num_steps, world_size):
    model = seeded_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    found = []
    for step in range(num_steps):
        batches = [batch_of(rank, step) for rank in range(world_size)]
        images = torch.cat([images for images, _ in batches])
        labels = torch.cat([labels for _, labels in batches])
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels, ignore_index=-100).backward()
        found.append(grads_of(model))
        optimizer.step()
    return found


def grads_when_every_micro_batch_communicates():
    ours, theirs = seeded_model(), seeded_model()
    comm = Communicator()
    wrapped = DataParallel(ours, comm, bucket_cap=100)
    ddp = nn.parallel.DistributedDataParallel(theirs, find_unused_parameters=True)
    wrapped.zero_grad()
    calls = comm.num_collectives
    for step in range(3):
        images, labels = batch_of(dist.get_rank(), step)
        nn.functional.cross_entropy(wrapped(images), labels).backward()
        nn.functional.cross_entropy(ddp(images), labels).backward()
    wrapped.finish()
    calls = comm.num_collectives - calls
    return grads_of(ours), grads_of(theirs), calls / 3 - len(wrapped.buckets)


def grads_with_minidp_and_ddp():
    rank = dist.get_rank()
    images, labels = batch_of(rank)
    ours, theirs = seeded_model(), seeded_model()
    wrapped = DataParallel(ours, Communicator(), bucket_cap=100)
    wrapped.zero_grad()
    nn.functional.cross_entropy(wrapped(images), labels).backward()
    wrapped.finish()
    ddp = nn.parallel.DistributedDataParallel(theirs, find_unused_parameters=True)
    nn.functional.cross_entropy(ddp(images), labels).backward()
    return grads_of(ours), grads_of(theirs)


def forked_grads(uses):
    """``uses[rank]``: the layers that each micro-batch of a window uses on that rank."""
    comm = Communicator()
    torch.manual_seed(8)
    module = Forked()
    model = DataParallel(module, comm, bucket_cap=1)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
    before = {n: p.detach().clone() for n, p in module.named_parameters()}
    model.zero_grad()
    x = torch.full((1, 4), 1.0 + comm.rank)
    mine = uses[comm.rank]
    for use in mine[:-1]:
        with model.no_sync():
            model(x, use).backward()
    model(x, mine[-1]).backward()
    model.finish()
    grads = grads_of(module)
    optimizer.step()
    moved = {n for n, p in module.named_parameters() if not torch.equal(p, before[n])}
    return grads, moved, comm.num_collectives


def plain_gradient_of_unused_layer():
    module = Forked()
    module(torch.ones(1, 4), ["left"] if dist.get_rank() == 0 else ["left", "right"]).backward()
    return flatten_gradients(module).numel()


def rings_and_gloo(lengths):
    comm = Communicator()
    found = []
    for numel in lengths:
        generator = torch.Generator().manual_seed(7 * numel + comm.rank)
        mine = torch.randint(-50, 50, (numel,), generator=generator).float()
        expected = mine.clone()
        dist.all_reduce(expected)
        found.append((ring_all_reduce(mine.clone(), comm), expected))
    return found, comm.num_bytes_sent


def rings_of_random_floats():
    comm = Communicator()
    torch.manual_seed(comm.rank)
    found = []
    for _ in range(100):  # so many that a fault which strikes rarely strikes
        mine = torch.randn(5)
        expected = mine.clone()
        dist.all_reduce(expected)
        found.append((ring_all_reduce(mine, comm), expected))
    return found


def sum_on_two_levels():
    comm = Communicator()
    mine = torch.tensor([10.0**comm.rank, comm.rank])
    return TwoLevel(comm, ranks_per_node=2).all_reduce_sum(mine)


def sums_read_after_wait():
    comm = Communicator(lazy=True)
    tensors = [torch.full((3,), float(comm.rank + 10 * i)) for i in range(3)]
    handles = [comm.start_sum(t) for t in tensors]
    handles[1].wait()  # which must also bring the one before it
    early = tensors[2].clone()
    handles[2].wait()
    return tensors, early


def assert_same_grads(actual, expected):
    assert actual.keys() == expected.keys()
    for name, grad in actual.items():
        assert abs(grad.numpy() - expected[name].numpy()).max() < TOLERANCE, name


def sum_of_unequal_lengths():
    comm = Communicator()
    with pytest.raises(RuntimeError) as caught:
        comm.all_reduce_dynamic(torch.ones(3 + comm.rank))
    return str(caught.value), comm.all_reduce_dynamic(torch.ones(2)).tolist()


def sends_waited_for_in_a_ring():
    """Return how many sends of a ring this rank started, and how many it waited for."""
    comm, started, waited = Communicator(), [], []
    send = dist.isend

    def watched(*args, **options):
        work = send(*args, **options)
        started.append(work)
        return SimpleNamespace(wait=lambda: waited.append(work.wait()))

    dist.isend = watched  # in this rank's own process
    ring_all_reduce(torch.ones(5), comm)
    return len(started), len(waited)


@pytest.mark.parametrize("lazy", [False, True], ids=["overlapped", "slow_network"])
def test_gradients_equal_the_global_batch_gradients_for_three_steps(run_ranks, lazy):
    for world_size in WORLD_SIZES:
        for actual, expected in run_ranks(steps_with_minidp, world_size, args=(3, lazy)):
            for of_step, expected_of_step in zip(actual, expected, strict=True):
                assert_same_grads(of_step, expected_of_step)


def test_gradients_equal_those_of_torch_ddp(run_ranks):
    for ours, theirs in run_ranks(grads_with_minidp_and_ddp, world_size=3):
        assert_same_grads(ours, theirs)


def test_gradients_add_up_when_every_micro_batch_communicates(run_ranks):
    ranks = run_ranks(grads_when_every_micro_batch_communicates, world_size=2)
    for actual, expected, calls_beside_buckets in ranks:
        assert_same_grads(actual, expected)
        assert calls_beside_buckets == 1  # in each micro-batch: the map of used parameters


def test_a_layer_used_on_one_rank_gets_the_same_gradient_on_all(run_ranks):
    uses = [[["left"]], [["left", "right"]], [["left"]]]
    ranks = run_ranks(forked_grads, world_size=3, args=(uses,))
    for grads, moved, num_collectives in ranks:
        assert_same_grads(grads, ranks[0][0])
        assert grads.keys() == {"left.weight", "left.bias", "right.weight", "right.bias"}
        assert moved == grads.keys()
        assert num_collectives == ranks[0][2]


def test_a_layer_used_in_an_earlier_micro_batch_only_is_averaged_too(run_ranks):
    uses = [[["left", "right"], ["left"], ["left"]], [["left"], ["left"], ["left"]]]
    ranks = run_ranks(forked_grads, world_size=2, args=(uses,))
    assert_same_grads(ranks[1][0], ranks[0][0])
    assert "right.weight" in ranks[0][0]
    assert abs(ranks[0][0]["right.bias"].numpy() - 0.5).max() < TOLERANCE  # 1 of 2 ranks


def test_a_layer_that_no_rank_uses_does_not_move(run_ranks):
    uses = [[["left"]], [["right"]]]
    for grads, moved, _ in run_ranks(forked_grads, world_size=2, args=(uses,)):
        assert not {name for name in grads.keys() | moved if name.startswith("idle")}


def test_flat_gradients_have_the_same_length_whatever_a_rank_used(run_ranks):
    assert len(set(run_ranks(plain_gradient_of_unused_layer, world_size=2))) == 1


def test_tensors_of_unequal_length_are_refused_on_every_rank(run_ranks):
    refusal = "size mismatch: rank 0 brings 3, rank 1 brings 4 elements"
    assert run_ranks(sum_of_unequal_lengths, world_size=2) == [(refusal, [2.0, 2.0])] * 2


def test_ring_equals_gloo_at_every_length(run_ranks):
    for world_size in WORLD_SIZES:
        lengths = [1, 2, world_size - 1, world_size, world_size + 1, 2 * world_size + 1, 101]
        for found, num_bytes in run_ranks(rings_and_gloo, world_size, args=(lengths,)):
            for actual, expected in found:
                assert torch.equal(actual, expected), (world_size, len(expected))
            assert num_bytes > 0


def test_every_ring_of_many_equals_gloo_on_random_floats(run_ranks):
    ranks = run_ranks(rings_of_random_floats, world_size=3)
    for found in ranks:
        for (actual, expected), (on_rank_0, _) in zip(found, ranks[0], strict=True):
            assert torch.equal(actual, on_rank_0)
            assert abs(actual.numpy() - expected.numpy()).max() < 1e-5


def test_a_ring_rank_sends_two_times_n_minus_one_over_n_of_the_tensor(run_ranks):
    for world_size in (3, 4):
        numel = 12
        for _, num_bytes in run_ranks(rings_and_gloo, world_size=world_size, args=([numel],)):
            assert num_bytes == 4 * numel * 2 * (world_size - 1) / world_size


def test_a_ring_rank_waits_for_what_it_sent(run_ranks):
    assert run_ranks(sends_waited_for_in_a_ring, world_size=3) == [(4, 4)] * 3


def test_ring_schedule_sends_what_the_right_neighbour_receives():
    for world_size in (*WORLD_SIZES, 5):
        schedules = [ring_schedule(rank, world_size) for rank in range(world_size)]
        for rank, hops in enumerate(schedules):
            assert len(hops) == 2 * (world_size - 1)
            assert [hop.adds for hop in hops] == [True] * (len(hops) // 2) + [False] * (
                len(hops) // 2
            )
            right = schedules[(rank + 1) % world_size]
            assert [hop.send for hop in hops] == [hop.receive for hop in right]


def test_ring_chunks_cover_the_tensor_once():
    for numel in (0, 1, 2, 7, 12, 101):
        covered = [i for chunk in chunk_bounds(numel, 4) for i in range(numel)[chunk]]
        assert covered == list(range(numel))


def test_sum_in_two_levels_equals_the_sum_over_the_world(run_ranks):
    for total in run_ranks(sum_on_two_levels, world_size=4):
        assert total.tolist() == [1111.0, 6.0]


def test_each_rank_is_in_one_node_group_and_one_group_between_nodes():
    assert plan_groups(3, 1) == ([[0], [1], [2]], [[0, 1, 2]])
    inside, between = plan_groups(6, 2)
    assert inside == [[0, 1], [2, 3], [4, 5]]
    assert between == [[0, 2, 4], [1, 3, 5]]
    with pytest.raises(ValueError, match="don't fill"):
        plan_groups(5, 2)


def test_an_asynchronous_sum_is_there_after_wait(run_ranks):
    for rank, (tensors, early) in enumerate(run_ranks(sums_read_after_wait, world_size=2)):
        assert [t.tolist() for t in tensors] == [[1.0] * 3, [21.0] * 3, [41.0] * 3]
        assert early.tolist() == [rank + 20.0] * 3  # a lazy network: nothing before its wait
