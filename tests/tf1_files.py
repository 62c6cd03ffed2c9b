"""A TF1 graph for tests, with the scopes of the released code."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from albert_tf.config import AlbertConfig

SMALL = AlbertConfig(
    vocab_size=40,
    hidden_size=12,
    num_hidden_layers=4,
    num_attention_heads=3,
    intermediate_size=20,
    embedding_size=6,
    max_position_embeddings=16,
    num_hidden_groups=2,
)


def build_graph(
    config: AlbertConfig,
    input_ids: tf.Tensor,
    input_mask: tf.Tensor,
    segment_ids: tf.Tensor,
    splits_kernels: bool = True,
) -> tuple[tf.Tensor, tf.Tensor]:
    """The released encoder as a TF1 graph: its scopes, variables, reshapes; returns sequence and pooled output.

    Args:
        config: the sizes.
        input_ids, input_mask, segment_ids: [B,S] int32.
        splits_kernels: whether heads are split in the kernels, as in later releases, or in what they give, as in BERT.
    """
    v1 = tf.compat.v1

    def variable(name: str, *shape: int) -> tf.Tensor:
        return v1.get_variable(name, shape, tf.float32, v1.truncated_normal_initializer(stddev=0.3))

    def layer_norm(value: tf.Tensor, name: str = "LayerNorm") -> tf.Tensor:
        with v1.variable_scope(name):
            mean, variance = tf.nn.moments(value, [-1], keepdims=True)
            beta, gamma = variable("beta", value.shape[-1]), variable("gamma", value.shape[-1])
            return tf.nn.batch_normalization(value, mean, variance, beta, gamma, 1e-12)

    def dense(
        value: tf.Tensor, name: str, width: int, activation: Callable[[tf.Tensor], tf.Tensor] | None = None
    ) -> tf.Tensor:
        with v1.variable_scope(name):
            outcome = tf.einsum("...i,io->...o", value, variable("kernel", value.shape[-1], width))
            outcome += variable("bias", width)
            return activation(outcome) if activation else outcome

    def gelu(x: tf.Tensor) -> tf.Tensor:
        return x * 0.5 * (1.0 + tf.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * tf.pow(x, 3))))

    def heads_of(value: tf.Tensor, name: str) -> tf.Tensor:
        with v1.variable_scope(name):
            h, n, d = config.hidden_size, config.num_attention_heads, config.head_size
            if not splits_kernels:
                projected = tf.einsum("bfh,hg->bfg", value, variable("kernel", h, h)) + variable("bias", h)
                return tf.reshape(projected, [tf.shape(value)[0], tf.shape(value)[1], n, d])
            kernel = tf.reshape(variable("kernel", h, h), [h, n, d])
            return tf.einsum("bfh,hnd->bfnd", value, kernel) + tf.reshape(variable("bias", h), [n, d])

    def attention(value: tf.Tensor) -> tf.Tensor:
        with v1.variable_scope("attention_1"):
            with v1.variable_scope("self"):
                query, key, values = (heads_of(value, name) for name in ("query", "key", "value"))
                scores = tf.multiply(tf.einsum("bfnd,btnd->bnft", query, key), 1.0 / math.sqrt(config.head_size))
                bias = (1.0 - tf.cast(input_mask, tf.float32)[:, None, None, :]) * -10000.0
                context = tf.einsum("bnft,btnd->bfnd", tf.nn.softmax(scores + bias), values)
                context = tf.reshape(context, tf.shape(value))
                context.set_shape(value.shape)
            with v1.variable_scope("output"):
                return dense(context, "dense", config.hidden_size)

    def block(value: tf.Tensor) -> tf.Tensor:
        value = layer_norm(value + attention(value))
        with v1.variable_scope("ffn_1"), v1.variable_scope("intermediate"):
            inner = dense(value, "dense", config.intermediate_size, gelu)
            with v1.variable_scope("output"):
                inner = dense(inner, "dense", config.hidden_size)
        return layer_norm(value + inner, "LayerNorm_1")

    with v1.variable_scope("bert"):
        with v1.variable_scope("embeddings"):
            words = variable("word_embeddings", config.vocab_size, config.embedding_size)
            types = variable("token_type_embeddings", config.type_vocab_size, config.embedding_size)
            positions = variable("position_embeddings", config.max_position_embeddings, config.embedding_size)
            value = tf.gather(words, input_ids) + tf.gather(types, segment_ids)
            value = layer_norm(value + positions[: tf.shape(input_ids)[1]])
        with v1.variable_scope("encoder"):
            value = dense(value, "embedding_hidden_mapping_in", config.hidden_size)
            with v1.variable_scope("transformer", reuse=v1.AUTO_REUSE):
                for layer, (group, _) in enumerate(config.layer_parts()):
                    with v1.variable_scope(f"group_{group}"), v1.name_scope(f"layer_{layer}"):
                        for inner in range(config.inner_group_num):
                            with v1.variable_scope(f"inner_group_{inner}"):
                                value = block(value)
        with v1.variable_scope("pooler"):
            return value, dense(value[:, 0], "dense", config.hidden_size, tf.tanh)
