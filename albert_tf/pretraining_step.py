"""One optimizer update as a function: a global batch in, new weights and sums of what happened out.

The order: the loss's denominators over all replicas and micro-batches; forward and backward per micro-batch; then as
for every kind of training (`training_step`). Shapes are static, and on one device the whole step compiles with XLA, as
on a TPU.

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
    """What decides an update beside model, optimizer and batch.

    Attributes:
        seed: of the dropout masks.
        sentence_objective: whether the sentence loss is added (sop, nsp) or not (none).
        micro_batches: into how many parts a replica's batch is cut, to save memory; it must divide B.
        clip_norm: largest global norm of the gradients.
        jit_compile: compile with XLA: the whole step on one replica; on several, forward and backward.
    """

    seed: int = 0
    sentence_objective: bool = True
    micro_batches: int = 1
    clip_norm: float = CLIP_NORM
    jit_compile: bool = False


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
    variables = list(model.named_variables().values())

    def local_gradients(
        batch: Batch, seed: tf.Tensor, denominators: losses.LossDenominators
    ) -> tuple[list[tf.Tensor], losses.LossSums]:
        """This replica's share of the gradients, and its sums; no communication, so it compiles on its own."""

        def micro_batch(part: Batch, index: tf.Tensor) -> tuple[list[tf.Tensor], losses.LossSums]:
            with fused.one_pass():
                outputs = model(_inputs(part), training=True, dropout_seed=fold(seed, index))
                sums = losses.pretraining_sums(outputs, part)
                loss = losses.pretraining_loss(sums, denominators, settings.sentence_objective)
                if loss_scale is not None:
                    loss = loss_scale.scale(loss)
            return dense_gradients(loss, variables), sums

        zeros = [tf.zeros(v.shape) for v in variables], losses.LossSums(*[tf.zeros([])] * len(losses.LossSums._fields))
        return sum_over_micro_batches(micro_batch, batch, settings.micro_batches, zeros)

    replicas = strategy.num_replicas_in_sync
    compiled_gradients = (
        graph(local_gradients, jit_compile=True) if settings.jit_compile and replicas > 1 else local_gradients
    )

    def replica_gradients(
        batch: Batch, step: tf.Tensor
    ) -> tuple[list[tf.Tensor], losses.LossSums, losses.LossDenominators, tf.Tensor]:
        batch = _with_label(batch)
        seed = replica_seed(settings.seed, step)
        pieces = tf.reduce_sum(tf.cast(batch[INPUT_MASK], tf.float32))
        denominators, pieces = all_reduce((losses.pretraining_denominators(batch), pieces), replicas)
        gradients, sums = all_reduce(compiled_gradients(batch, seed, denominators), replicas)
        if loss_scale is not None:
            gradients = loss_scale.unscale(gradients)
        return gradients, sums, denominators, pieces

    def train_step(batch: Any, step: tf.Tensor) -> StepSums:
        gradients, *reported = strategy.run(replica_gradients, args=(batch, step))
        taken = apply_update(
            strategy, optimizer, variables, gradients, clip_norm=settings.clip_norm, loss_scale=loss_scale
        )
        gradients, sums, denominators, pieces = first_replica(strategy, (gradients, *reported))
        return StepSums(
            losses=sums,
            loss=losses.pretraining_loss(sums, denominators, settings.sentence_objective),
            pieces=pieces,
            gradient_norm=finite_norm(gradients),
            taken=tf.cast(taken, tf.float32),
        )

    return graph(train_step, jit_compile=settings.jit_compile and replicas == 1)


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
