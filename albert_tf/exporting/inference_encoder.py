"""The encoder as a graph for answering alone: fast, in plain operations, and without a gradient.

What it does otherwise than `albert_tf.encoder`, which computes the same:

* the weights lie ready for its products, in bfloat16 or float16 if wanted; the residual and LayerNorm are float32;
* products are made of tokens alone, and padding comes in for the attention only;
* where the first position is all that is asked for, the last block computes no other one;
* LayerNorm, products with bias and GELU, and scores with factor and mask are written in the form that TensorFlow's
  remapper takes for one operation of oneDNN.

B rows, S their padded length, T tokens without padding, E embedding width, H hidden size, N heads, D their size.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from albert_tf.encoder import attention_bias
from albert_tf.exporting.graph_weights import GraphWeights
from albert_tf.exporting.inference_weights import SCORE_FACTOR, inference_weights
from albert_tf.exporting.token_packing import TokenPacking
from albert_tf.layers import ACTIVATIONS
from albert_tf.models import AlbertModel
from albert_tf.pretrained_model import ENCODER_INPUTS

_SPECS = [tf.TensorSpec([None, None], tf.int32, name=name) for name in ENCODER_INPUTS]


class InferenceEncoder:
    """Ids to vectors.

    Args:
        albert: whose weights are taken over as they are now; its tables of embeddings are read as variables.
        precision: of the products, "float32", "bfloat16" or "float16".

    Attributes:
        sequence: `input_ids`, `input_mask` and `segment_ids` [B,S] int32 to [B,S,H] float32, zero at padding.
        first: the same inputs to the first position's vector, [B,H] float32.
        variables: what has to be saved with it beside the model's own variables.
    """

    def __init__(self, albert: AlbertModel, precision: str = "float32"):
        self._config = albert.config
        self._dtype = tf.as_dtype(precision)
        self._embeddings = albert.embeddings
        self._weights = GraphWeights(inference_weights(albert, precision), constant=precision != "float32")
        self.variables = self._weights.variables
        # Functions, so that all signatures of a SavedModel call the same ones.
        self.sequence = tf.function(self._sequence, input_signature=_SPECS, autograph=False)
        self.first = tf.function(self._first, input_signature=_SPECS, autograph=False)

    def _sequence(self, input_ids: tf.Tensor, input_mask: tf.Tensor, segment_ids: tf.Tensor) -> tf.Tensor:
        packing = TokenPacking(input_mask)
        return packing.with_zeros(self._encode(input_ids, segment_ids, packing, only_first=False))

    def _first(self, input_ids: tf.Tensor, input_mask: tf.Tensor, segment_ids: tf.Tensor) -> tf.Tensor:
        return self._encode(input_ids, segment_ids, TokenPacking(input_mask), only_first=True)

    def _encode(
        self, input_ids: tf.Tensor, segment_ids: tf.Tensor, packing: TokenPacking, only_first: bool
    ) -> tf.Tensor:
        """To [T,H], or with `only_first` to [B,H]."""
        weights = self._weights()
        hidden = self._embed(weights, input_ids, segment_ids, packing)
        attention = _Attention(self._config, packing, self._dtype)
        blocks = [
            (f"group_{attention_group}/inner_group_{inner}", f"group_{feed_forward_group}/inner_group_{inner}")
            for attention_group, feed_forward_group, inner in self._config.blocks()
        ]
        for number, (attention_key, feed_forward_key) in enumerate(blocks):
            is_last = only_first and number == len(blocks) - 1
            part = weights["attention"][attention_key]
            context = attention.context(_dense(tf.cast(hidden, self._dtype), part["qkv"]), is_last)
            hidden = packing.first(hidden) if is_last else hidden
            hidden = self._add_and_norm(hidden, _dense(context, part["output"]), part["norm"])
            part = weights["feed_forward"][feed_forward_key]
            inner = self._activated(_dense(tf.cast(hidden, self._dtype), part["inner"]))
            hidden = self._add_and_norm(hidden, _dense(inner, part["output"]), part["norm"])
        return hidden

    def _embed(
        self, weights: dict[str, Any], input_ids: tf.Tensor, segment_ids: tf.Tensor, packing: TokenPacking
    ) -> tf.Tensor:
        """[B,S] to [T,H] float32."""
        tables = self._embeddings
        words = tf.gather(tf.convert_to_tensor(tables.word_embeddings), input_ids)
        segments = tf.gather(tf.convert_to_tensor(tables.token_type_embeddings), segment_ids)
        positions = tf.convert_to_tensor(tables.position_embeddings)[: tf.shape(input_ids)[1]]
        joined = packing.pack(tf.reshape(words + segments + positions, [-1, self._config.embedding_size]))
        embedded = self._norm(joined, weights["embedding_norm"])
        if "projection" not in weights:
            return embedded
        return tf.cast(_dense(tf.cast(embedded, self._dtype), weights["projection"]), tf.float32)

    def _add_and_norm(self, hidden: tf.Tensor, x: tf.Tensor, weights: dict[str, tf.Tensor]) -> tf.Tensor:
        return self._norm(hidden + tf.cast(x, tf.float32), weights)

    def _norm(self, x: tf.Tensor, weights: dict[str, tf.Tensor]) -> tf.Tensor:
        """LayerNorm of [T,W] float32, each row normalised as a channel of an image of one column."""
        # Shaped back by tf.shape(x) whole, for the remapper has to see that the shape does not change. Not written as
        # x * a + (beta - mean * a): it makes of that one operation with an epsilon of 0.001.
        rows = tf.shape(x)[0]
        normalised, _, _ = tf.compat.v1.nn.fused_batch_norm(
            tf.reshape(x, [1, rows, x.shape[1], 1]),
            tf.fill([rows], 1.0),
            tf.fill([rows], 0.0),
            epsilon=self._config.layer_norm_eps,
            data_format="NCHW",
        )
        return tf.reshape(normalised, tf.shape(x)) * weights["gamma"] + weights["beta"]

    def _activated(self, x: tf.Tensor) -> tf.Tensor:
        name = self._config.hidden_act
        if name in ("gelu", "gelu_erf"):
            return tf.nn.gelu(x, approximate=name == "gelu")
        return ACTIVATIONS[name](x)


class _Attention:
    """What the attention of all blocks has in common: sizes and the mask."""

    def __init__(self, config: Any, packing: TokenPacking, dtype: tf.DType):
        self._packing = packing
        self._dtype = dtype
        self._bias = tf.cast(attention_bias(packing.is_piece), dtype)  # [B,1,1,S]
        shape = tf.shape(packing.is_piece)
        self._width = config.hidden_size
        self._heads = [shape[0], shape[1], 3, config.num_attention_heads, config.head_size]

    def context(self, qkv: tf.Tensor, only_first: bool) -> tf.Tensor:
        """Queries, keys and values [T,3H] to [T,H], or with `only_first` to [B,H]."""
        parts = tf.transpose(tf.reshape(self._packing.spread(qkv), self._heads), [2, 0, 3, 1, 4])
        query, key, value = parts[0], parts[1], parts[2]  # [B,N,S,D]
        if only_first:
            query = query[:, :, :1]
        scores = tf.matmul(query, key, transpose_b=True) * tf.constant(SCORE_FACTOR, self._dtype) + self._bias
        context = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), [0, 2, 1, 3])
        context = tf.reshape(context, [-1, self._width])
        return context if only_first else self._packing.pack(context)


def _dense(x: tf.Tensor, weights: dict[str, tf.Tensor]) -> tf.Tensor:
    return tf.nn.bias_add(tf.matmul(x, weights["kernel"]), weights["bias"])
