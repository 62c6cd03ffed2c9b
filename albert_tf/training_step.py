"""What every kind of training does in an update: seeds, gradients, sums over parts and replicas, the update itself.

The order: gradients dense, summed over micro-batches and replicas, unscaled, clipped, applied.
Nothing random has state: the seed of a micro-batch's dropout is made from (seed, step, replica, micro-batch).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from albert_tf import optimization, stack
from albert_tf.loss_scale import LossScale

Batch = Mapping[str, tf.Tensor]
CLIP_NORM = 1.0  # as released

_RANDOM_ALGORITHM = "philox"  # named, since the default differs under XLA
# AutoGraph would rewrite every function on the way, which takes longer than all the rest of the tracing.
graph = functools.partial(tf.function, autograph=False)


@dataclasses.dataclass(frozen=True)
class UpdateSettings:
    """What decides an update beside model, loss, optimizer and batch.

    Attributes:
        seed: of the dropout masks.
        micro_batches: into how many parts a replica's batch is cut, to save memory; it must divide B.
        clip_norm: largest global norm of the gradients.
        jit_compile: compile with XLA: the whole step on one replica; on several, forward and backward.
    """

    seed: int = 0
    micro_batches: int = 1
    clip_norm: float = CLIP_NORM
    jit_compile: bool = False


class Update(NamedTuple):
    """What an update reports, the same on all replicas.

    Attributes:
        totals, sums: of the global batch, see `make_update`.
        gradient_norm: float32, of the summed, unscaled gradients before clipping; 0 where it is not finite.
        taken: float32, 1, or 0 where a float16 gradient overflowed and the update was left out.
    """

    totals: Any
    sums: Any
    gradient_norm: tf.Tensor
    taken: tf.Tensor


def make_update(
    strategy: tf.distribute.Strategy,
    optimizer: Any,
    variables: Sequence[Any],
    settings: UpdateSettings,
    loss_scale: LossScale | None,
    *,
    totals: Callable[[Batch], Any],
    forward: Callable[[Batch, tf.Tensor, Any], tuple[tf.Tensor, Any]],
    no_sums: Callable[[], Any],
) -> Callable[[Any, tf.Tensor], Update]:
    """Makes the function `update(batch, step)`: batch as the strategy distributes it, int32 step counted from 0.

    Args:
        strategy, optimizer, variables: of the model; variables and the optimizer's state change in place.
        settings: see there.
        loss_scale: for float16.
        totals: a replica's batch to numbers that are summed over the global batch before anything else, such as what
            the loss is divided by.
        forward: (part of a replica's batch, seed of its dropout, the totals) to its share of the loss, and numbers to
            be summed over all parts and replicas.
        no_sums: makes the zeros that such sums begin with.
    """
    replicas = strategy.num_replicas_in_sync

    def local_gradients(batch: Batch, seed: tf.Tensor, of_all: Any) -> tuple[list[tf.Tensor], Any]:
        """This replica's share of gradients and sums; no communication, so it compiles on its own."""

        def micro_batch(part: Batch, index: tf.Tensor) -> tuple[list[tf.Tensor], Any]:
            loss, sums = forward(part, fold(seed, index), of_all)
            return dense_gradients(loss if loss_scale is None else loss_scale.scale(loss), variables), sums

        zeros = [tf.zeros(variable.shape) for variable in variables], no_sums()
        return sum_over_micro_batches(micro_batch, batch, settings.micro_batches, zeros)  # type: ignore[no-any-return]

    compiled_gradients = (
        graph(local_gradients, jit_compile=True) if settings.jit_compile and replicas > 1 else local_gradients
    )

    def replica_gradients(batch: Batch, step: tf.Tensor) -> tuple[list[tf.Tensor], Any, Any]:
        of_all = all_reduce(totals(batch), replicas)
        seed = replica_seed(settings.seed, step)
        gradients, sums = all_reduce(compiled_gradients(batch, seed, of_all), replicas)
        return gradients if loss_scale is None else loss_scale.unscale(gradients), of_all, sums

    def update(batch: Any, step: tf.Tensor) -> Update:
        gradients, *reported = strategy.run(replica_gradients, args=(batch, step))
        taken = _apply(strategy, optimizer, variables, gradients, clip_norm=settings.clip_norm, loss_scale=loss_scale)
        gradients, of_all, sums = first_replica(strategy, (gradients, *reported))
        return Update(of_all, sums, _finite_norm(gradients), tf.cast(taken, tf.float32))

    return update


def fold(seed: tf.Tensor, value: Any) -> tf.Tensor:
    """The seed int32 [2] that a number makes of a seed."""
    return tf.random.experimental.stateless_fold_in(seed, tf.cast(value, tf.int32), alg=_RANDOM_ALGORITHM)


def replica_seed(seed: int, step: tf.Tensor) -> tf.Tensor:
    """The seed int32 [2] of this replica at a step; in a replica context."""
    replica = tf.distribute.get_replica_context().replica_id_in_sync_group
    return fold(fold(fold(tf.constant([0, 0], tf.int32), seed), step), replica)


def dense_gradients(loss: tf.Tensor, variables: Sequence[Any]) -> list[tf.Tensor]:
    """The gradients of a loss, dense float32, the same bits each time."""
    # Where paths meet, gradients are added two at a time. A tape adds all at once, beginning with whichever buffer is
    # free at that moment, so that the last bits would depend on the timing of threads.
    gradients = tf.gradients(
        loss,
        [stack.native_variable(variable) for variable in variables],
        aggregation_method=tf.AggregationMethod.EXPERIMENTAL_TREE,
    )
    return optimization.dense_gradients(gradients, variables)


def all_reduce(values: Any, replicas: int) -> Any:
    """Sums of all replicas' values; in a replica context."""
    if replicas == 1:
        return values
    # The copies are on the replica's device; some gradients are on none, and a sum needs to know where to go.
    values = tf.nest.map_structure(tf.identity, values)
    return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, values)


def first_replica(strategy: tf.distribute.Strategy, values: Any) -> Any:
    """The values of one replica, where all have the same."""
    return tf.nest.map_structure(lambda value: strategy.experimental_local_results(value)[0], values)


def distribute(strategy: tf.distribute.Strategy, batch: Mapping[str, np.ndarray]) -> Any:
    """A global batch of arrays divided among the replicas, the first rows to the first."""
    replicas = strategy.num_replicas_in_sync
    if replicas == 1:
        return {name: tf.convert_to_tensor(value) for name, value in batch.items()}

    def share(context: Any) -> dict[str, tf.Tensor]:
        at = context.replica_id_in_sync_group
        return {name: tf.convert_to_tensor(np.split(value, replicas)[at]) for name, value in batch.items()}

    return strategy.experimental_distribute_values_from_function(share)


def join(strategy: tf.distribute.Strategy, outputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """What the replicas made of the batch that `distribute` divided, in one array again."""
    return {
        name: np.concatenate([np.asarray(part) for part in strategy.experimental_local_results(value)])
        for name, value in outputs.items()
    }


def sum_over_micro_batches(function: Callable[[Batch, tf.Tensor], Any], batch: Batch, count: int, zeros: Any) -> Any:
    """`zeros` plus function(part, index) of each micro-batch, in turn, so that memory holds one at a time."""
    if count == 1:
        return function(batch, tf.constant(0))
    parts = {name: _cut(value, count) for name, value in batch.items()}

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


def _cut(value: tf.Tensor, count: int) -> tf.Tensor:
    """[B,…] to [count,B/count,…], static where it was."""
    size = value.shape[0] // count
    if value.shape.is_fully_defined():
        return tf.reshape(value, [count, size, *value.shape[1:]])
    cut = tf.reshape(value, tf.concat([[count, size], tf.shape(value)[1:]], 0))
    return tf.ensure_shape(cut, [count, size, *value.shape[1:]])


def _apply(
    strategy: tf.distribute.Strategy,
    optimizer: Any,
    variables: Sequence[Any],
    gradients: Sequence[Any],
    *,
    clip_norm: float,
    loss_scale: LossScale | None,
) -> tf.Tensor:
    """Clips and applies gradients that are summed over the replicas and unscaled; in a cross-replica context.

    Returns:
        bool scalar: whether the update was made; with a loss scale, one that overflowed is left out.
    """

    def apply(gradients: Sequence[tf.Tensor]) -> None:
        clipped, _ = optimization.clip_by_global_norm(gradients, clip_norm)
        optimization.apply_summed_gradients(optimizer, clipped, variables)

    if loss_scale is not None:
        return loss_scale.apply_if_finite(strategy, gradients, apply)
    strategy.run(apply, args=(gradients,))
    return tf.constant(True)


def _finite_norm(gradients: Sequence[tf.Tensor]) -> tf.Tensor:
    """The global norm, 0 where it is not finite."""
    norm = tf.linalg.global_norm(gradients)
    return tf.where(tf.math.is_finite(norm), norm, tf.zeros_like(norm))
