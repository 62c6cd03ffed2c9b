"""What the processes of a run ask each other: has one been told to stop, are all at the same step."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from albert_tf import distribution
from albert_tf.errors import InputError


def sum_over_replicas(strategy: tf.distribute.Strategy, value: float) -> float:
    """The sum of every replica's `value`, float32; all workers must call it alike."""
    return float(_sum_function(strategy)(tf.constant(value, tf.float32)))


@functools.cache
def _sum_function(strategy: tf.distribute.Strategy) -> Any:
    def on_replica(value: tf.Tensor) -> tf.Tensor:
        # The copy is on the replica's device; an argument has none, and a sum needs to know where to go.
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tf.identity(value))

    @tf.function(autograph=False)
    def total(value: tf.Tensor) -> tf.Tensor:
        return strategy.experimental_local_results(strategy.run(on_replica, args=(value,)))[0]

    return total


def any_worker(strategy: tf.distribute.Strategy, said: bool) -> bool:
    """Whether any worker said so; without other workers nothing is asked."""
    if distribution.num_workers(strategy) == 1:
        return said
    return sum_over_replicas(strategy, float(said)) > 0


def check_same_step(strategy: tf.distribute.Strategy, step: int) -> None:
    """Refuses workers that would begin at different steps.

    Raises:
        InputError: this worker's step is not the average of all: the output directory is not the same for all.
    """
    if distribution.num_workers(strategy) == 1:
        return
    average = sum_over_replicas(strategy, float(step)) / strategy.num_replicas_in_sync
    if average != step:
        raise InputError(
            f"this worker found a checkpoint of step {step} in --output_dir and others did not: "
            "give all workers the same directory, on a file system that they share"
        )
