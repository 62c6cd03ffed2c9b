"""Layers in the form that TensorFlow's remapper takes for one operation of oneDNN.

They have to be in a function that is not inlined (`APART`). What is inlined in a session, as TensorFlow Serving has it,
or in a loop has constants with dependencies, of which TensorFlow 2.15 makes no fused operations. That is slow, and the
operation that is left over for LayerNorm then, oneDNN's normalisation of batches, is not made for several requests at
the same time: they write into each other's memory, and the process dies.

T tokens, W width.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

APART: dict[str, Any] = {"autograph": False, "experimental_attributes": {"_noinline": True}}  # for tf.function


def dense(x: tf.Tensor, weights: dict[str, tf.Tensor]) -> tf.Tensor:
    """[T,W] by `kernel` and `bias`, all of one type."""
    return tf.nn.bias_add(tf.matmul(x, weights["kernel"]), weights["bias"])


def layer_norm(x: tf.Tensor, weights: dict[str, tf.Tensor], epsilon: float) -> tf.Tensor:
    """LayerNorm of [T,W] float32 by `gamma` and `beta`, each row normalised as a channel of an image of one column."""
    # Shaped back by tf.shape(x) whole, for the remapper has to see that the shape does not change. Not written as
    # x * a + (beta - mean * a): it makes of that one operation with an epsilon of 0.001.
    rows = tf.shape(x)[0]
    normalised, _, _ = tf.compat.v1.nn.fused_batch_norm(
        tf.reshape(x, [1, rows, x.shape[1], 1]),
        tf.fill([rows], 1.0),
        tf.fill([rows], 0.0),
        epsilon=epsilon,
        data_format="NCHW",
    )
    return tf.reshape(normalised, tf.shape(x)) * weights["gamma"] + weights["beta"]
