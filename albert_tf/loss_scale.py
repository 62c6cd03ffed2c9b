"""Dynamic loss scale for float16: gradients below its smallest number would otherwise vanish.

The scale is a power of two, so scaling and unscaling change no digit. bfloat16 and float32 need none of this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

# At 2**24 the smallest float16 number stands for a gradient of 2**-48: a larger scale has nothing left to save.
_LARGEST = 2.0**24
_SMALLEST = 1.0


class LossScale(tf.Module):
    """Halves when a gradient overflows, doubles after `growth_interval` good steps in a row.

    Make it in the scope of the strategy; a checkpoint that holds it restores the scale and the count.
    """

    def __init__(self, initial: float = 2.0**15, growth_interval: int = 2000) -> None:
        super().__init__(name="loss_scale")
        if growth_interval < 1:
            raise ValueError(f"growth_interval must be at least 1, got {growth_interval}")
        self.growth_interval = growth_interval
        once = {"trainable": False, "aggregation": tf.VariableAggregation.ONLY_FIRST_REPLICA}
        self.value = tf.Variable(initial, dtype=tf.float32, name="value", **once)
        self.good_steps = tf.Variable(0, dtype=tf.int64, name="good_steps", **once)

    def scale(self, loss: tf.Tensor) -> tf.Tensor:
        """The loss to differentiate, float32."""
        return loss * self.value

    def unscale(self, gradients: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The gradients of the loss itself, before clipping."""
        inverse = 1.0 / tf.convert_to_tensor(self.value)
        return [gradient * inverse for gradient in gradients]

    def update(self, finite: tf.Tensor) -> None:
        """Takes note of a step; `finite` says whether its gradients were. Not in a replica context."""
        good_steps = tf.where(finite, self.good_steps + 1, tf.zeros_like(self.good_steps))
        grown = good_steps >= self.growth_interval
        doubled = tf.minimum(self.value * 2.0, _LARGEST)
        halved = tf.maximum(self.value / 2.0, _SMALLEST)
        self.value.assign(tf.where(finite, tf.where(grown, doubled, self.value), halved))
        self.good_steps.assign(tf.where(grown, tf.zeros_like(good_steps), good_steps))

    def apply_if_finite(
        self, strategy: tf.distribute.Strategy, gradients: Sequence[Any], apply: Callable[[Sequence[tf.Tensor]], None]
    ) -> tf.Tensor:
        """Runs `apply(gradients)` on each replica unless a gradient is not finite, then updates the scale.

        Call it from a cross-replica context: an optimizer cannot enter its own inside of a branch. `gradients` are what
        `strategy.run` gave: unscaled, summed over the replicas, hence equal on all of them.

        Returns:
            bool scalar: whether the step was taken.
        """
        finite = all_finite([strategy.experimental_local_results(gradient)[0] for gradient in gradients])

        def take_step() -> tf.Tensor:
            strategy.run(apply, args=(gradients,))
            return tf.constant(True)

        taken = tf.cond(finite, take_step, lambda: tf.constant(False))
        self.update(finite)
        return taken


def all_finite(gradients: Sequence[tf.Tensor]) -> tf.Tensor:
    """bool scalar: no gradient holds an infinity or NaN."""
    return tf.reduce_all(tf.stack([tf.reduce_all(tf.math.is_finite(gradient)) for gradient in gradients]))
