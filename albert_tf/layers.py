"""The small pieces every part of the network is made of: dense weights, LayerNorm, activation, dropout."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from albert_tf import fused


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


def matmul(x: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """[B,S,in] times [in,out] to [B,S,out], of x's type.

    As one product of two matrices: a batch of products would make a gradient of the kernel for each example.
    """
    rows = tf.reshape(x, [-1, x.shape[-1]])
    shape = tf.shape(x)
    return tf.reshape(tf.matmul(rows, tf.cast(kernel, x.dtype)), [shape[0], shape[1], kernel.shape[-1]])


class Float32Layer(tf.keras.layers.Layer):
    """A layer that reads its variables in float32 and itself decides what is computed in the policy's precision.

    Attributes:
        product_dtype: what the factors of the large matrix products are cast to, by the global policy.
    """

    def __init__(self, **kwargs: Any):
        kwargs["dtype"] = "float32"
        super().__init__(autocast=False, **kwargs)
        self.product_dtype = tf.keras.mixed_precision.global_policy().compute_dtype


class LayerNorm(Float32Layer):
    """Normalisation over the last axis, [..., W] to [..., W], always computed and returned in float32.

    The released epsilon of 1e-12 is zero in half precision, and the framework's own default is a thousand million times
    larger.
    """

    def __init__(self, epsilon: float, name: str = "LayerNorm", **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.epsilon = epsilon

    def build(self, input_shape: Any) -> None:
        width = int(input_shape[-1])
        self.gamma = self.add_weight(name="gamma", shape=(width,), initializer="ones")
        self.beta = self.add_weight(name="beta", shape=(width,), initializer="zeros")
        self.built = True

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        inputs = tf.cast(inputs, tf.float32)
        centred = inputs - tf.reduce_mean(inputs, axis=-1, keepdims=True)
        variance = tf.reduce_mean(tf.square(centred), axis=-1, keepdims=True)
        return centred * tf.math.rsqrt(variance + self.epsilon) * self.gamma + self.beta


def add_and_norm(
    norm: LayerNorm,
    hidden: tf.Tensor,
    x: tf.Tensor,
    bias: tf.Tensor,
    rate: float,
    seed: tf.Tensor | None,
) -> tf.Tensor:
    """norm(hidden + dropout(x + bias)), the end of both halves of a block.

    Args:
        norm: the LayerNorm.
        hidden: [B,S,H] float32, the residual.
        x: [B,S,H] of any float type, a product still without its bias.
        bias: [H].
        rate, seed: of the dropout; see `dropout`.

    Returns:
        [B,S,H] float32.
    """
    if fused.active():
        gamma, beta = tf.convert_to_tensor(norm.gamma), tf.convert_to_tensor(norm.beta)
        bias = tf.convert_to_tensor(bias)
        return fused.add_and_norm(hidden, x, bias, gamma, beta, norm.epsilon, rate, seed)
    x = dropout(bias_add(x, bias), rate, seed)
    return norm(hidden + tf.cast(x, tf.float32))


def gelu(x: tf.Tensor) -> tf.Tensor:
    """The tanh form of GELU, as the released models; the exact form moves the logits by 2e-3."""
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1.0 + tf.tanh(inner))


def gelu_erf(x: tf.Tensor) -> tf.Tensor:
    """GELU by its definition, x times the normal distribution function."""
    return 0.5 * x * (1.0 + tf.math.erf(x / math.sqrt(2.0)))


ACTIVATIONS: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "gelu": gelu,
    "gelu_erf": gelu_erf,
    "relu": tf.nn.relu,
    "tanh": tf.tanh,
    "linear": tf.identity,
    "": tf.identity,
}


def bias_add(x: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """x + bias in x's type: [...,W] and [W] float32 to [...,W]."""
    return fused.bias_add(x, bias) if fused.active() else tf.nn.bias_add(x, tf.cast(bias, x.dtype))


def activate(x: tf.Tensor, bias: tf.Tensor, name: str) -> tf.Tensor:
    """activation(x + bias), by the activation's name (`AlbertConfig.hidden_act`): [...,W] to [...,W]."""
    if fused.active() and name == "gelu":
        return fused.bias_gelu(x, tf.convert_to_tensor(bias))
    return ACTIVATIONS[name](bias_add(x, bias))


def dropout(x: tf.Tensor, rate: float, seed: tf.Tensor | None) -> tf.Tensor:
    """Zeroes a share `rate` of x and scales up the rest.

    Args:
        x: a float tensor of any shape.
        rate: share that is zeroed.
        seed: int32 [2], which alone decides what is zeroed; None leaves x as it is, and so does rate 0.
    """
    if seed is None or rate == 0:
        return x
    return x * tf.cast(fused.dropout_factor(tf.shape(x), rate, seed), x.dtype)


def drawn_seed(training: bool | None, seed: tf.Tensor | None, *rates: float) -> tf.Tensor | None:
    """The seed of a call's dropout, int32 [2]: the one given, or else one drawn from tf.random.

    None where nothing is dropped: outside training, or with all `rates` 0.
    """
    if not training or not any(rates):
        return None
    if seed is None:
        return tf.random.uniform([2], maxval=2**31 - 1, dtype=tf.int32)
    return seed


def dropout_seeds(seed: tf.Tensor | None, count: int) -> list[tf.Tensor | None]:
    """Makes `count` seeds, int32 [2] each, out of one; all None where there is none."""
    if seed is None:
        return [None] * count
    return tf.unstack(fused.random_bits([count, 2], seed))
