"""The factorised embeddings (paper section 3.1): tables of width E, then one projection to H."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.layers import Float32Layer, LayerNorm, build_child, dense, dropout, truncated_normal


class AlbertEmbeddings(Float32Layer):
    """Word + position + segment embeddings of width E, LayerNorm and dropout, then the projection E -> H.

    Position ids are 0..S-1 whatever the mask, as in the released code. The projection is absent when E = H.
    """

    def __init__(self, config: AlbertConfig, name: str = "embeddings", **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.config = config
        self.layer_norm = LayerNorm(config.layer_norm_eps)
        self.projection = None
        if config.has_projection:
            self.projection = dense(config.hidden_size, config.initializer_range, "embedding_hidden_mapping_in")

    def build(self, input_shape: Any = None) -> None:
        config, width = self.config, self.config.embedding_size
        self.word_embeddings = self._add_table("word_embeddings", config.vocab_size)
        self.token_type_embeddings = self._add_table("token_type_embeddings", config.type_vocab_size)
        self.position_embeddings = self._add_table("position_embeddings", config.max_position_embeddings)
        build_child(self.layer_norm, None, width)
        if self.projection is not None:
            build_child(self.projection, None, width)
        self.built = True

    def _add_table(self, name: str, rows: int) -> Any:
        initializer = truncated_normal(self.config.initializer_range)
        return self.add_weight(name=name, shape=(rows, self.config.embedding_size), initializer=initializer)

    def call(
        self, input_ids: tf.Tensor, segment_ids: tf.Tensor, dropout_seed: tf.Tensor | None = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Embeds a batch.

        Args:
            input_ids: [B,S] int32.
            segment_ids: [B,S] int32.
            dropout_seed: int32 [2], or None for no dropout.

        Returns:
            [B,S,E], the embeddings after LayerNorm and dropout (the released "embedding_output"), float32; and
            [B,S,H], the same after the projection.

        Raises:
            InputError: S is above max_position_embeddings.
        """
        length, longest = input_ids.shape[1], self.config.max_position_embeddings
        if length is not None and length > longest:
            raise InputError(
                f"the sequence has {length} pieces, but the model has only {longest} positions "
                "(max_position_embeddings): cut the input or use a model with more positions"
            )
        words = tf.gather(tf.convert_to_tensor(self.word_embeddings), input_ids)
        segments = tf.gather(tf.convert_to_tensor(self.token_type_embeddings), segment_ids)
        positions = tf.convert_to_tensor(self.position_embeddings)[: tf.shape(input_ids)[1]]
        embeddings = self.layer_norm(words + segments + positions)
        embeddings = dropout(embeddings, self.config.hidden_dropout_prob, dropout_seed)
        if self.projection is None:
            return embeddings, embeddings
        return embeddings, self.projection(embeddings)
