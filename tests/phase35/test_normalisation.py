"""Statistics of the batch are those of the global batch, in training and in evaluation."""

from __future__ import annotations

import pytest
import torch
from minidp.allreduce import Communicator
from minidp.config import Config
from minidp.evaluate import evaluate
from minidp.sync_batchnorm import SyncBatchNorm
from minidp.trainer import Trainer
from torch import nn

ROWS = (5, 2, 7, 0)  # of each rank: unequal, and none


def rows_of(rank, layout):
    generator = torch.Generator().manual_seed(rank)
    shape = {"flat": (ROWS[rank], 3), "length": (ROWS[rank], 3, 4)}.get(layout)
    if layout == "transposed":
        return torch.randn(ROWS[rank], 4, 3, generator=generator).transpose(1, 2) * 2 + 1
    return torch.randn(shape, generator=generator) * 2 + 1


def results(norm, x, weights):
    """Return output, gradients and running statistics after two training forwards."""
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([1.0, 2.0, 3.0]))
        norm.bias.copy_(torch.tensor([0.5, 0.0, -1.0]))
    norm(x * 3)
    x = x.detach().requires_grad_()
    y = norm(x)
    (y * weights).sum().backward()
    return (
        [y.detach(), x.grad],
        [norm.weight.grad, norm.bias.grad],
        [
            norm.running_mean.clone(),
            norm.running_var.clone(),
        ],
    )


def weights_like(x, rank):
    return torch.randn(x.shape, generator=torch.Generator().manual_seed(50 + rank))


def synchronised(layout):
    comm = Communicator()
    x = rows_of(comm.rank, layout)
    actual = results(SyncBatchNorm(3, comm), x, weights_like(x, comm.rank))
    return *actual, concatenated(layout, comm.world_size)


def concatenated(layout, world_size):
    xs = [rows_of(rank, layout) for rank in range(world_size)]
    weights = torch.cat([weights_like(x, rank) for rank, x in enumerate(xs)])
    return results(nn.BatchNorm1d(3), torch.cat(xs), weights)


def evaluated():
    comm = Communicator()
    norm = SyncBatchNorm(3, comm)
    norm(rows_of(comm.rank, "length"))
    norm.eval()
    reference = nn.BatchNorm1d(3).eval()
    reference.load_state_dict({**norm.state_dict(), "num_batches_tracked": torch.tensor(0)})
    calls = comm.num_collectives
    x = rows_of(2, "length")
    return norm(x).detach(), reference(x).detach(), comm.num_collectives - calls


def local_statistics_at_evaluation():
    config = Config(sync="overlap", norm="local", steps=4, eval_every=2, num_train=61, num_test=17)
    trainer = Trainer(config, Communicator())
    own = []
    sync_buffers = trainer.model.sync_buffers

    def record_and_sync():
        own.append(trainer.module.norm.running_mean.clone())
        sync_buffers()

    trainer.model.sync_buffers = record_and_sync
    trainer.train()
    rows = trainer.evaluate()
    alone = Communicator(torch.distributed.new_group([0])) if trainer.comm.rank == 0 else None
    if alone is None:
        torch.distributed.new_group([0])
        return own, rows["state_digest"], rows["eval_loss"], None
    saved = evaluate(trainer.module, trainer.test_data, alone)
    return own, rows["state_digest"], rows["eval_loss"], saved.loss


def evaluation_on_rank_zero_only():
    comm = Communicator()
    config = Config(sync="overlap", norm="local", num_train=61, num_test=17)
    trainer = Trainer(config, comm)
    calls = comm.num_collectives
    if comm.rank == 0:
        trainer.guess(torch.tensor(3))
    return comm.num_collectives - calls, trainer.module.training


@pytest.mark.parametrize("layout", ["flat", "length", "transposed"])
def test_output_gradients_and_statistics_equal_the_concatenated_batch(run_ranks, layout):
    for world_size in (2, 4):
        ranks = run_ranks(synchronised, world_size=world_size, args=(layout,))
        rows, params, running = ranks[0][-1]
        for i in range(2):
            together = torch.cat([of_rank[0][i] for of_rank in ranks])
            assert abs(together.numpy() - rows[i].numpy()).max() < 1e-5
            total = sum(of_rank[1][i].numpy() for of_rank in ranks)
            assert abs(total - params[i].numpy()).max() < 1e-4
        for _, _, actual, _ in ranks:
            for i in range(2):
                assert torch.equal(actual[i], ranks[0][2][i])
                assert abs(actual[i].numpy() - running[i].numpy()).max() < 1e-5


def test_evaluation_uses_the_running_statistics_and_no_collective(run_ranks):
    for actual, expected, calls in run_ranks(evaluated, world_size=2):
        assert abs(actual.numpy() - expected.numpy()).max() < 1e-5
        assert calls == 0


def test_statistics_of_each_rank_are_made_equal_before_evaluation(run_ranks):
    ranks = run_ranks(local_statistics_at_evaluation, world_size=2)
    last = [own[1] for own, *_ in ranks]  # at the first evaluation after training
    assert not torch.equal(last[0], last[1])  # else the test could not fail
    assert ranks[0][1] == ranks[1][1]
    assert ranks[0][3] == pytest.approx(ranks[0][2], rel=1e-6)  # what rank 0 would save


def test_one_rank_can_evaluate_alone(run_ranks):
    assert run_ranks(evaluation_on_rank_zero_only, world_size=2) == [(0, True), (0, True)]
