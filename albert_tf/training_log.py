"""Numbers of training between two log lines, kept on the device, and the boards they are drawn on.

An interval is a dict of float64 scalars: sums and maxima over its steps, and the first step whose loss is not finite.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from albert_tf import storage
from albert_tf.loss_scale import LossScale

NOT_FINITE_AT, STEPS = "not_finite_at", "steps"
NO_STEP = -1.0


class NotFiniteError(ArithmeticError):
    """The loss became NaN or infinite; `step` counts from 0."""

    def __init__(self, step: int):
        super().__init__(
            "the loss is not finite: try a lower --learning_rate or a longer warm-up, and look at gradient_norm in "
            "the log"
        )
        self.step = step


def empty_interval(fields: Iterable[str]) -> dict[str, float]:
    """An interval before its first step: sums and maxima are 0, no step had a loss that is not finite."""
    return {name: NO_STEP if name == NOT_FINITE_AT else 0.0 for name in fields}


def accumulate(
    interval: Mapping[str, tf.Tensor],
    values: Mapping[str, tf.Tensor],
    *,
    loss: tf.Tensor,
    maxima: Sequence[str],
    step: tf.Tensor,
) -> dict[str, tf.Tensor]:
    """Adds one step to an interval, float64, step by step: the same bits however the steps are grouped in calls.

    Args:
        interval: `values` and `<name>_max` of the maxima, `steps` and `not_finite_at`.
        values: name to scalar of the step.
        loss: of the step; it is asked whether it is finite.
        maxima: those of the values whose maximum is kept as well.
        step: counted from 0.
    """
    added = {name: tf.cast(value, tf.float64) for name, value in values.items()}
    result = {name: interval[name] + value for name, value in added.items()}
    result[STEPS] = interval[STEPS] + 1.0
    for name in maxima:
        result[f"{name}_max"] = tf.maximum(interval[f"{name}_max"], added[name])
    # A gradient's norm tells of weights that are broken already, the loss of those that will be.
    bad = tf.logical_not(tf.math.is_finite(loss))
    first = tf.logical_and(bad, interval[NOT_FINITE_AT] == NO_STEP)
    result[NOT_FINITE_AT] = tf.where(first, tf.cast(step, tf.float64), interval[NOT_FINITE_AT])
    return result


def to_tensors(interval: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    """An interval for the device, float64."""
    return {name: tf.convert_to_tensor(value, tf.float64) for name, value in interval.items()}


def finite_numbers(interval: Mapping[str, Any]) -> dict[str, float]:
    """An interval as Python numbers.

    Raises:
        NotFiniteError: the loss of one of its steps was not finite.
    """
    numbers = {name: float(value) for name, value in interval.items()}
    if numbers[NOT_FINITE_AT] != NO_STEP:
        raise NotFiniteError(int(numbers[NOT_FINITE_AT]))
    return numbers


def last_rate(schedule: Any, optimizer: Any) -> float:
    """The learning rate of the update before."""
    return float(schedule(tf.maximum(tf.cast(optimizer.iterations, tf.int64) - 1, 0)))


def loss_scale_line(loss_scale: LossScale | None, interval: Mapping[str, float]) -> dict[str, float]:
    """What a log line tells of a loss scale; nothing without one. The interval has `taken`."""
    if loss_scale is None:
        return {}
    value = tf.convert_to_tensor(loss_scale.value)  # under a strategy with several replicas it is no number
    return {"loss_scale": float(value), "skipped_updates": interval[STEPS] - interval["taken"]}


def loss_scale_variables(loss_scale: LossScale | None) -> dict[str, tf.Variable]:
    """The loss scale's state by name; none without one."""
    if loss_scale is None:
        return {}
    return {"loss_scale/value": loss_scale.value, "loss_scale/good_steps": loss_scale.good_steps}


def tensorboard_writers(directory: str | None, names: Sequence[str]) -> dict[str, Any]:
    """A writer of each name below the directory; ones that write nothing without a directory."""
    if directory is None:
        return dict.fromkeys(names, tf.summary.create_noop_writer())
    return {name: tf.summary.create_file_writer(storage.join(directory, name)) for name in names}


def write_board(writer: Any, line: Mapping[str, float], trust_ratios: Mapping[str, Any] | None = None) -> None:
    """Writes a line's numbers, and trust ratios by released name, as TensorBoard scalars."""
    with writer.as_default(step=int(line["step"])):
        for name, value in line.items():
            if name != "step":
                tf.summary.scalar(name, value)
        for name, ratio in (trust_ratios or {}).items():
            tf.summary.scalar(f"trust_ratio/{name}", ratio)
    writer.flush()
