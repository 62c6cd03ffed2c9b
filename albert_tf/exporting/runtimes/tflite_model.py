"""The encoder in the operations that TensorFlow Lite has fast kernels for, with any head on it.

What it does otherwise than `albert_tf.encoder`, which computes the same: matrices lie transposed and what they are
multiplied with has rank 2, so that each product is a FULLY_CONNECTED with its bias, of whose weights the converter
makes int8; queries, keys and values are one product; and no shape is asked for but that of the ids.

B rows, S their padded length, E embedding width, H hidden size, N heads, D their size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.encoder import MASK_BIAS
from albert_tf.exporting.inference_model import InferenceModel
from albert_tf.exporting.runtimes import block_weights
from albert_tf.layers import ACTIVATIONS
from albert_tf.models import AlbertModel
from albert_tf.pretrained_model import PretrainedModel


class TfliteModel(InferenceModel):
    """What a `PretrainedModel` answers, by the graph of `TfliteEncoder`; the head is the model's own.

    Args:
        model: with any head; the encoder's weights are taken over as they are now.
    """

    def __init__(self, model: PretrainedModel):
        albert: Any = getattr(model, "albert", model)
        super().__init__(model, encoder=TfliteEncoder(albert))


class TfliteEncoder:
    """Ids to vectors; the weights are taken over as they are now, as constants.

    Args:
        albert: the model.

    Attributes:
        variables: none.
    """

    def __init__(self, albert: AlbertModel):
        self.variables: list[tf.Variable] = []
        self._config = albert.config
        self._weights = {name: np.asarray(value, np.float32) for name, value in albert.named_variables().items()}
        self._constants: dict[str, tf.Tensor] = {}

    def first(self, input_ids: tf.Tensor, input_mask: tf.Tensor, segment_ids: tf.Tensor) -> tf.Tensor:
        """[B,S] int32 to the first position's vector, [B,H]; the last block computes no other one."""
        return self._encode(input_ids, input_mask, segment_ids, only_first=True)

    def sequence(self, input_ids: tf.Tensor, input_mask: tf.Tensor, segment_ids: tf.Tensor) -> tf.Tensor:
        """[B,S] int32 to [B,S,H] float32."""
        shape = tf.shape(input_ids)
        hidden = self._encode(input_ids, input_mask, segment_ids, only_first=False)
        return tf.reshape(hidden, tf.stack([shape[0], shape[1], self._config.hidden_size]))

    def _encode(
        self, input_ids: tf.Tensor, input_mask: tf.Tensor, segment_ids: tf.Tensor, only_first: bool
    ) -> tf.Tensor:
        """To [B*S,H], or with `only_first` to [B,H]."""
        self._constants = {}  # those of another graph are no constants of this one
        config = self._config
        shape = tf.shape(input_ids)
        heads = tf.stack([shape[0], shape[1], config.num_attention_heads, config.head_size])
        bias = (1.0 - tf.cast(input_mask, tf.float32)) * MASK_BIAS
        bias = tf.reshape(bias, tf.stack([shape[0], 1, 1, shape[1]]))
        hidden = self._embeddings(input_ids, segment_ids, shape[1])
        blocks = block_weights.names(config)
        for number, (attention, feed_forward) in enumerate(blocks):
            hidden = self._attention(hidden, bias, heads, attention, only_first and number == len(blocks) - 1)
            hidden = self._feed_forward(hidden, feed_forward)
        return hidden

    def _embeddings(self, input_ids: tf.Tensor, segment_ids: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
        """[B,S] to [B*S,H]."""
        words, segments, positions = (
            self._constant(f"bert/embeddings/{table}_embeddings") for table in ("word", "token_type", "position")
        )
        summed = tf.gather(words, input_ids) + tf.gather(segments, segment_ids) + positions[:length]
        embedded = self._norm(tf.reshape(summed, [-1, self._config.embedding_size]), "bert/embeddings/LayerNorm")
        if not self._config.has_projection:
            return embedded
        return self._dense(embedded, "bert/encoder/embedding_hidden_mapping_in")

    def _attention(
        self, hidden: tf.Tensor, bias: tf.Tensor, heads: tf.Tensor, block: str, only_first: bool
    ) -> tf.Tensor:
        name = f"{block}/attention_1/self"
        joined = self._product(
            hidden,
            f"{name}/query_key_value",
            *block_weights.query_key_value(self._weights, name, self._config.head_size),
        )
        query, key, value = (
            tf.transpose(tf.reshape(part, heads), [0, 2, 1, 3]) for part in tf.split(joined, 3, axis=1)
        )  # [B,N,S,D]
        if only_first:
            query = query[:, :, :1]
            hidden = tf.reshape(hidden, tf.stack([heads[0], heads[1], self._config.hidden_size]))[:, 0]
        probabilities = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) + bias)
        context = tf.transpose(tf.matmul(probabilities, value), [0, 2, 1, 3])
        context = tf.reshape(context, [-1, self._config.hidden_size])
        return self._norm(hidden + self._dense(context, f"{block}/attention_1/output/dense"), f"{block}/LayerNorm")

    def _feed_forward(self, hidden: tf.Tensor, block: str) -> tf.Tensor:
        name = f"{block}/ffn_1/intermediate"
        inner, act = self._dense(hidden, f"{name}/dense"), self._config.hidden_act
        inner = tf.nn.gelu(inner, approximate=True) if act == "gelu" else ACTIVATIONS[act](inner)
        return self._norm(hidden + self._dense(inner, f"{name}/output/dense"), f"{block}/LayerNorm_1")

    def _norm(self, x: tf.Tensor, name: str) -> tf.Tensor:
        centred = x - tf.reduce_mean(x, axis=-1, keepdims=True)
        variance = tf.reduce_mean(tf.square(centred), axis=-1, keepdims=True)
        normalised = centred * tf.math.rsqrt(variance + self._config.layer_norm_eps)
        return normalised * self._constant(f"{name}/gamma") + self._constant(f"{name}/beta")

    def _dense(self, x: tf.Tensor, name: str) -> tf.Tensor:
        return self._product(x, name, self._weights[f"{name}/kernel"], self._weights[f"{name}/bias"])

    def _product(self, x: tf.Tensor, name: str, kernel: np.ndarray, bias: np.ndarray) -> tf.Tensor:
        """[R,in] to [R,out]."""
        transposed = self._constant(f"{name}/transposed", kernel.T)
        return tf.matmul(x, transposed, transpose_b=True) + self._constant(f"{name}/bias", bias)

    def _constant(self, name: str, value: Any = None) -> tf.Tensor:
        """Once in a graph, for all layers that share it."""
        if name not in self._constants:
            values: Mapping[str, np.ndarray] = self._weights
            self._constants[name] = tf.constant(np.ascontiguousarray(values[name] if value is None else value))
        return self._constants[name]
