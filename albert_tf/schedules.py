"""The learning rate: linear warm-up, then polynomial decay to zero (paper appendix A.1; released optimization.py)."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from albert_tf.errors import InputError

DECAY_STARTS = ("zero", "warmup_end")


@tf.keras.utils.register_keras_serializable(package="albert_tf")
class LearningRateSchedule(tf.keras.optimizers.schedules.LearningRateSchedule):
    """The rate of an update as a function of the updates done before it.

    peak * step / warmup_steps                                      while step < warmup_steps
    peak * (1 - step / total_steps) ** power                        afterwards, with decay_start "zero" (released)
    peak * (1 - (step - warmup) / (total - warmup)) ** power        afterwards, with decay_start "warmup_end"
    0                                                               from total_steps on

    With "zero" the rate falls at the end of the warm-up to where a decay without warm-up would be.
    A warm-up longer than the training is legal: the rate then never reaches the peak.

    Raises:
        InputError: a number out of range or an unknown decay_start.
    """

    def __init__(
        self,
        peak: float,
        total_steps: int,
        warmup_steps: int = 0,
        power: float = 1.0,
        decay_start: str = "zero",
    ) -> None:
        if not 0.0 <= peak < float("inf"):
            raise InputError(f"the learning rate must be a number of at least 0, got {peak}")
        if total_steps < 1:
            raise InputError(f"the number of training steps must be at least 1, got {total_steps}")
        if warmup_steps < 0:
            raise InputError(f"the number of warm-up steps must be at least 0, got {warmup_steps}")
        if power < 0:
            raise InputError(f"the power of the learning rate's decay must be at least 0, got {power}")
        if decay_start not in DECAY_STARTS:
            raise InputError(f"decay_start is one of {', '.join(DECAY_STARTS)}, got {decay_start!r}")
        self.peak = float(peak)
        self.total_steps = int(total_steps)
        self.warmup_steps = int(warmup_steps)
        self.power = float(power)
        self.decay_start = decay_start

    def __call__(self, step: Any) -> tf.Tensor:
        """Float32 scalar: the rate of the update that follows `step` updates."""
        step = tf.cast(tf.convert_to_tensor(step), tf.float32)
        total, warmup = float(self.total_steps), float(self.warmup_steps)
        decay_from = warmup if self.decay_start == "warmup_end" else 0.0
        # Each quotient has a divisor of at least 1, so that the branch not taken is finite too.
        rising = self.peak * (step / max(warmup, 1.0))
        done = tf.clip_by_value((step - decay_from) / max(total - decay_from, 1.0), 0.0, 1.0)
        falling = self.peak * tf.pow(1.0 - done, self.power)
        rate = tf.where(step < warmup, rising, falling)
        return tf.where(step < total, rate, tf.zeros_like(rate))

    def get_config(self) -> dict[str, Any]:
        return {
            "peak": self.peak,
            "total_steps": self.total_steps,
            "warmup_steps": self.warmup_steps,
            "power": self.power,
            "decay_start": self.decay_start,
        }
