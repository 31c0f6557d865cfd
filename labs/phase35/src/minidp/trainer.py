"""Training with everything: accumulation, overlap, clipping, schedule, scaling, EMA, ZeRO-1.

A step, in order: count the labels of the window on all ranks; forward and backward of each
micro-batch, the last one sending gradients off; wait for them; agree that the loss is finite;
unscale; clip; update; move the average.
"""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from minidp import checkpoint
from minidp.allreduce import Communicator
from minidp.build import load_data, make_model, make_start_sum
from minidp.clipping import clip_gradients
from minidp.config import Config
from minidp.data_parallel import DataParallel
from minidp.decisions import EarlyStopping, any_rank, as_rank0_says
from minidp.ema import EMA
from minidp.evaluate import evaluate, evaluating
from minidp.join import joined
from minidp.loss import (
    NO_LABEL,
    count_labels,
    count_labels_everywhere,
    label_loss_sum,
    rank_loss,
)
from minidp.metrics import LossLog, MetricsWriter, params_digest, params_sketch, say
from minidp.rng import RandomStreams, pixel_noise
from minidp.sampler import MicroBatch, ShardedSampler, windows
from minidp.scaler import LossScaler
from minidp.schedule import LRSchedule, Plateau, scaled_lr
from minidp.zero1 import ShardedOptimizer, decay_groups

REFERENCE_BATCH = 64  # samples; what Config.lr suits


class Trainer:
    """One rank's run.

    Collective: every rank constructs it with the same config, and calls its methods alike.
    """

    def __init__(self, config: Config, comm: Communicator) -> None:
        self.config, self.comm = config, comm
        self.train_data, self.test_data = load_data(config, comm)
        # Replicas must not agree by chance: each starts from its own seed.
        torch.manual_seed(config.seed + comm.rank)
        self.streams = RandomStreams()
        self.module = make_model(config, comm, self.streams)
        self.module.replace_head()
        self.model = DataParallel(
            self.module,
            comm,
            bucket_cap=config.bucket_cap,
            comm_dtype=getattr(torch, config.comm_dtype),
            start_sum=make_start_sum(config, comm),
            broadcast_buffers=config.norm == "local",
        )
        self.shard_comm = comm if config.zero1 else None
        self.optimizer = ShardedOptimizer(
            decay_groups(self.module, config.weight_decay),
            lambda groups: torch.optim.SGD(groups, lr=0.0, momentum=config.momentum),
            self.shard_comm,
        )
        if config.overlap_gather:
            self.optimizer.gather_before_forward(self.module)
        self.sampler = ShardedSampler(
            len(self.train_data), comm.world_size, comm.rank, config.seed, config.uneven
        )
        self.per_step = config.micro_batch * config.accumulation  # samples on one rank
        steps_per_epoch = -(-self.sampler.longest // self.per_step)
        self.num_steps = min(config.steps, config.epochs * steps_per_epoch)
        self.schedule = LRSchedule(
            self.optimizer.param_groups,
            peak=scaled_lr(config.lr, self.per_step * comm.world_size, REFERENCE_BATCH),
            num_warmup=config.warmup,
            num_steps=self.num_steps,
        )
        self.plateau = Plateau(self.schedule, config.plateau)
        self.scaler = LossScaler(config.loss_scale, config.growth_interval)
        self.ema = EMA(self.module, config.ema_decay)
        self.early_stopping = EarlyStopping(config.patience)
        self.log = LossLog()
        self.step = self.epoch = self.position = 0
        self.best_loss, self.best_step = math.inf, 0
        self.stop = False
        self.deadline = time.monotonic() + config.max_seconds
        self.streams.seed(config.seed, comm.rank)
        if config.checkpoint is not None:
            checkpoint.load(config.checkpoint, self, comm)

    def train(self, until: int | None = None) -> None:
        """Train up to step ``until``, or to the end; save if there is a checkpoint to save to."""
        last = self.num_steps if until is None else until
        with MetricsWriter(self.config.metrics, self.comm.rank) as metrics:
            if self.step == 0:
                row = self.evaluate()
                self.tell(metrics, loss=row["shard_loss"], **row)
            while self.epoch < self.config.epochs and self.step < last and not self.stop:
                self.train_epoch(last, metrics)
        self.optimizer.wait()
        if self.config.checkpoint is not None:
            checkpoint.save(self.config.checkpoint, self, self.comm)

    def train_epoch(self, last: int, metrics: MetricsWriter) -> None:
        """Train to the end of the epoch, from wherever in it the run is, or to step ``last``."""
        epoch = self.epoch
        self.sampler.set_epoch(epoch, self.position)
        steps = windows(self.sampler, self.config.micro_batch, self.config.accumulation)
        if self.config.uneven == "join":
            steps = joined(steps, self.comm)
        for window in steps:
            calls = self.comm.num_collectives, self.comm.num_serial
            row = self.train_step(window)
            self.position += self.per_step
            if self.position >= self.sampler.longest:
                self.epoch, self.position = self.epoch + 1, 0
            row |= self.after_step()
            row["num_collectives"] = self.comm.num_collectives - calls[0]
            row["num_serial"] = self.comm.num_serial - calls[1]
            self.tell(metrics, **row)
            if self.step >= last or self.stop:
                return
        self.epoch, self.position = epoch + 1, 0

    def fetch(self, batch: MicroBatch) -> tuple[Tensor, Tensor]:
        """Read a micro-batch: noisy images (n, 64), labels (n,) with NO_LABEL on padding."""
        images, labels = self.train_data.read(batch.ids)
        noise = pixel_noise(
            tuple(images.shape),
            seed=self.config.seed,
            epoch=self.epoch,
            rank=self.comm.rank,
            index=batch.index,
        )
        return images + self.config.noise * noise, labels.masked_fill(~batch.is_real, NO_LABEL)

    def train_step(self, window: list[MicroBatch]) -> dict[str, Any]:
        """Make one update from a window of micro-batches, or skip it; return what happened."""
        self.step += 1
        say(f"[rank={self.comm.rank}] step {self.step} starting all-reduce ...")
        batches = [self.fetch(batch) for batch in window]
        labels_of = [labels for _, labels in batches]
        num_labels = count_labels_everywhere(labels_of, self.comm)
        self.model.zero_grad()
        loss_sum = self.backward(batches, num_labels)
        self.model.finish()
        self.log.add(loss_sum, count_labels(labels_of))
        row = {"loss": float(loss_sum) / max(count_labels(labels_of), 1)}
        if any_rank(not math.isfinite(loss_sum), self.comm):
            return row | {"skipped": True}
        return row | self.update()

    def backward(self, batches: list[tuple[Tensor, Tensor]], num_labels: int) -> Tensor:
        """Run forward and backward of each micro-batch; return this rank's summed loss."""
        loss_sum = torch.zeros(())
        for i, (images, labels) in enumerate(batches):
            is_last = i + 1 == len(batches)
            with nullcontext() if is_last else self.model.no_sync():
                total = label_loss_sum(self.model(images), labels)
                loss = rank_loss(total, num_labels, self.comm.world_size)
                (loss * self.scaler.scale).backward()
            loss_sum += total.detach()
        return loss_sum

    def update(self) -> dict[str, Any]:
        """Unscale, clip and apply the gradients that :meth:`DataParallel.finish` left."""
        grads = self.optimizer.owned_grads()
        found_inf = self.scaler.unscale(grads, self.shard_comm)
        norm = clip_gradients(grads, self.config.clip or math.inf, self.shard_comm)
        row = {"grad_norm": norm, "scale": self.scaler.scale, "skipped": found_inf}
        self.scaler.update(found_inf)
        if found_inf:
            return row
        self.optimizer.step()
        row["lr"] = self.optimizer.inner.param_groups[0]["lr"]
        self.schedule.step()
        if self.config.ema_decay:
            self.optimizer.wait()
            self.ema.update(self.module)
        elif not self.config.overlap_gather:
            self.optimizer.wait()
        return row

    def after_step(self) -> dict[str, Any]:
        """Do what is due: report, evaluate, look at the clock."""
        row: dict[str, Any] = {}
        if self.step % self.config.log_every == 0:
            row["global_loss"] = self.log.report(self.comm)
            self.optimizer.wait()
            row["params_digest"] = params_digest(self.module, self.config.norm != "local")
            row["params_sketch"] = params_sketch(self.module)
            example = torch.randint(len(self.train_data), (), generator=self.streams.shared)
            if self.comm.rank == 0:
                say(f"for example, sample {int(example)}: {self.guess(example)}")
        if self.config.eval_every and self.step % self.config.eval_every == 0:
            row |= self.evaluate()
        self.stop |= as_rank0_says(time.monotonic() >= self.deadline, self.comm)
        return row

    def guess(self, sample: Tensor) -> str:
        """Say what this replica takes a training sample for; any rank may ask alone."""
        image, label = self.train_data.images[sample], int(self.train_data.labels[sample])
        with evaluating(self.module):
            guess = int(self.module(image.unsqueeze(0)).argmax())
        return f"a {guess}" if label == NO_LABEL else f"a {guess}, and it is a {label}"

    def evaluate(self) -> dict[str, Any]:
        """Score the weights and their average; let the scores decide what they decide."""
        self.optimizer.wait()
        if self.config.norm == "local":
            self.model.sync_buffers()
        limit = self.config.eval_batches
        scores = evaluate(self.module, self.test_data, self.comm, max_batches=limit)
        with self.ema.swapped_into(self.module):
            averaged = evaluate(self.module, self.test_data, self.comm, max_batches=limit)
        self.plateau.observe(scores.loss)
        if scores.loss < self.best_loss:
            self.best_loss, self.best_step = scores.loss, self.step
            if self.config.checkpoint is not None:
                best = self.config.checkpoint.with_suffix(".best.pt")
                checkpoint.save(best, self, self.comm)
        vote = self.early_stopping.votes_to_stop(scores.shard_loss)
        self.stop |= any_rank(vote, self.comm)
        return {
            "eval_loss": scores.loss,
            "eval_accuracy": scores.accuracy,
            "eval_perplexity": scores.perplexity,
            "eval_f1": scores.f1,
            "shard_loss": scores.shard_loss,
            "ema_accuracy": averaged.accuracy,
            "ema_loss": averaged.loss,
            "best_step": self.best_step,
            "state_digest": params_digest(self.module),
        }

    def tell(self, metrics: MetricsWriter, **row: Any) -> None:
        """Print a step's loss, and write its row."""
        say(f"[rank={self.comm.rank}] step {self.step} loss={row['loss']:.2f}")
        reads = {"num_reads": self.train_data.num_reads, "num_test_reads": self.test_data.num_reads}
        metrics.write(step=self.step, **reads, **row)
