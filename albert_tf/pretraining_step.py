"""One optimizer update as a function: a global batch in, new weights and sums of what happened out.

The update is that of every kind of training (`training_step`). Shapes are static, and on one device the whole step
compiles with XLA, as on a TPU.

Letters: B examples of one replica, S sequence length, P prediction slots.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from albert_tf import fused, losses, training_log
from albert_tf.input_pipeline import EXAMPLE_WEIGHT
from albert_tf.loss_scale import LossScale
from albert_tf.record_spec import (
    INPUT_IDS,
    INPUT_MASK,
    MASKED_LM_IDS,
    MASKED_LM_POSITIONS,
    SEGMENT_IDS,
    SENTENCE_ORDER_LABEL,
)
from albert_tf.training_step import Batch, UpdateSettings, all_reduce, first_replica, graph, make_update


@dataclasses.dataclass(frozen=True)
class StepSettings(UpdateSettings):
    """`sentence_objective`: whether the sentence loss is added (sop, nsp) or not (none)."""

    sentence_objective: bool = True


class StepSums(NamedTuple):
    """What an update reports, the same on all replicas; float32 scalars. `accumulate` adds them up over steps."""

    losses: losses.LossSums
    loss: tf.Tensor  # of the global batch, both objectives together
    pieces: tf.Tensor  # real pieces of the global batch, padding left out
    gradient_norm: tf.Tensor  # of the summed, unscaled gradients before clipping; 0 where it is not finite
    taken: tf.Tensor  # 1, or 0 where a float16 gradient overflowed and the update was left out


_MEANS, _MAXIMA = ("loss", "pieces", "gradient_norm", "taken"), ("loss", "gradient_norm")
# The names of the numbers that a log interval holds.
INTERVAL_FIELDS = (
    *losses.LossSums._fields,
    *_MEANS,
    *(f"{name}_max" for name in _MAXIMA),
    training_log.STEPS,
    training_log.NOT_FINITE_AT,
)


def empty_interval() -> dict[str, float]:
    """A log interval before its first step."""
    return training_log.empty_interval(INTERVAL_FIELDS)


def accumulate(interval: Mapping[str, tf.Tensor], sums: StepSums, step: tf.Tensor) -> dict[str, tf.Tensor]:
    """Adds one step to a log interval, see `training_log.accumulate`."""
    values = {**sums.losses._asdict(), **{name: getattr(sums, name) for name in _MEANS}}
    return training_log.accumulate(interval, values, loss=sums.loss, maxima=_MAXIMA, step=step)


def make_train_step(
    model: Any,
    optimizer: Any,
    strategy: tf.distribute.Strategy,
    settings: StepSettings,
    loss_scale: LossScale | None = None,
) -> Callable[[Any, tf.Tensor], StepSums]:
    """Makes the function `train_step(batch, step)`: batch as the strategy distributes it, int32 step counted from 0.

    The batch holds what `input_pipeline.parse_examples` gives, [B,...] on each replica. The
    weights and the optimizer's state change in place.
    """

    def totals(batch: Batch) -> tuple[losses.LossDenominators, tf.Tensor]:
        pieces = tf.reduce_sum(tf.cast(batch[INPUT_MASK], tf.float32))
        return losses.pretraining_denominators(_with_label(batch)), pieces

    def forward(part: Batch, seed: tf.Tensor, of_all: Any) -> tuple[tf.Tensor, losses.LossSums]:
        with fused.one_pass():
            outputs = model(_inputs(part), training=True, dropout_seed=seed)
            sums = losses.pretraining_sums(outputs, _with_label(part))
            return losses.pretraining_loss(sums, of_all[0], settings.sentence_objective), sums

    update = make_update(
        strategy,
        optimizer,
        list(model.named_variables().values()),
        settings,
        loss_scale,
        totals=totals,
        forward=forward,
        no_sums=lambda: losses.LossSums(*[tf.zeros([])] * len(losses.LossSums._fields)),
    )

    def train_step(batch: Any, step: tf.Tensor) -> StepSums:
        made = update(batch, step)
        denominators, pieces = made.totals
        loss = losses.pretraining_loss(made.sums, denominators, settings.sentence_objective)
        return StepSums(made.sums, loss, pieces, made.gradient_norm, made.taken)

    return graph(train_step, jit_compile=settings.jit_compile and strategy.num_replicas_in_sync == 1)


def make_train_loop(
    train_step: Callable[[Any, tf.Tensor], StepSums],
) -> Callable[[Any, tf.Tensor, tf.Tensor, Mapping[str, tf.Tensor]], dict[str, tf.Tensor]]:
    """Makes `train_loop(iterator, first_step, count, interval)`: `count` steps in one call, added to the interval."""

    @graph
    def train_loop(
        iterator: Any, first_step: tf.Tensor, count: tf.Tensor, interval: Mapping[str, tf.Tensor]
    ) -> dict[str, tf.Tensor]:
        def one_step(step: tf.Tensor, interval: Mapping[str, tf.Tensor]) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
            return step + 1, accumulate(interval, train_step(next(iterator), step), step)

        end = first_step + count
        return tf.while_loop(lambda step, _: step < end, one_step, (first_step, dict(interval)), parallel_iterations=1)[
            1
        ]

    return train_loop


def make_evaluation_step(
    model: Any, strategy: tf.distribute.Strategy, *, jit_compile: bool = False
) -> Callable[[Any], losses.LossSums]:
    """Makes `evaluation_step(batch)`: the sums over a global batch, examples of `example_weight` 0 left out."""

    def local_sums(batch: Batch) -> losses.LossSums:
        return losses.pretraining_sums(model(_inputs(batch), training=False), batch, batch[EXAMPLE_WEIGHT])

    compiled_sums = graph(local_sums, jit_compile=True) if jit_compile else local_sums

    def replica_sums(batch: Batch) -> losses.LossSums:
        return all_reduce(compiled_sums(_with_label(batch)), strategy.num_replicas_in_sync)

    @graph
    def evaluation_step(batch: Any) -> losses.LossSums:
        return first_replica(strategy, strategy.run(replica_sums, args=(batch,)))  # type: ignore[no-any-return]

    return evaluation_step


def _inputs(batch: Batch) -> dict[str, tf.Tensor]:
    return {name: batch[name] for name in (INPUT_IDS, INPUT_MASK, SEGMENT_IDS, MASKED_LM_POSITIONS)}


def _with_label(batch: Batch) -> dict[str, tf.Tensor]:
    """Records of the objective "none" have no label; their sentence sums are computed and left out of the loss."""
    if SENTENCE_ORDER_LABEL in batch:
        return dict(batch)
    return {**batch, SENTENCE_ORDER_LABEL: tf.zeros([batch[MASKED_LM_IDS].shape[0]], tf.int32)}
