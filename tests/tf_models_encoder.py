"""An encoder with the variable names and shapes of tf-models' AlbertEncoder and BertEncoder, as a plain tf.Module."""

from __future__ import annotations

import math

import tensorflow as tf

SPECIFICATION = tf.TensorSpec([None, None], tf.int32)


def gelu(x):
    return 0.5 * x * (1.0 + tf.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def gelu_erf(x):
    return 0.5 * x * (1.0 + tf.math.erf(x / math.sqrt(2.0)))


ACTIVATIONS = {"gelu": gelu, "gelu_erf": gelu_erf, "relu": tf.nn.relu, "tanh": tf.tanh}


class Encoder(tf.Module):
    """Random weights from a fixed seed; `parameter_sharing` is "all" with one group, or "none"."""

    def __init__(self, config, masked_lm=False):
        super().__init__()
        self.config = config
        self.kept = []
        generator = tf.random.Generator.from_seed(7)
        e, h, i = config.embedding_size, config.hidden_size, config.intermediate_size
        n, d = config.num_attention_heads, config.head_size

        def add(name, *shape):
            self.kept.append(tf.Variable(generator.normal(shape, stddev=0.3), name=name))

        def norm(name, width):
            add(f"{name}/gamma", width)
            add(f"{name}/beta", width)

        add("word_embeddings/embeddings", config.vocab_size, e)
        add("position_embedding/embeddings", config.max_position_embeddings, e)
        add("type_embeddings/embeddings", config.type_vocab_size, e)
        norm("embeddings/layer_norm", e)
        if e != h:
            add("embedding_projection/kernel", e, h)
            add("embedding_projection/bias", h)
        for layer in self.layers():
            for part in ("query", "key", "value"):
                add(f"{layer}/self_attention/{part}/kernel", h, n, d)
                add(f"{layer}/self_attention/{part}/bias", n, d)
            add(f"{layer}/self_attention/attention_output/kernel", n, d, h)
            add(f"{layer}/self_attention/attention_output/bias", h)
            norm(f"{layer}/self_attention_layer_norm", h)
            add(f"{layer}/intermediate/kernel", h, i)
            add(f"{layer}/intermediate/bias", i)
            add(f"{layer}/output/kernel", i, h)
            add(f"{layer}/output/bias", h)
            norm(f"{layer}/output_layer_norm", h)
        add("pooler_transform/kernel", h, h)
        add("pooler_transform/bias", h)
        if masked_lm:
            add("bert/cls/predictions/transform/dense/kernel", h, e)
            add("bert/cls/predictions/transform/dense/bias", e)
            norm("bert/cls/predictions/transform/LayerNorm", e)
            add("bert/cls/predictions/output_bias/bias", config.vocab_size)

    def layers(self):
        """The scopes of the layers' variables, each once."""
        if self.config.parameter_sharing == "all":
            return ["transformer"]
        return [f"transformer/layer_{layer}" for layer in range(self.config.num_hidden_layers)]

    def variable(self, name):
        """The variable of that name."""
        return next(variable for variable in self.kept if variable.name == f"{name}:0")

    def norm(self, x, name):
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        beta, gamma = self.variable(f"{name}/beta"), self.variable(f"{name}/gamma")
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, self.config.layer_norm_eps)

    def dense(self, x, name, equation="bsi,io->bso"):
        return tf.einsum(equation, x, self.variable(f"{name}/kernel")) + self.variable(f"{name}/bias")

    @tf.function
    def block(self, x, bias, layer):
        """One layer; a function of its own, so that the module calls functions that call it."""
        query, key, value = (
            self.dense(x, f"{layer}/self_attention/{part}", "bsh,hnd->bsnd") for part in ("query", "key", "value")
        )
        scores = tf.einsum("bsnd,btnd->bnst", query, key) / math.sqrt(self.config.head_size) + bias
        context = tf.einsum("bnst,btnd->bsnd", tf.nn.softmax(scores), value)
        attention = self.dense(context, f"{layer}/self_attention/attention_output", "bsnd,ndh->bsh")
        x = self.norm(x + attention, f"{layer}/self_attention_layer_norm")
        with tf.name_scope("intermediate"):
            inner = ACTIVATIONS[self.config.hidden_act](self.dense(x, f"{layer}/intermediate"))
        return self.norm(x + self.dense(inner, f"{layer}/output"), f"{layer}/output_layer_norm")

    @tf.function(input_signature=[SPECIFICATION] * 3)
    def __call__(self, input_ids, input_mask, segment_ids):
        x = tf.gather(self.variable("word_embeddings/embeddings"), input_ids)
        x += tf.gather(self.variable("type_embeddings/embeddings"), segment_ids)
        x += self.variable("position_embedding/embeddings")[: tf.shape(input_ids)[1]]
        x = self.norm(x, "embeddings/layer_norm")
        if self.config.embedding_size != self.config.hidden_size:
            x = self.dense(x, "embedding_projection")
        bias = (1.0 - tf.cast(input_mask, tf.float32)[:, None, None, :]) * -1e9
        for layer in range(self.config.num_hidden_layers):
            x = self.block(x, bias, self.layers()[layer % len(self.layers())])
        pooled = tf.tanh(self.dense(x[:, :1], "pooler_transform"))[:, 0]
        return {"sequence_output": x, "pooled_output": pooled}
