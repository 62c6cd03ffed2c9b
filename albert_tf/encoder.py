"""The encoder: self-attention, feed-forward, and one TransformerBlock used again by every layer that shares it."""

from __future__ import annotations

import math

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.layers import ACTIVATIONS, LayerNorm, build_child, dense, dropout, dropout_seeds

MASK_BIAS = -10000.0  # as released; added to float32 scores, so it is safe in every precision
DROPOUTS_PER_BLOCK = 3


def attention_bias(input_mask: tf.Tensor) -> tf.Tensor:
    """What is added to the attention scores: 0 at pieces, -10000 at padding; [B,S] to [B,1,1,S] float32."""
    return (1.0 - tf.cast(input_mask, tf.float32))[:, tf.newaxis, tf.newaxis, :] * MASK_BIAS


class SelfAttention(tf.keras.layers.Layer):
    """Multi-head self-attention with its output dense, residual and LayerNorm (the "attention" of paper table 4)."""

    def __init__(self, config: AlbertConfig, name: str = "attention", **kwargs):
        super().__init__(name=name, autocast=False, **kwargs)
        self.config = config
        width, spread = config.hidden_size, config.initializer_range
        self.query = dense(width, spread, "query")
        self.key = dense(width, spread, "key")
        self.value = dense(width, spread, "value")
        self.output_dense = dense(width, spread, "output")
        self.layer_norm = LayerNorm()

    def build(self, input_shape=None) -> None:
        for child in (self.query, self.key, self.value, self.output_dense, self.layer_norm):
            build_child(child, None, self.config.hidden_size)
        self.built = True

    def call(self, hidden: tf.Tensor, bias: tf.Tensor, seeds: tuple = (None, None)) -> tf.Tensor:
        """Attends and adds.

        Args:
            hidden: [B,S,H] float32.
            bias: [B,1,1,S] or [B,1,S,S] float32, added to the scaled scores.
            seeds: of the dropout on the probabilities and of the one on the output.

        Returns:
            [B,S,H] float32.
        """
        narrow = tf.cast(hidden, self.compute_dtype)
        query = self._split_heads(self.query(narrow))
        key = self._split_heads(self.key(narrow))
        value = self._split_heads(self.value(narrow))
        scores = tf.cast(tf.matmul(query, key, transpose_b=True), tf.float32)  # [B,N,S,S]
        probabilities = tf.nn.softmax(scores * (1.0 / math.sqrt(self.config.head_size)) + bias)
        probabilities = dropout(probabilities, self.config.attention_probs_dropout_prob, seeds[0])
        context = tf.matmul(tf.cast(probabilities, value.dtype), value)  # [B,N,S,D]
        output = self.output_dense(self._join_heads(context))
        output = dropout(output, self.config.hidden_dropout_prob, seeds[1])
        return self.layer_norm(hidden + tf.cast(output, tf.float32))

    def _split_heads(self, x: tf.Tensor) -> tf.Tensor:
        """[B,S,H] to [B,N,S,D]; the heads lie one behind the other in H."""
        shape = tf.shape(x)
        x = tf.reshape(x, [shape[0], shape[1], self.config.num_attention_heads, self.config.head_size])
        return tf.transpose(x, [0, 2, 1, 3])

    def _join_heads(self, x: tf.Tensor) -> tf.Tensor:
        """[B,N,S,D] to [B,S,H]."""
        shape = tf.shape(x)
        return tf.reshape(tf.transpose(x, [0, 2, 1, 3]), [shape[0], shape[2], self.config.hidden_size])


class FeedForward(tf.keras.layers.Layer):
    """The feed-forward network with its residual and LayerNorm (the "FFN" of paper table 4)."""

    def __init__(self, config: AlbertConfig, name: str = "feed_forward", **kwargs):
        super().__init__(name=name, autocast=False, **kwargs)
        self.config = config
        self.intermediate = dense(config.intermediate_size, config.initializer_range, "intermediate")
        self.output_dense = dense(config.hidden_size, config.initializer_range, "output")
        self.activation = ACTIVATIONS[config.hidden_act]
        self.layer_norm = LayerNorm()

    def build(self, input_shape=None) -> None:
        build_child(self.intermediate, None, self.config.hidden_size)
        build_child(self.output_dense, None, self.config.intermediate_size)
        build_child(self.layer_norm, None, self.config.hidden_size)
        self.built = True

    def call(self, hidden: tf.Tensor, seed: tf.Tensor | None = None) -> tf.Tensor:
        """[B,S,H] float32 to [B,S,H] float32; `seed` of the dropout on the output."""
        inner = self.activation(self.intermediate(tf.cast(hidden, self.compute_dtype)))  # [B,S,intermediate_size]
        output = dropout(self.output_dense(inner), self.config.hidden_dropout_prob, seed)
        return self.layer_norm(hidden + tf.cast(output, tf.float32))


class TransformerBlock(tf.keras.layers.Layer):
    """One post-LN block: an attention part and a feed-forward part, either of which other blocks may use too."""

    def __init__(self, attention: SelfAttention, feed_forward: FeedForward, name: str = "block", **kwargs):
        super().__init__(name=name, autocast=False, **kwargs)
        self.attention = attention
        self.feed_forward = feed_forward

    def build(self, input_shape=None) -> None:
        build_child(self.attention)
        build_child(self.feed_forward)
        self.built = True

    def call(self, hidden: tf.Tensor, bias: tf.Tensor, seeds: tuple = (None, None, None)) -> tf.Tensor:
        """[B,S,H] float32 to [B,S,H] float32; `bias` as for `SelfAttention`; `seeds` of the three dropouts."""
        hidden = self.attention(hidden, bias, seeds=seeds[:2])
        return self.feed_forward(hidden, seed=seeds[2])


class AlbertEncoder(tf.keras.layers.Layer):
    """L layers of `inner_group_num` blocks each, with the parameters shared by `AlbertConfig.layer_parts`.

    Attributes:
        attention_parts, feed_forward_parts: "group_G/inner_group_I", as in released names, to the layer that holds
            the parameters; a part that is not shared has its layer's number for G.
        blocks: the distinct blocks, in the order of their first use.
    """

    def __init__(self, config: AlbertConfig, name: str = "encoder", **kwargs):
        super().__init__(name=name, autocast=False, **kwargs)
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

    def build(self, input_shape=None) -> None:
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
        seeds = dropout_seeds(dropout_seed, DROPOUTS_PER_BLOCK * len(self._block_of_call))
        hidden = tf.cast(hidden, tf.float32)
        outputs = []
        for call_index, block_index in enumerate(self._block_of_call):
            first = DROPOUTS_PER_BLOCK * call_index
            hidden = self.blocks[block_index](hidden, bias, seeds=tuple(seeds[first : first + DROPOUTS_PER_BLOCK]))
            outputs.append(hidden)
        return hidden, outputs
