"""A reported metric is the metric of the whole data set, and reporting it changes nothing."""

from __future__ import annotations

import math

import pytest
import torch
import torch.distributed as dist
from minidp.allreduce import Communicator
from minidp.config import Config
from minidp.dataloader import Digits, load_digits
from minidp.evaluate import evaluate, misclassified, predict
from minidp.model import DigitClassifier
from minidp.rng import RandomStreams
from minidp.trainer import Trainer
from torch import nn

NUM_TEST = 23  # a prime


def digits_to_test():
    images, labels = load_digits()
    return Digits(images[-NUM_TEST:], labels[-NUM_TEST:])


def seeded_model():
    torch.manual_seed(4)
    streams = RandomStreams()
    streams.seed(1, dist.get_rank())
    return DigitClassifier(16, nn.BatchNorm1d, streams, dropout=0.5, layer_drop=0.5)


def scores(batch):
    comm = Communicator()
    model, data = seeded_model(), digits_to_test()
    first = evaluate(model, data, comm, batch)
    again = evaluate(model, data, comm, batch)
    limited = [evaluate(model, data, comm, 2, max_batches=1) for _ in range(2)]
    order = predict(model, data, comm, batch), misclassified(model, data, comm, batch)
    return first, again, limited, order, scores_in_one_process()


def scores_in_one_process():
    model, data = seeded_model().eval(), digits_to_test()
    with torch.no_grad():
        losses = nn.functional.cross_entropy(model(data.images), data.labels, reduction="none")
        classes = model(data.images).argmax(1)
    return losses.double(), classes, data.labels


def f1_of_each_class(classes, labels):
    found = []
    for actual in set(labels.tolist()):
        hits = sum(c == y == actual for c, y in zip(classes.tolist(), labels.tolist(), strict=True))
        total = classes.tolist().count(actual) + labels.tolist().count(actual)
        found.append(2 * hits / total)
    return sum(found) / len(found)


def state_around_evaluation(training):
    comm = Communicator()
    model = seeded_model()
    model.train(training)

    def state():
        return (
            {name: value.clone() for name, value in model.state_dict().items()},
            model.streams.state_dict(),
            torch.get_rng_state(),
            [module.training for module in model.modules()],
        )

    before = state()
    evaluate(model, digits_to_test(), comm)
    return before, state()


def means():
    comm = Communicator()
    return [
        comm.all_reduce_mean(torch.tensor([comm.rank, 1])).tolist(),
        comm.all_reduce_mean(torch.tensor(1.5 * comm.rank)).tolist(),
    ]


def ragged():
    comm = Communicator()
    return [row.tolist() for row in comm.all_gather_ragged(torch.arange(comm.rank))]


def run_with_and_without_evaluation(eval_every):
    config = Config(
        sync="overlap", steps=4, num_train=61, num_test=11, micro_batch=2, eval_every=eval_every
    )
    trainer = Trainer(config, Communicator())
    trainer.train()
    return [p.detach().clone() for p in trainer.module.parameters()]


def test_scores_equal_those_of_one_process(run_ranks):
    for world_size in (1, 2, 3, 4):
        ranks = run_ranks(scores, world_size=world_size, args=(4,))
        losses, classes, labels = ranks[0][-1]
        loss = float(losses.numpy().mean())
        accuracy = float((classes.numpy() == labels.numpy()).mean())
        first = slice(2 * world_size)  # a batch of two on each rank
        for rank, (found, _again, (limited, _), *_) in enumerate(ranks):
            assert limited.loss == pytest.approx(losses[first].numpy().mean(), rel=1e-5)
            assert limited.f1 == pytest.approx(f1_of_each_class(classes[first], labels[first]))
            assert found.loss == pytest.approx(loss, rel=1e-5)
            assert found.accuracy == pytest.approx(accuracy, abs=1e-12)
            assert found.perplexity == pytest.approx(math.exp(loss), rel=1e-5)
            assert found.f1 == pytest.approx(f1_of_each_class(classes, labels), abs=1e-12)
            own = losses.numpy()[rank::world_size].mean()
            assert found.shard_loss == pytest.approx(own, rel=1e-5)


def test_predictions_come_in_the_order_of_the_data_set(run_ranks):
    for world_size in (2, 3):
        ranks = run_ranks(scores, world_size=world_size, args=(4,))
        _, classes, labels = ranks[0][-1]
        wrong = [i for i in range(NUM_TEST) if classes[i] != labels[i]]
        for *_, (predicted, missed), _ in ranks:
            assert predicted.tolist() == classes.tolist()
            assert missed.tolist() == wrong


def test_evaluating_twice_gives_the_same_scores(run_ranks):
    for first, again, limited, *_ in run_ranks(scores, world_size=3, args=(4,)):
        assert first == again
        assert limited[0] == limited[1]


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
def test_evaluation_leaves_weights_modes_and_random_streams_alone(run_ranks, training):
    for before, after in run_ranks(state_around_evaluation, world_size=2, args=(training,)):
        assert before[0].keys() == after[0].keys()
        assert all(torch.equal(before[0][name], after[0][name]) for name in before[0])
        assert all(torch.equal(before[1][name], after[1][name]) for name in before[1])
        assert torch.equal(before[2], after[2])
        assert before[3] == after[3]


def test_a_run_with_evaluations_ends_with_the_weights_of_one_without(run_ranks):
    runs = [
        run_ranks(run_with_and_without_evaluation, world_size=2, args=(every,)) for every in (0, 2)
    ]
    for without, with_evaluations in zip(*runs, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(without, with_evaluations, strict=True))


def test_the_mean_over_ranks_of_a_count_keeps_its_fraction(run_ranks):
    for found in run_ranks(means, world_size=4):
        assert found == [[1.5, 1.0], 2.25]


def test_tensors_of_unequal_length_are_gathered_whole(run_ranks):
    for found in run_ranks(ragged, world_size=4):
        assert found == [[], [0], [0, 1], [0, 1, 2]]
