"""One optimizer update as a function: a global batch in, new weights and sums of what happened out.

The order (DESIGN "Gradients"): the loss's denominators over all replicas and micro-batches; forward and backward per
micro-batch; gradients dense, summed over micro-batches and replicas, unscaled, clipped, applied. Shapes are static, and
on one device the whole step compiles with XLA, as on a TPU. Nothing random has state: the dropout seed of a micro-batch
is made from (seed, step, replica, micro-batch).

Letters: B examples of one replica, S sequence length, P prediction slots.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from albert_tf import fused, losses, optimization, stack
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

Batch = Mapping[str, tf.Tensor]

_RANDOM_ALGORITHM = "philox"  # named, since the default differs under XLA
# AutoGraph would rewrite every function on the way, which takes longer than all the rest of the tracing.
_graph = functools.partial(tf.function, autograph=False)


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
    clip_norm: float = 1.0
    jit_compile: bool = False


class StepSums(NamedTuple):
    """What an update reports, the same on all replicas; float32 scalars. `accumulate` adds them up over steps."""

    losses: losses.LossSums
    loss: tf.Tensor  # of the global batch, both objectives together
    pieces: tf.Tensor  # real pieces of the global batch, padding left out
    gradient_norm: tf.Tensor  # of the summed, unscaled gradients before clipping; 0 where it is not finite
    taken: tf.Tensor  # 1, or 0 where a float16 gradient overflowed and the update was left out


# The names of the numbers that `Interval` holds, in order.
INTERVAL_FIELDS = (
    *losses.LossSums._fields,
    "loss",
    "loss_max",
    "pieces",
    "gradient_norm",
    "gradient_norm_max",
    "taken",
    "steps",
    "not_finite_at",
)
NO_STEP = -1.0


def empty_interval() -> dict[str, float]:
    """A log interval before its first step: sums and maxima are 0, no step had a loss that is not finite."""
    return {name: NO_STEP if name == "not_finite_at" else 0.0 for name in INTERVAL_FIELDS}


def accumulate(interval: Mapping[str, tf.Tensor], sums: StepSums, step: tf.Tensor) -> dict[str, tf.Tensor]:
    """Adds one step to a log interval, float64, step by step: the same bits however the steps are grouped in calls."""
    added = {name: tf.cast(value, tf.float64) for name, value in sums.losses._asdict().items()}
    for name in ("loss", "pieces", "gradient_norm", "taken"):
        added[name] = tf.cast(getattr(sums, name), tf.float64)
    added["steps"] = tf.constant(1.0, tf.float64)
    result = {name: interval[name] + value for name, value in added.items()}
    for name in ("loss", "gradient_norm"):
        result[f"{name}_max"] = tf.maximum(interval[f"{name}_max"], added[name])
    # The norm tells of weights that are broken already, the loss of those that will be.
    bad = tf.logical_not(tf.math.is_finite(sums.loss))
    first = tf.logical_and(bad, interval["not_finite_at"] == NO_STEP)
    result["not_finite_at"] = tf.where(first, tf.cast(step, tf.float64), interval["not_finite_at"])
    return result


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
                outputs = model(_inputs(part), training=True, dropout_seed=_fold(seed, index))
                sums = losses.pretraining_sums(outputs, part)
                loss = losses.pretraining_loss(sums, denominators, settings.sentence_objective)
                if loss_scale is not None:
                    loss = loss_scale.scale(loss)
            # Where paths meet, gradients are added two at a time. A tape adds all at once, beginning with whichever
            # buffer is free at that moment, so that the last bits would depend on the timing of threads.
            gradients = tf.gradients(
                loss,
                [stack.native_variable(v) for v in variables],
                aggregation_method=tf.AggregationMethod.EXPERIMENTAL_TREE,
            )
            return optimization.dense_gradients(gradients, variables), sums

        zeros = [tf.zeros(v.shape) for v in variables], losses.LossSums(*[tf.zeros([])] * len(losses.LossSums._fields))
        return _sum_over_micro_batches(micro_batch, batch, settings.micro_batches, zeros)

    replicas = strategy.num_replicas_in_sync
    compiled_gradients = (
        _graph(local_gradients, jit_compile=True) if settings.jit_compile and replicas > 1 else local_gradients
    )

    def replica_gradients(
        batch: Batch, step: tf.Tensor
    ) -> tuple[list[tf.Tensor], losses.LossSums, losses.LossDenominators, tf.Tensor]:
        batch = _with_label(batch)
        context = tf.distribute.get_replica_context()
        seed = _fold(_fold(_fold(tf.constant([0, 0], tf.int32), settings.seed), step), context.replica_id_in_sync_group)
        pieces = tf.reduce_sum(tf.cast(batch[INPUT_MASK], tf.float32))
        denominators, pieces = _all_reduce((losses.pretraining_denominators(batch), pieces), replicas)
        gradients, sums = _all_reduce(compiled_gradients(batch, seed, denominators), replicas)
        if loss_scale is not None:
            gradients = loss_scale.unscale(gradients)
        return gradients, sums, denominators, pieces

    def apply(gradients: Sequence[tf.Tensor]) -> None:
        clipped, _ = optimization.clip_by_global_norm(gradients, settings.clip_norm)
        optimization.apply_summed_gradients(optimizer, clipped, variables)

    def train_step(batch: Any, step: tf.Tensor) -> StepSums:
        gradients, *reported = strategy.run(replica_gradients, args=(batch, step))
        if loss_scale is None:
            strategy.run(apply, args=(gradients,))
            taken = tf.constant(True)
        else:
            taken = loss_scale.apply_if_finite(strategy, gradients, apply)
        one = tf.nest.map_structure(lambda value: strategy.experimental_local_results(value)[0], (gradients, *reported))
        gradients, sums, denominators, pieces = one
        norm = tf.linalg.global_norm(gradients)
        return StepSums(
            losses=sums,
            loss=losses.pretraining_loss(sums, denominators, settings.sentence_objective),
            pieces=pieces,
            gradient_norm=tf.where(tf.math.is_finite(norm), norm, tf.zeros_like(norm)),
            taken=tf.cast(taken, tf.float32),
        )

    return _graph(train_step, jit_compile=settings.jit_compile and replicas == 1)


def make_train_loop(
    train_step: Callable[[Any, tf.Tensor], StepSums],
) -> Callable[[Any, tf.Tensor, tf.Tensor, Mapping[str, tf.Tensor]], dict[str, tf.Tensor]]:
    """Makes `train_loop(iterator, first_step, count, interval)`: `count` steps in one call, added to the interval."""

    @_graph
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

    compiled_sums = _graph(local_sums, jit_compile=True) if jit_compile else local_sums

    def replica_sums(batch: Batch) -> losses.LossSums:
        return _all_reduce(compiled_sums(_with_label(batch)), strategy.num_replicas_in_sync)

    @_graph
    def evaluation_step(batch: Any) -> losses.LossSums:
        sums = strategy.run(replica_sums, args=(batch,))
        return tf.nest.map_structure(lambda value: strategy.experimental_local_results(value)[0], sums)

    return evaluation_step


def _inputs(batch: Batch) -> dict[str, tf.Tensor]:
    return {name: batch[name] for name in (INPUT_IDS, INPUT_MASK, SEGMENT_IDS, MASKED_LM_POSITIONS)}


def _with_label(batch: Batch) -> dict[str, tf.Tensor]:
    """Records of the objective "none" have no label; their sentence sums are computed and left out of the loss."""
    if SENTENCE_ORDER_LABEL in batch:
        return dict(batch)
    return {**batch, SENTENCE_ORDER_LABEL: tf.zeros([batch[MASKED_LM_IDS].shape[0]], tf.int32)}


def _fold(seed: tf.Tensor, value: Any) -> tf.Tensor:
    return tf.random.experimental.stateless_fold_in(seed, tf.cast(value, tf.int32), alg=_RANDOM_ALGORITHM)


def _all_reduce(values: Any, replicas: int) -> Any:
    if replicas == 1:
        return values
    # The copies are on the replica's device; some gradients are on none, and a sum needs to know where to go.
    values = tf.nest.map_structure(tf.identity, values)
    return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, values)


def _sum_over_micro_batches(function: Callable[[Batch, tf.Tensor], Any], batch: Batch, count: int, zeros: Any) -> Any:
    """`zeros` plus function(part, index) of each micro-batch, in turn, so that memory holds one at a time."""
    if count == 1:
        return function(batch, tf.constant(0))
    size = next(iter(batch.values())).shape[0] // count
    parts = {name: tf.reshape(value, [count, size, *value.shape[1:]]) for name, value in batch.items()}

    def part(index: Any) -> Batch:
        return {name: value[index] for name, value in parts.items()}

    _, total = tf.while_loop(
        lambda index, _: index < count,
        lambda index, total: (index + 1, tf.nest.map_structure(tf.add, total, function(part(index), index))),
        (tf.constant(0), zeros),
        maximum_iterations=count,
        parallel_iterations=1,
    )
    return total
