"""AdamW and LAMB, as the released optimization.py and lamb_optimizer.py compute them.

Both add the decoupled weight decay to the Adam update before the rate. LAMB (arXiv 1904.00962, algorithm 2) then scales
the update of each variable by the trust ratio |w| / |update|. Variables that are left undecayed (biases, LayerNorm) get
neither. Weights, gradients and moments of a variable have one shape, and float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from albert_tf import stack

# Regular expressions searched in a variable's name: the released ones, then gamma and beta of a differently named norm.
UNDECAYED_PATTERNS = ("LayerNorm", "layer_norm", "bias", r"\b(gamma|beta)\b")


def _bias_correction(beta: Any, step: tf.Tensor) -> tf.Tensor:
    """1 - beta ** step, without the cancellation that costs float32 four digits where beta is near 1."""
    log_beta = math.log(beta) if isinstance(beta, float) else tf.math.log(beta)
    return -tf.math.expm1(step * log_beta)


def adam_update(
    weight: tf.Tensor,
    m: tf.Tensor,
    v: tf.Tensor,
    *,
    step: tf.Tensor,
    beta_1: Any,
    beta_2: Any,
    epsilon: Any,
    decay: Any,
    bias_correction: bool,
) -> tf.Tensor:
    """m / (sqrt(v) + epsilon) + decay * weight: what the rate multiplies. `step` counts from 1."""
    if bias_correction:
        m = m / _bias_correction(beta_1, step)
        v = v / _bias_correction(beta_2, step)
    return m / (tf.sqrt(v) + epsilon) + decay * weight


def trust_ratio(weight: tf.Tensor, update: tf.Tensor) -> tf.Tensor:
    """Scalar |weight| / |update|, and 1 where either norm is 0."""
    weight_norm, update_norm = tf.norm(weight), tf.norm(update)
    defined = (weight_norm > 0.0) & (update_norm > 0.0)
    return tf.where(defined, tf.math.divide_no_nan(weight_norm, update_norm), tf.ones_like(weight_norm))


@tf.keras.utils.register_keras_serializable(package="albert_tf")
class AdamW(stack.MomentOptimizer):
    """Adam with decoupled weight decay; without bias correction unless asked, as released."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        *,
        weight_decay_rate: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        bias_correction: bool = False,
        undecayed_patterns: Sequence[str] = UNDECAYED_PATTERNS,
        name: str = "AdamW",
        **keras_arguments: Any,
    ) -> None:
        super().__init__(learning_rate, undecayed_patterns=undecayed_patterns, name=name, **keras_arguments)
        self.weight_decay_rate = float(weight_decay_rate)
        self.beta_1 = float(beta_1)
        self.beta_2 = float(beta_2)
        self.epsilon = float(epsilon)
        self.bias_correction = bool(bias_correction)

    def updated(
        self,
        weight: tf.Tensor,
        gradient: tf.Tensor,
        m: tf.Tensor,
        v: tf.Tensor,
        *,
        rate: tf.Tensor,
        step: tf.Tensor,
        undecayed: bool,
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        m = self.beta_1 * m + (1.0 - self.beta_1) * gradient
        v = self.beta_2 * v + (1.0 - self.beta_2) * tf.square(gradient)
        update = adam_update(
            weight,
            m,
            v,
            step=step,
            beta_1=self.beta_1,
            beta_2=self.beta_2,
            epsilon=self.epsilon,
            decay=0.0 if undecayed else self.weight_decay_rate,
            bias_correction=self.bias_correction,
        )
        return weight - rate * self.scaled(weight, update, undecayed), m, v

    def scaled(self, weight: tf.Tensor, update: tf.Tensor, undecayed: bool) -> tf.Tensor:
        """The update before the rate multiplies it."""
        return update

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "weight_decay_rate": self.weight_decay_rate,
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "bias_correction": self.bias_correction,
        }


@tf.keras.utils.register_keras_serializable(package="albert_tf")
class Lamb(AdamW):
    """LAMB: AdamW's update times the trust ratio; with bias correction unless refused (ALBERT as released has none)."""

    def __init__(
        self, learning_rate: Any = 0.00176, *, bias_correction: bool = True, name: str = "Lamb", **arguments: Any
    ) -> None:
        super().__init__(learning_rate, bias_correction=bias_correction, name=name, **arguments)

    def scaled(self, weight: tf.Tensor, update: tf.Tensor, undecayed: bool) -> tf.Tensor:
        return update if undecayed else trust_ratio(weight, update) * update
