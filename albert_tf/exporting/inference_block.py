"""One block of the encoder for inference, as a function that a graph holds once however often it is repeated.

It stays apart from what calls it (`graph_layers.APART`) for two more reasons: oneDNN lays out a constant kernel for
each operation that reads it, and so does it once and not in every layer; and what optimises the graph works on one
block.

B rows, S their padded length, T tokens without padding, H hidden size, N heads, D their size.
"""

from __future__ import annotations

import functools

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.exporting.graph_layers import APART, dense, layer_norm
from albert_tf.exporting.graph_weights import GraphWeights
from albert_tf.exporting.inference_weights import SCORE_FACTOR
from albert_tf.exporting.token_packing import TokenPacking
from albert_tf.layers import ACTIVATIONS


class InferenceBlock:
    """Attention and feed-forward network with what normalises behind them.

    Args:
        config: sizes and activation.
        weights: of the encoder.
        attention, feed_forward: the names of the block's parts in them.
        dtype: of the products.

    Attributes:
        every: tokens [T,H] float32, what is added to scores [B,1,1,S], and the packing to tokens [T,H] float32.
        first: the same to the first position of each row alone, [B,H].
    """

    def __init__(self, config: AlbertConfig, weights: GraphWeights, attention: str, feed_forward: str, dtype: tf.DType):
        self._config = config
        self._weights = weights
        self._attention = attention
        self._feed_forward = feed_forward
        self._dtype = dtype
        specs = [
            tf.TensorSpec([None, config.hidden_size], tf.float32),
            tf.TensorSpec([None, 1, 1, None], dtype),
            TokenPacking.specs(),
        ]
        self.every = tf.function(functools.partial(self._block, only_first=False), input_signature=specs, **APART)
        self.first = tf.function(functools.partial(self._block, only_first=True), input_signature=specs, **APART)

    def repeated(self, hidden: tf.Tensor, bias: tf.Tensor, packing: TokenPacking, times: int) -> tf.Tensor:
        """`every`, so many times."""
        if times <= 1:
            return self.every(hidden, bias, packing) if times else hidden
        _, hidden = tf.while_loop(
            lambda number, _: number < times,
            lambda number, hidden: (number + 1, self.every(hidden, bias, packing)),
            (0, hidden),
            parallel_iterations=1,
        )
        return hidden

    def _block(self, hidden: tf.Tensor, bias: tf.Tensor, packing: TokenPacking, only_first: bool) -> tf.Tensor:
        weights = self._weights(self._attention)
        context = self._context(self._dense(hidden, weights["qkv"]), bias, packing, only_first)
        hidden = packing.first(hidden) if only_first else hidden
        hidden = self._add_and_norm(hidden, dense(context, weights["output"]), weights["norm"])
        weights = self._weights(self._feed_forward)
        inner = self._activated(self._dense(hidden, weights["inner"]))
        return self._add_and_norm(hidden, dense(inner, weights["output"]), weights["norm"])

    def _context(self, qkv: tf.Tensor, bias: tf.Tensor, packing: TokenPacking, only_first: bool) -> tf.Tensor:
        """Queries, keys and values [T,3H] to [T,H], or with `only_first` to [B,H]."""
        shape = tf.shape(packing.is_piece)
        heads = [shape[0], shape[1], 3, self._config.num_attention_heads, self._config.head_size]
        parts = tf.transpose(tf.reshape(packing.spread(qkv), heads), [2, 0, 3, 1, 4])
        query, key, value = parts[0], parts[1], parts[2]  # [B,N,S,D]
        if only_first:
            query = query[:, :, :1]
        scores = tf.matmul(query, key, transpose_b=True) * tf.constant(SCORE_FACTOR, self._dtype) + bias
        context = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), [0, 2, 1, 3])
        context = tf.reshape(context, [-1, self._config.hidden_size])
        return context if only_first else packing.pack(context)

    def _dense(self, hidden: tf.Tensor, weights: dict[str, tf.Tensor]) -> tf.Tensor:
        return dense(tf.cast(hidden, self._dtype), weights)

    def _add_and_norm(self, hidden: tf.Tensor, x: tf.Tensor, weights: dict[str, tf.Tensor]) -> tf.Tensor:
        return layer_norm(hidden + tf.cast(x, tf.float32), weights, self._config.layer_norm_eps)

    def _activated(self, x: tf.Tensor) -> tf.Tensor:
        name = self._config.hidden_act
        if name in ("gelu", "gelu_erf"):
            return tf.nn.gelu(x, approximate=name == "gelu")
        return ACTIVATIONS[name](x)
