"""One update of fine-tuning as a function.

The loss is the mean of `kind.losses` over the rows of the global batch that have an `example_weight`: it depends
neither on how the batch is divided among replicas and micro-batches nor on the rows that fill it. Everything else is as
for every kind of training (`training_step`).

Letters: B rows of one replica, S padded length, which differs from batch to batch.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from albert_tf import fused, training_log
from albert_tf.loss_scale import LossScale
from albert_tf.task_kinds.task_kind import EXAMPLE_WEIGHT, TaskKind
from albert_tf.training_step import (
    CLIP_NORM,
    Batch,
    all_reduce,
    apply_update,
    dense_gradients,
    finite_norm,
    first_replica,
    fold,
    graph,
    replica_seed,
    sum_over_micro_batches,
)


@dataclasses.dataclass(frozen=True)
class StepSettings:
    """What decides an update beside model, kind of task, optimizer and batch.

    Attributes:
        seed: of the dropout masks.
        micro_batches: into how many parts a replica's batch is cut, to save memory; it must divide B.
        clip_norm: largest global norm of the gradients.
        jit_compile: compile with XLA, once for each padded length: the whole step on one replica; on several, forward
            and backward.
        one_pass: element-wise chains compiled into one pass each (`fused`), once for each padded length.
    """

    seed: int = 0
    micro_batches: int = 1
    clip_norm: float = CLIP_NORM
    jit_compile: bool = False
    one_pass: bool = True


class StepSums(NamedTuple):
    """What an update reports, the same on all replicas; float32 scalars."""

    loss: tf.Tensor  # of the global batch
    rows: tf.Tensor  # of the global batch, those that fill it left out
    pieces: tf.Tensor  # real pieces, padding left out
    gradient_norm: tf.Tensor  # of the summed, unscaled gradients before clipping; 0 where it is not finite
    taken: tf.Tensor  # 1, or 0 where a float16 gradient overflowed and the update was left out


_MAXIMA = ("loss", "gradient_norm")
# The names of the numbers that a log interval holds.
INTERVAL_FIELDS = (
    *StepSums._fields,
    *(f"{name}_max" for name in _MAXIMA),
    training_log.STEPS,
    training_log.NOT_FINITE_AT,
)


def empty_interval() -> dict[str, float]:
    """A log interval before its first step."""
    return training_log.empty_interval(INTERVAL_FIELDS)


def make_train_step(
    model: Any,
    kind: TaskKind,
    optimizer: Any,
    strategy: tf.distribute.Strategy,
    settings: StepSettings,
    loss_scale: LossScale | None = None,
    *,
    signature: Mapping[str, tf.TensorSpec] | None = None,
) -> Callable[[Any, tf.Tensor, Mapping[str, tf.Tensor]], dict[str, tf.Tensor]]:
    """Makes the function `train_step(batch, step, interval)`, which makes one update and adds it to a log interval.

    Args:
        model: for the head of `kind`.
        kind: losses and what the model reads.
        optimizer: of the model's variables.
        strategy: that of the scope they were made in.
        settings: see there.
        loss_scale: for float16.
        signature: of the batches, with None for S, so that one trace serves all lengths; without it, or with several
            replicas, there may be more.

    Returns:
        The function. `batch` is what `training_step.distribute` gives, `step` int32 counted from 0, `interval` float64
        scalars as of `empty_interval`; it returns the interval with this step. Weights and optimizer change in place.
    """
    variables = list(model.named_variables().values())
    replicas = strategy.num_replicas_in_sync

    def local_gradients(batch: Batch, seed: tf.Tensor, denominator: tf.Tensor) -> tuple[list[tf.Tensor], tf.Tensor]:
        """This replica's share of the gradients and of the loss; no communication, so it compiles on its own."""

        def micro_batch(part: Batch, index: tf.Tensor) -> tuple[list[tf.Tensor], tf.Tensor]:
            with fused.one_pass() if settings.one_pass else contextlib.nullcontext():
                outputs = model(kind.inputs(part, True), training=True, dropout_seed=fold(seed, index))
                losses = kind.losses(outputs, part)
            loss = tf.reduce_sum(part[EXAMPLE_WEIGHT] * losses) / denominator
            scaled = loss if loss_scale is None else loss_scale.scale(loss)
            return dense_gradients(scaled, variables), loss

        zeros = [tf.zeros(variable.shape) for variable in variables], tf.zeros([])
        return sum_over_micro_batches(micro_batch, batch, settings.micro_batches, zeros)  # type: ignore[no-any-return]

    compiled_gradients = (
        graph(local_gradients, jit_compile=True) if settings.jit_compile and replicas > 1 else local_gradients
    )

    def replica_gradients(batch: Batch, step: tf.Tensor) -> tuple[list[tf.Tensor], tf.Tensor, tf.Tensor, tf.Tensor]:
        local = tf.reduce_sum(batch[EXAMPLE_WEIGHT]), tf.reduce_sum(tf.cast(batch["input_mask"], tf.float32))
        rows, pieces = all_reduce(local, replicas)
        seed = replica_seed(settings.seed, step)
        gradients, loss = all_reduce(compiled_gradients(batch, seed, tf.maximum(rows, 1.0)), replicas)
        if loss_scale is not None:
            gradients = loss_scale.unscale(gradients)
        return gradients, loss, rows, pieces

    def train_step(batch: Any, step: tf.Tensor, interval: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        gradients, *reported = strategy.run(replica_gradients, args=(batch, step))
        taken = apply_update(
            strategy, optimizer, variables, gradients, clip_norm=settings.clip_norm, loss_scale=loss_scale
        )
        gradients, loss, rows, pieces = first_replica(strategy, (gradients, *reported))
        sums = StepSums(loss, rows, pieces, finite_norm(gradients), tf.cast(taken, tf.float32))
        return training_log.accumulate(interval, sums._asdict(), loss=loss, maxima=_MAXIMA, step=step)

    arguments: dict[str, Any] = {"jit_compile": settings.jit_compile and replicas == 1}
    if signature is not None and replicas == 1:
        number = tf.TensorSpec([], tf.float64)
        interval = dict.fromkeys(INTERVAL_FIELDS, number)
        arguments["input_signature"] = [dict(signature), tf.TensorSpec([], tf.int32), interval]
    else:
        arguments["reduce_retracing"] = signature is not None
    return graph(train_step, **arguments)  # type: ignore[no-any-return]
