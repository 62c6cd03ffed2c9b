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
from albert_tf.training_step import Batch, UpdateSettings, graph, make_update


@dataclasses.dataclass(frozen=True)
class StepSettings(UpdateSettings):
    """`one_pass`: element-wise chains compiled into one pass each (`fused`); that and XLA once for each length."""

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
    replicas = strategy.num_replicas_in_sync

    def totals(batch: Batch) -> tuple[tf.Tensor, tf.Tensor]:
        return tf.reduce_sum(batch[EXAMPLE_WEIGHT]), tf.reduce_sum(tf.cast(batch["input_mask"], tf.float32))

    def forward(part: Batch, seed: tf.Tensor, of_all: Any) -> tuple[tf.Tensor, tf.Tensor]:
        with fused.one_pass() if settings.one_pass else contextlib.nullcontext():
            losses = kind.losses(model(kind.inputs(part, True), training=True, dropout_seed=seed), part)
        loss = tf.reduce_sum(part[EXAMPLE_WEIGHT] * losses) / tf.maximum(of_all[0], 1.0)
        return loss, loss

    update = make_update(
        strategy,
        optimizer,
        list(model.named_variables().values()),
        settings,
        loss_scale,
        totals=totals,
        forward=forward,
        no_sums=lambda: tf.zeros([]),
    )

    def train_step(batch: Any, step: tf.Tensor, interval: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        made = update(batch, step)
        rows, pieces = made.totals
        sums = StepSums(made.sums, rows, pieces, made.gradient_norm, made.taken)
        return training_log.accumulate(interval, sums._asdict(), loss=sums.loss, maxima=_MAXIMA, step=step)

    arguments: dict[str, Any] = {"jit_compile": settings.jit_compile and replicas == 1}
    if signature is not None and replicas == 1:
        number = tf.TensorSpec([], tf.float64)
        interval = dict.fromkeys(INTERVAL_FIELDS, number)
        arguments["input_signature"] = [dict(signature), tf.TensorSpec([], tf.int32), interval]
    else:
        arguments["reduce_retracing"] = signature is not None
    return graph(train_step, **arguments)  # type: ignore[no-any-return]
