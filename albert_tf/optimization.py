"""From summed gradients to new weights: which optimizer, what it leaves out, clipping, and what a person watches.

The order of one update (the released optimization.py, and what mixed precision and replicas add to it): gradients of
all micro-batches and replicas summed, unscaled (`loss_scale`), clipped to a global norm of 1, applied.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from albert_tf import stack
from albert_tf.errors import InputError
from albert_tf.optimizers import UNDECAYED_PATTERNS, AdamW, Lamb, adam_update, trust_ratio
from albert_tf.schedules import LearningRateSchedule
from albert_tf.stack import apply_summed_gradients

__all__ = [
    "OPTIMIZERS",
    "AdamW",
    "Lamb",
    "LearningRateSchedule",
    "apply_summed_gradients",
    "clip_by_global_norm",
    "create_optimizer",
    "dense_gradients",
    "state_variables",
    "trust_ratios",
    "undecayed_names",
]


def undecayed_names(named_variables: Mapping[str, tf.Variable]) -> list[str]:
    """The variables with neither weight decay nor trust ratio: every bias, gamma and beta, by released name."""
    return [name for name in named_variables if any(re.search(pattern, name) for pattern in UNDECAYED_PATTERNS)]


def _create_lamb(schedule: Any, *, weight_decay: float, bias_correction: bool, **settings: Any) -> Any:
    if bias_correction and stack.has_addons():
        patterns = list(UNDECAYED_PATTERNS)
        return stack.addons_lamb_class()(
            schedule, weight_decay=weight_decay, exclude_from_weight_decay=patterns, **settings
        )
    return Lamb(schedule, weight_decay_rate=weight_decay, bias_correction=bias_correction, **settings)


def _create_adamw(schedule: Any, *, weight_decay: float, **settings: Any) -> AdamW:
    return AdamW(schedule, weight_decay_rate=weight_decay, **settings)


# name -> (maker, bias correction when nothing is said)
OPTIMIZERS = {"lamb": (_create_lamb, True), "adamw": (_create_adamw, False)}


def create_optimizer(
    name: str,
    schedule: LearningRateSchedule | float,
    named_variables: Mapping[str, Any],
    *,
    weight_decay: float = 0.01,
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    epsilon: float = 1e-6,
    bias_correction: bool | None = None,
) -> Any:
    """A tf.keras optimizer of these variables, with its slots made, so that a checkpoint restores all of it.

    Call it in the scope of the strategy that made the variables. `named_variables` maps released names to variables:
    the names decide what is excluded. `bias_correction` None means what the name stands for: "lamb" has it, "adamw" as
    released has not. "lamb" with bias correction is tensorflow-addons' where that exists, with the numbers of `Lamb`.

    Raises:
        InputError: the name is not in `OPTIMIZERS`.
    """
    if name not in OPTIMIZERS:
        raise InputError(f"unknown optimizer {name!r}: choose one of {', '.join(OPTIMIZERS)}")
    maker, default_correction = OPTIMIZERS[name]
    optimizer = maker(
        schedule,
        weight_decay=weight_decay,
        beta_1=beta_1,
        beta_2=beta_2,
        epsilon=epsilon,
        bias_correction=default_correction if bias_correction is None else bias_correction,
    )
    optimizer.leave_undecayed(named_variables[name] for name in undecayed_names(named_variables))
    optimizer.build(list(named_variables.values()))
    return optimizer


def state_variables(optimizer: Any, named_variables: Mapping[str, Any]) -> dict[str, tf.Variable]:
    """All that an optimizer remembers, by name: `iterations` (int64), and `<released name>/m` and `/v` in float32.

    `tf.train.Checkpoint(**...)` of these names restores an update bit for bit, whichever class made the optimizer.
    """
    state = {"iterations": stack.native_variable(optimizer.iterations)}
    for name, variable in named_variables.items():
        state[f"{name}/m"], state[f"{name}/v"] = optimizer.moments(stack.native_variable(variable))
    return state


def dense_gradients(gradients: Sequence[Any], variables: Sequence[Any]) -> list[tf.Tensor]:
    """Each gradient as a dense float32 tensor of its variable's shape; zeros where the loss does not reach a variable.

    The global norm of sparse rows counts a repeated row's squares apart, so clipping needs the dense gradient: it is
    the norm with which the released models were trained (one-hot lookup on TPU).
    """
    return [
        tf.zeros(variable.shape, tf.float32)
        if gradient is None
        else tf.cast(tf.convert_to_tensor(gradient), tf.float32)
        for gradient, variable in zip(gradients, variables)
    ]


def clip_by_global_norm(gradients: Sequence[tf.Tensor], clip_norm: float = 1.0) -> tuple[list[tf.Tensor], tf.Tensor]:
    """(gradients scaled so that their global norm is at most clip_norm, the norm before)."""
    norm = tf.linalg.global_norm(gradients)
    clipped, _ = tf.clip_by_global_norm(gradients, clip_norm, use_norm=norm)
    return clipped, norm


def trust_ratios(optimizer: Any, named_variables: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    """Released name -> scalar trust ratio that LAMB's moments and the weights give at this moment, for TensorBoard.

    Undecayed variables have none, and neither has AdamW: then the answer is empty. Before the first step all are 1.
    """
    if isinstance(optimizer, AdamW) and not isinstance(optimizer, Lamb):
        return {}
    ratios = {}
    for name, variable in named_variables.items():
        variable = stack.native_variable(variable)
        if optimizer.is_undecayed(variable):
            continue
        weight = tf.convert_to_tensor(variable)
        m, v = optimizer.moments(variable)
        update = adam_update(
            weight,
            tf.convert_to_tensor(m),
            tf.convert_to_tensor(v),
            step=tf.maximum(tf.cast(optimizer.iterations, tf.float32), 1.0),
            beta_1=optimizer.beta_1,
            beta_2=optimizer.beta_2,
            epsilon=optimizer.epsilon,
            decay=optimizer.weight_decay_rate,
            bias_correction=optimizer.bias_correction,
        )
        ratios[name] = trust_ratio(weight, update)
    return ratios
