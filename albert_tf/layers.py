"""The small pieces every part of the network is made of: dense layer, LayerNorm, activation, dropout."""

from __future__ import annotations

import math
from collections.abc import Callable

import tensorflow as tf

LAYER_NORM_EPSILON = 1e-12  # of the released models
RANDOM_ALGORITHM = "philox"  # named, since the default differs between devices and under XLA


def truncated_normal(initializer_range: float) -> tf.keras.initializers.Initializer:
    """The released initializer: normal of that standard deviation, cut at two of them.

    A new object each time: on Keras 2.15 one object used for several weights gives all of them the same values.
    """
    return tf.keras.initializers.TruncatedNormal(stddev=initializer_range)


def dense(units: int, initializer_range: float, name: str) -> tf.keras.layers.Dense:
    """A dense layer with bias and the released initial values; [..., in] to [..., units]."""
    return tf.keras.layers.Dense(units, kernel_initializer=truncated_normal(initializer_range), name=name)


def build_child(layer: tf.keras.layers.Layer, *input_shape: int | None) -> None:
    """Creates a child's weights under the child's name, so that weight names tell the part on both stacks."""
    if not layer.built:
        with tf.name_scope(layer.name):
            layer.build(tf.TensorShape(input_shape) if input_shape else None)
        layer.built = True


class LayerNorm(tf.keras.layers.Layer):
    """Normalisation over the last axis, [..., W] to [..., W], always computed and returned in float32.

    The epsilon of 1e-12 is zero in half precision, and the framework's own default is a thousand million times larger.
    """

    def __init__(self, name: str = "LayerNorm", **kwargs):
        kwargs["dtype"] = "float32"
        super().__init__(name=name, **kwargs)

    def build(self, input_shape) -> None:
        width = int(input_shape[-1])
        self.gamma = self.add_weight(name="gamma", shape=(width,), initializer="ones")
        self.beta = self.add_weight(name="beta", shape=(width,), initializer="zeros")
        self.built = True

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        inputs = tf.cast(inputs, tf.float32)
        mean = tf.reduce_mean(inputs, axis=-1, keepdims=True)
        centred = inputs - mean
        variance = tf.reduce_mean(tf.square(centred), axis=-1, keepdims=True)
        return centred * tf.math.rsqrt(variance + LAYER_NORM_EPSILON) * self.gamma + self.beta


def gelu(x: tf.Tensor) -> tf.Tensor:
    """The tanh form of GELU, as the released models; the exact form moves the logits by 2e-3."""
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1.0 + tf.tanh(inner))


ACTIVATIONS: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "gelu": gelu,
    "relu": tf.nn.relu,
    "tanh": tf.tanh,
    "linear": tf.identity,
    "": tf.identity,
}


def dropout(x: tf.Tensor, rate: float, seed: tf.Tensor | None) -> tf.Tensor:
    """Zeroes a share `rate` of x and scales up the rest.

    Args:
        x: a float tensor of any shape.
        rate: share that is zeroed.
        seed: int32 [2], which alone decides what is zeroed; None or rate 0 leaves x as it is.
    """
    if seed is None or rate == 0:
        return x
    keep = (
        tf.random.stateless_uniform(tf.shape(x), seed, alg=RANDOM_ALGORITHM) >= rate
    )  # in float32: bfloat16 knows 128 rates only
    return tf.where(keep, x * (1.0 / (1.0 - rate)), tf.zeros([], x.dtype))


def dropout_seeds(seed: tf.Tensor | None, count: int) -> list[tf.Tensor | None]:
    """Makes `count` seeds, int32 [2] each, out of one; all None where there is none."""
    if seed is None:
        return [None] * count
    return tf.unstack(
        tf.random.stateless_uniform([count, 2], seed, minval=None, maxval=None, dtype=tf.int32, alg=RANDOM_ALGORITHM)
    )
