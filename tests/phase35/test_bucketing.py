"""Buckets hold each gradient once, alike on all ranks, and leave in one order."""

from __future__ import annotations

import torch
from minidp.allreduce import Communicator
from minidp.bucket import assign_buckets
from minidp.data_parallel import DataParallel
from minidp.model import DigitClassifier
from torch import nn


class TwoPaths(nn.Module):
    """Two layers of one shape; the rank decides which one runs, and so finishes, first."""

    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x, first):
        layers = [self.left, self.right] if first == "left" else [self.right, self.left]
        for scale, layer in zip((1.0, 10.0), layers, strict=True):
            x = layer(x) * scale
        return x.sum()


def gradients_of_opposite_orders(orders):
    comm = Communicator()
    torch.manual_seed(2)
    module = TwoPaths()
    model = DataParallel(module, comm, bucket_cap=12)
    model.zero_grad()
    model(torch.ones(1, 3), orders[comm.rank]).backward()
    model.finish()
    return {n: p.grad.clone() for n, p in module.named_parameters()}


def local_gradients(orders):
    found = []
    for first in orders:
        torch.manual_seed(2)
        module = TwoPaths()
        module(torch.ones(1, 3), first).backward()
        found.append({n: p.grad.clone() for n, p in module.named_parameters()})
    return {n: sum(grads[n] for grads in found) / len(found) for n in found[0]}


def bucket_table():
    torch.manual_seed(11)
    module = DigitClassifier(8)
    names = {p: n for n, p in module.named_parameters()}
    model = DataParallel(module, Communicator(), bucket_cap=200)
    return [
        [(names[p], view.storage_offset()) for p, view in bucket.views.items()]
        for bucket in model.buckets
    ]


def where_gradients_lie(num_steps):
    comm = Communicator()
    model = DataParallel(nn.Linear(3, 2), comm, bucket_cap=7)
    found = []
    for step in range(num_steps):
        model.zero_grad()
        model(torch.full((1, 3), float(step + comm.rank))).sum().backward()
        model.finish()
        inside = all(
            p.grad.untyped_storage().data_ptr() == bucket.buffer.untyped_storage().data_ptr()
            for bucket in model.buckets
            for p in bucket.views
        )
        found.append((inside, model.module.weight.grad.clone()))
    return found


def test_buckets_hold_every_item_once_in_order_and_within_the_cap():
    for cap in (1, 5, 8, 100, None):
        sizes = [3, 5, 2, 7, 1, 1, 9]
        buckets = assign_buckets(sizes, cap)
        assert [i for bucket in buckets for i in bucket] == list(range(len(sizes)))
        assert all(buckets)
        for bucket in buckets:
            total = sum(sizes[i] for i in bucket)
            assert cap is None or total <= cap or len(bucket) == 1
    assert assign_buckets([3, 5, 2, 7], 8) == [[0, 1], [2], [3]]
    assert assign_buckets([3, 5, 2], None) == [[0, 1, 2]]


def test_all_ranks_have_the_same_bucket_table(run_ranks):
    tables = run_ranks(bucket_table, world_size=3)
    assert tables[1] == tables[0]
    assert tables[2] == tables[0]
    assert len(tables[0]) > 2
    names = [name for bucket in tables[0] for name, _ in bucket]
    assert len(set(names)) == len(names)
    assert names[0].startswith("head")  # the last layer's gradients are ready first


def test_gradients_are_right_when_ranks_finish_layers_in_opposite_order(run_ranks):
    orders = ["left", "right"]
    (expected,) = run_ranks(local_gradients, world_size=1, args=(orders,))
    for actual in run_ranks(gradients_of_opposite_orders, world_size=2, args=(orders,)):
        for name, grad in actual.items():
            assert abs(grad.numpy() - expected[name].numpy()).max() < 1e-5, name


def test_gradients_lie_in_the_buckets_and_are_right_in_every_step(run_ranks):
    for found in run_ranks(where_gradients_lie, world_size=2, args=(3,)):
        for step, (inside, grad) in enumerate(found):
            assert inside
            assert grad.tolist() == [[step + 0.5] * 3] * 2
