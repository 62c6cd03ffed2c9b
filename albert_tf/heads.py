"""The heads of pre-training: pooler, masked-LM head and sentence head. Every logit is float32."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.layers import ACTIVATIONS, Float32Layer, LayerNorm, build_child, dense, truncated_normal

SENTENCE_CLASSES = 2


class Pooler(Float32Layer):
    """tanh(dense(first position)): [B,S,H] to [B,H] float32."""

    def __init__(self, config: AlbertConfig, name: str = "pooler", **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.config = config
        self.dense = dense(config.hidden_size, config.initializer_range, "dense")

    def build(self, input_shape: Any = None) -> None:
        build_child(self.dense, None, self.config.hidden_size)
        self.built = True

    def call(self, sequence_output: tf.Tensor) -> tf.Tensor:
        return tf.tanh(tf.cast(self.dense(sequence_output[:, 0]), tf.float32))


class MaskedLMHead(Float32Layer):
    """Predicts pieces: dense H -> E, activation, LayerNorm, times the word embeddings transposed, plus a bias.

    The output matrix is the word embedding table itself; this layer owns the bias only.
    """

    def __init__(self, config: AlbertConfig, name: str = "masked_lm", **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.config = config
        self.transform = dense(config.embedding_size, config.initializer_range, "transform")
        self.layer_norm = LayerNorm(config.layer_norm_eps)

    def build(self, input_shape: Any = None) -> None:
        build_child(self.transform, None, self.config.hidden_size)
        build_child(self.layer_norm, None, self.config.embedding_size)
        self.output_bias = self.add_weight(name="output_bias", shape=(self.config.vocab_size,), initializer="zeros")
        self.built = True

    def call(self, sequence_output: tf.Tensor, word_embeddings: Any, positions: tf.Tensor | None = None) -> tf.Tensor:
        """Computes the logits.

        Args:
            sequence_output: [B,S,H].
            word_embeddings: [V,E], the table of `AlbertEmbeddings`.
            positions: [B,P] int32, which positions to predict; None for all S.

        Returns:
            [B,P,V] or [B,S,V] float32.
        """
        if positions is not None:
            sequence_output = tf.gather(sequence_output, positions, batch_dims=1)
        activation = ACTIVATIONS[self.config.hidden_act]
        transformed = self.layer_norm(activation(self.transform(sequence_output)))
        logits = tf.matmul(transformed, tf.convert_to_tensor(word_embeddings), transpose_b=True)
        return logits + self.output_bias


class SentenceHead(Float32Layer):
    """Two classes on the pooled vector: 0 = in order, 1 = swapped (SOP) or random (NSP); [B,H] to [B,2] float32."""

    def __init__(self, config: AlbertConfig, name: str = "sentence", **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.config = config

    def build(self, input_shape: Any = None) -> None:
        self.output_weights = self.add_weight(  # [2,H] as in released checkpoints
            name="output_weights",
            shape=(SENTENCE_CLASSES, self.config.hidden_size),
            initializer=truncated_normal(self.config.initializer_range),
        )
        self.output_bias = self.add_weight(name="output_bias", shape=(SENTENCE_CLASSES,), initializer="zeros")
        self.built = True

    def call(self, pooled_output: tf.Tensor) -> tf.Tensor:
        return tf.matmul(pooled_output, tf.convert_to_tensor(self.output_weights), transpose_b=True) + self.output_bias
