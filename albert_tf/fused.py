"""Element-wise chains of the encoder, each compiled into one pass over memory, forward and backward, for training.

On a CPU the activation, the norms and the softmax cost as much as a third of a training step when each operation is a
pass of its own. The backward passes are written out: they recompute from the inputs, so nothing in between is kept.
Outside `with one_pass():` the layers take the plain forms, which graph optimisers and exporters know. Both forms give
the same numbers up to rounding, and the same dropout for the same seed.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
from collections.abc import Callable, Iterator
from typing import Any, Optional

import tensorflow as tf

_TWO_SQRT_2_OVER_PI = 2.0 * math.sqrt(2.0 / math.pi)
_one_pass = contextvars.ContextVar("one_pass", default=False)
Seed = Optional[tf.Tensor]


@contextlib.contextmanager
def one_pass() -> Iterator[None]:
    """Models called (or traced) inside this block use the compiled forms."""
    token = _one_pass.set(True)
    try:
        yield
    finally:
        _one_pass.reset(token)


def active() -> bool:
    """Whether the caller is inside `one_pass`."""
    return _one_pass.get()


def random_bits(shape: Any, seed: tf.Tensor) -> tf.Tensor:
    """Uniform int32 over the whole range, decided by the seed.

    Whole numbers and a named algorithm, for random floats and the default algorithm differ between devices and XLA.
    """
    return tf.random.stateless_uniform(shape, seed, minval=None, maxval=None, dtype=tf.int32, alg="philox")


def dropout_factor(shape: tf.Tensor, rate: float, seed: tf.Tensor) -> tf.Tensor:
    """What dropout multiplies by: 0 for a share `rate`, 1 / (1 - rate) for the rest; float32, decided by the seed."""
    keep = random_bits(shape, seed) >= round((rate - 0.5) * 2**32)
    return tf.cast(keep, tf.float32) * (1.0 / (1.0 - rate))


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return tf.function(function, jit_compile=True, autograph=False)


def row_sum(x: tf.Tensor) -> tf.Tensor:
    """[...,W] of any float type to [W] float32, as the gradient of a bias needs it.

    A product with ones: matrix products sum bfloat16 in float32, which the framework's own gradient of a bias does not,
    and XLA's sum over rows takes as long on a CPU as the whole of the element-wise chain before it.
    """
    rows = tf.reshape(x, [-1, x.shape[-1]])
    ones = tf.ones([1, tf.shape(rows)[0]], x.dtype)
    return tf.cast(tf.matmul(ones, rows)[0], tf.float32)


def bias_add(x: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """x + bias: [...,W] of any float type and [W] float32 to [...,W] of x's type."""

    @tf.custom_gradient
    def run(x: tf.Tensor, bias: tf.Tensor) -> Any:
        return tf.nn.bias_add(x, tf.cast(bias, x.dtype)), lambda upstream: (upstream, row_sum(upstream))

    return run(x, bias)


def bias_gelu(x: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """gelu(x + bias), tanh form, computed in float32: [...,W] and [W] float32 to [...,W] of x's type."""

    @tf.custom_gradient
    def run(x: tf.Tensor, bias: tf.Tensor) -> Any:
        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            to_x = _bias_gelu_gradient(x, bias, upstream)
            return to_x, row_sum(to_x)

        return _bias_gelu(x, bias), gradient

    return run(x, bias)


@_compiled
def _bias_gelu(x: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    wide = tf.cast(x, tf.float32) + bias
    return tf.cast(wide * _gelu_gate(wide), x.dtype)


@_compiled
def _bias_gelu_gradient(x: tf.Tensor, bias: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
    wide = tf.cast(x, tf.float32) + bias
    gate = _gelu_gate(wide)
    slope = _TWO_SQRT_2_OVER_PI * (1.0 + 3.0 * 0.044715 * wide * wide)
    gradient = tf.cast(upstream, tf.float32) * (gate + wide * gate * (1.0 - gate) * slope)
    return tf.cast(gradient, x.dtype)


def _gelu_gate(x: tf.Tensor) -> tf.Tensor:
    """(1 + tanh(y)) / 2 = sigmoid(2 y)."""
    return tf.sigmoid(_TWO_SQRT_2_OVER_PI * (x + 0.044715 * x * x * x))


def add_and_norm(
    hidden: tf.Tensor,
    x: tf.Tensor,
    bias: tf.Tensor,
    gamma: tf.Tensor,
    beta: tf.Tensor,
    epsilon: float,
    rate: float,
    seed: Seed,
) -> tf.Tensor:
    """LayerNorm(hidden + dropout(x + bias)) over the last axis.

    Args:
        hidden: [...,W] float32.
        x: [...,W] of any float type.
        bias, gamma, beta: [W] float32.
        epsilon: added to the variance.
        rate: of the dropout.
        seed: int32 [2], of the dropout; None for no dropout.

    Returns:
        [...,W] float32.
    """

    @tf.custom_gradient
    def run(hidden: tf.Tensor, x: tf.Tensor, bias: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor) -> Any:
        output = _add_and_norm(hidden, x, bias, gamma, beta, epsilon, rate, seed)
        return output, lambda upstream: _add_and_norm_gradient(hidden, x, bias, gamma, upstream, epsilon, rate, seed)

    return run(hidden, x, bias, gamma, beta)


@_compiled
def _add_and_norm(
    hidden: tf.Tensor,
    x: tf.Tensor,
    bias: tf.Tensor,
    gamma: tf.Tensor,
    beta: tf.Tensor,
    epsilon: float,
    rate: float,
    seed: Seed,
) -> tf.Tensor:
    normalised, _ = _normalise(_residual_sum(hidden, x, bias, rate, seed), epsilon)
    return normalised * gamma + beta


@_compiled
def _add_and_norm_gradient(
    hidden: tf.Tensor,
    x: tf.Tensor,
    bias: tf.Tensor,
    gamma: tf.Tensor,
    upstream: tf.Tensor,
    epsilon: float,
    rate: float,
    seed: Seed,
) -> tuple[tf.Tensor, ...]:
    normalised, inverse_deviation = _normalise(_residual_sum(hidden, x, bias, rate, seed), epsilon)
    scaled = upstream * gamma
    mean = tf.reduce_mean(scaled, axis=-1, keepdims=True)
    along = tf.reduce_mean(scaled * normalised, axis=-1, keepdims=True)
    to_hidden = inverse_deviation * (scaled - mean - normalised * along)
    to_x = to_hidden if seed is None else to_hidden * dropout_factor(tf.shape(x), rate, seed)
    return (
        to_hidden,
        tf.cast(to_x, x.dtype),
        _sum_rows(to_x),
        _sum_rows(upstream * normalised),
        _sum_rows(upstream),
    )


def _residual_sum(hidden: tf.Tensor, x: tf.Tensor, bias: tf.Tensor, rate: float, seed: Seed) -> tf.Tensor:
    wide = tf.cast(x, tf.float32) + bias
    if seed is not None:
        wide *= dropout_factor(tf.shape(x), rate, seed)
    return hidden + wide


def _normalise(x: tf.Tensor, epsilon: float) -> tuple[tf.Tensor, tf.Tensor]:
    centred = x - tf.reduce_mean(x, axis=-1, keepdims=True)
    inverse_deviation = tf.math.rsqrt(tf.reduce_mean(tf.square(centred), axis=-1, keepdims=True) + epsilon)
    return centred * inverse_deviation, inverse_deviation


def _sum_rows(x: tf.Tensor) -> tf.Tensor:
    """[...,W] to [W]."""
    return tf.reduce_sum(x, axis=list(range(x.shape.rank - 1)))


def attention_probabilities(scores: tf.Tensor, scale: float, bias: tf.Tensor, rate: float, seed: Seed) -> tf.Tensor:
    """dropout(softmax(scores * scale + bias)) over the last axis, computed in float32; none flows back to the bias.

    Args:
        scores: [B,N,S,S] of any float type.
        scale: what the scores are multiplied by.
        bias: [B,1,1,S] or [B,1,S,S] float32.
        rate, seed: of the dropout, as in `add_and_norm`.

    Returns:
        [B,N,S,S] of the scores' type.
    """

    @tf.custom_gradient
    def run(scores: tf.Tensor) -> Any:
        probabilities = _probabilities(scores, scale, bias, rate, seed)
        return probabilities, lambda upstream: _probabilities_gradient(scores, scale, bias, upstream, rate, seed)

    return run(scores)


@_compiled
def _probabilities(scores: tf.Tensor, scale: float, bias: tf.Tensor, rate: float, seed: Seed) -> tf.Tensor:
    probabilities = tf.nn.softmax(tf.cast(scores, tf.float32) * scale + bias)
    if seed is not None:
        probabilities *= dropout_factor(tf.shape(scores), rate, seed)
    return tf.cast(probabilities, scores.dtype)


@_compiled
def _probabilities_gradient(
    scores: tf.Tensor, scale: float, bias: tf.Tensor, upstream: tf.Tensor, rate: float, seed: Seed
) -> tf.Tensor:
    probabilities = tf.nn.softmax(tf.cast(scores, tf.float32) * scale + bias)
    upstream = tf.cast(upstream, tf.float32)
    if seed is not None:
        upstream *= dropout_factor(tf.shape(scores), rate, seed)
    along = tf.reduce_sum(upstream * probabilities, axis=-1, keepdims=True)
    return tf.cast(probabilities * (upstream - along) * scale, scores.dtype)
