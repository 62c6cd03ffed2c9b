"""The optimizer of fine-tuning in one call, for Keras' `compile`."""

from __future__ import annotations

from typing import Any

from albert_tf.optimizers import AdamW
from albert_tf.schedules import LearningRateSchedule

WARMUP_SHARE = 0.1


def finetuning_adamw(
    learning_rate: float,
    total_steps: int,
    *,
    warmup_steps: int | None = None,
    weight_decay_rate: float = 0.01,
    clip_norm: float = 1.0,
    **arguments: Any,
) -> AdamW:
    """AdamW with linear warm-up, linear decay to zero and clipping to a global norm, as the released optimization.py.

    Args:
        learning_rate: the peak. 1e-5 to 3e-5 for the released base and large models, 5e-6 to 1e-5 for larger ones.
        total_steps: updates of the whole training: epochs times batches of an epoch.
        warmup_steps: the first updates, on which the rate rises; by default a tenth of all.
        weight_decay_rate: of all but biases and LayerNorm.
        clip_norm: largest global norm of the gradients, repeated words summed; replicas too, under a strategy.
        **arguments: further ones of `AdamW`.

    Raises:
        InputError: a number is out of range.
    """
    if warmup_steps is None:
        warmup_steps = int(WARMUP_SHARE * total_steps)
    schedule = LearningRateSchedule(learning_rate, total_steps, warmup_steps)
    return AdamW(schedule, weight_decay_rate=weight_decay_rate, global_clipnorm=clip_norm, **arguments)
