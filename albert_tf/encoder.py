"""The encoder: self-attention, feed-forward, and one TransformerBlock used again by every layer that shares it."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from albert_tf import fused
from albert_tf.config import AlbertConfig
from albert_tf.layers import (
    Float32Layer,
    LayerNorm,
    activate,
    add_and_norm,
    bias_add,
    build_child,
    dense,
    dropout,
    dropout_seeds,
    matmul,
)

MASK_BIAS = -10000.0  # as released; added to float32 scores, so it is safe in every precision
DROPOUTS_PER_BLOCK = 3


def attention_bias(input_mask: tf.Tensor) -> tf.Tensor:
    """What is added to the attention scores: 0 at pieces, -10000 at padding; [B,S] to [B,1,1,S] float32."""
    return (1.0 - tf.cast(input_mask, tf.float32))[:, tf.newaxis, tf.newaxis, :] * MASK_BIAS


class SelfAttention(Float32Layer):
    """Multi-head self-attention with its output dense, residual and LayerNorm (the "attention" of paper table 4)."""

    def __init__(self, config: AlbertConfig, name: str = "attention", **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.config = config
        width, spread = config.hidden_size, config.initializer_range
        self.query = dense(width, spread, "query")
        self.key = dense(width, spread, "key")
        self.value = dense(width, spread, "value")
        self.output_dense = dense(width, spread, "output")
        self.layer_norm = LayerNorm(config.layer_norm_eps)

    def build(self, input_shape: Any = None) -> None:
        for child in (self.query, self.key, self.value, self.output_dense, self.layer_norm):
            build_child(child, None, self.config.hidden_size)
        self.built = True

    def call(self, hidden: tf.Tensor, bias: tf.Tensor, seeds: tuple = (None, None)) -> tf.Tensor:
        """Attends and adds.

        Args:
            hidden: [B,S,H] float32.
            bias: [B,1,1,S] or [B,1,S,S] float32, added to the scaled scores.
            seeds: of the dropout on the probabilities and of the one on the output; None for no dropout.

        Returns:
            [B,S,H] float32.
        """
        config, dtype = self.config, self.product_dtype
        query, key, value = self._project(tf.cast(hidden, dtype))
        scores = tf.matmul(query, key, transpose_b=True)  # [B,N,S,S]
        scale, rate = 1.0 / math.sqrt(config.head_size), config.attention_probs_dropout_prob
        if fused.active():
            probabilities = fused.attention_probabilities(scores, scale, bias, rate, seeds[0])
        else:
            probabilities = tf.nn.softmax(tf.cast(scores, tf.float32) * scale + bias)
            probabilities = tf.cast(dropout(probabilities, rate, seeds[0]), dtype)
        context = tf.transpose(tf.matmul(probabilities, value), [0, 2, 1, 3])  # [B,S,N,D]
        output = matmul(tf.reshape(context, tf.shape(hidden)), self.output_dense.kernel)
        return add_and_norm(
            self.layer_norm, hidden, output, self.output_dense.bias, config.hidden_dropout_prob, seeds[1]
        )

    def _project(self, hidden: tf.Tensor) -> list[tf.Tensor]:
        """[B,S,H] to query, key and value, [B,N,S,D] each, by one product; the heads lie one behind the other in H."""
        parts = (self.query, self.key, self.value)
        kernel = tf.concat([tf.cast(part.kernel, hidden.dtype) for part in parts], axis=1)  # [H,3H]
        bias = tf.concat([tf.convert_to_tensor(part.bias) for part in parts], axis=0)
        joined = bias_add(matmul(hidden, kernel), bias)
        shape = tf.shape(hidden)
        joined = tf.reshape(joined, [shape[0], shape[1], 3, self.config.num_attention_heads, self.config.head_size])
        return tf.unstack(tf.transpose(joined, [2, 0, 3, 1, 4]))


class FeedForward(Float32Layer):
    """The feed-forward network with its residual and LayerNorm (the "FFN" of paper table 4)."""

    def __init__(self, config: AlbertConfig, name: str = "feed_forward", **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.config = config
        self.intermediate = dense(config.intermediate_size, config.initializer_range, "intermediate")
        self.output_dense = dense(config.hidden_size, config.initializer_range, "output")
        self.layer_norm = LayerNorm(config.layer_norm_eps)

    def build(self, input_shape: Any = None) -> None:
        build_child(self.intermediate, None, self.config.hidden_size)
        build_child(self.output_dense, None, self.config.intermediate_size)
        build_child(self.layer_norm, None, self.config.hidden_size)
        self.built = True

    def call(self, hidden: tf.Tensor, seed: tf.Tensor | None = None) -> tf.Tensor:
        """[B,S,H] float32 to [B,S,H] float32; `seed` of the dropout on the output."""
        inner = matmul(tf.cast(hidden, self.product_dtype), self.intermediate.kernel)  # [B,S,intermediate_size]
        inner = activate(inner, self.intermediate.bias, self.config.hidden_act)
        output = matmul(inner, self.output_dense.kernel)
        return add_and_norm(
            self.layer_norm, hidden, output, self.output_dense.bias, self.config.hidden_dropout_prob, seed
        )


class TransformerBlock(Float32Layer):
    """One post-LN block: an attention part and a feed-forward part, either of which other blocks may use too."""

    def __init__(self, attention: SelfAttention, feed_forward: FeedForward, name: str = "block", **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.attention = attention
        self.feed_forward = feed_forward

    def build(self, input_shape: Any = None) -> None:
        build_child(self.attention)
        build_child(self.feed_forward)
        self.built = True

    @property
    def layers(self) -> list[tf.keras.layers.Layer]:
        """The two parts, for Keras' summary."""
        return [self.attention, self.feed_forward]

    def call(self, hidden: tf.Tensor, bias: tf.Tensor, seeds: tuple = (None, None, None)) -> tf.Tensor:
        """[B,S,H] float32 to the same; `bias` as for `SelfAttention`, `seeds` of the three dropouts."""
        hidden = self.attention(hidden, bias, seeds=seeds[:2])
        return self.feed_forward(hidden, seed=seeds[2])


class AlbertEncoder(Float32Layer):
    """L layers of `inner_group_num` blocks each, with the parameters shared by `AlbertConfig.layer_parts`.

    Attributes:
        attention_parts, feed_forward_parts: "group_G/inner_group_I", as in released names, to the layer that holds
            the parameters; a part that is not shared has its layer's number for G.
        blocks: the distinct blocks, in the order of their first use.
    """

    def __init__(self, config: AlbertConfig, name: str = "encoder", **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.config = config
        self.attention_parts: dict[str, SelfAttention] = {}
        self.feed_forward_parts: dict[str, FeedForward] = {}
        self.blocks: list[TransformerBlock] = []
        self._block_of_call: list[int] = []
        block_of_parts: dict[tuple[int, int, int], int] = {}
        for attention_index, ffn_index in config.layer_parts():
            for inner in range(config.inner_group_num):
                key = (attention_index, ffn_index, inner)
                if key not in block_of_parts:
                    block_of_parts[key] = len(self.blocks)
                    self.blocks.append(self._new_block(*key))
                self._block_of_call.append(block_of_parts[key])
        for block in self.blocks:  # tf.train.Checkpoint does not look into the lists of Keras 3
            setattr(self, block.name, block)

    @property
    def layers(self) -> list[tf.keras.layers.Layer]:
        """The distinct blocks, for Keras' summary: one that all layers share is there once."""
        return list(self.blocks)

    def _new_block(self, attention_index: int, ffn_index: int, inner: int) -> TransformerBlock:
        attention_key = f"group_{attention_index}/inner_group_{inner}"
        if attention_key not in self.attention_parts:
            self.attention_parts[attention_key] = SelfAttention(
                self.config, name=f"attention_{attention_index}_{inner}"
            )
        ffn_key = f"group_{ffn_index}/inner_group_{inner}"
        if ffn_key not in self.feed_forward_parts:
            self.feed_forward_parts[ffn_key] = FeedForward(self.config, name=f"feed_forward_{ffn_index}_{inner}")
        return TransformerBlock(
            self.attention_parts[attention_key], self.feed_forward_parts[ffn_key], name=f"block_{len(self.blocks)}"
        )

    def build(self, input_shape: Any = None) -> None:
        for block in self.blocks:
            build_child(block)
        self.built = True

    def call(
        self, hidden: tf.Tensor, bias: tf.Tensor, dropout_seed: tf.Tensor | None = None
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Runs all layers.

        Args:
            hidden: [B,S,H].
            bias: [B,1,1,S] or [B,1,S,S] float32, see `attention_bias`.
            dropout_seed: int32 [2], or None for no dropout.

        Returns:
            [B,S,H] float32, the last output; and the outputs of all L * inner_group_num blocks, in order.
        """
        hidden_rate = self.config.hidden_dropout_prob
        rates = (self.config.attention_probs_dropout_prob, hidden_rate, hidden_rate)  # in the order of a block's seeds
        seeds = dropout_seeds(dropout_seed, DROPOUTS_PER_BLOCK * len(self._block_of_call))
        hidden = tf.cast(hidden, tf.float32)
        outputs = []
        for call_index, block_index in enumerate(self._block_of_call):
            first = DROPOUTS_PER_BLOCK * call_index
            own = seeds[first : first + DROPOUTS_PER_BLOCK]
            block_seeds = tuple(seed if rate else None for seed, rate in zip(own, rates))
            hidden = self.blocks[block_index](hidden, bias, seeds=block_seeds)
            outputs.append(hidden)
        return hidden, outputs
