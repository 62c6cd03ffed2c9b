"""The forward pass of ALBERT in NumPy, float64, written from the definition; the tests hold the model against it."""

from __future__ import annotations

import math

import numpy as np

from albert_tf.config import AlbertConfig


def layer_norm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-12) * gamma + beta


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def forward(config: AlbertConfig, weights: dict[str, np.ndarray], inputs: dict[str, np.ndarray]) -> dict:
    """All outputs of a pre-training model with gelu and no dropout; `weights` under released names."""
    w = {name: np.asarray(value, np.float64) for name, value in weights.items()}

    def dense(x, prefix):
        return x @ w[f"{prefix}/kernel"] + w[f"{prefix}/bias"]

    def norm(x, prefix):
        return layer_norm(x, w[f"{prefix}/gamma"], w[f"{prefix}/beta"])

    batch, length = inputs["input_ids"].shape
    x = w["bert/embeddings/word_embeddings"][inputs["input_ids"]]
    x = x + w["bert/embeddings/token_type_embeddings"][inputs["segment_ids"]]
    x = x + w["bert/embeddings/position_embeddings"][:length]
    out = {"embedding_output": norm(x, "bert/embeddings/LayerNorm")}
    x = out["embedding_output"]
    if config.embedding_size != config.hidden_size:
        x = dense(x, "bert/encoder/embedding_hidden_mapping_in")
    out["projected_embedding"] = x
    heads, size = config.num_attention_heads, config.hidden_size // config.num_attention_heads
    bias = (1 - inputs["input_mask"][:, None, None, :]) * -10000.0
    out["all_layer_outputs"] = []
    for layer in range(config.num_hidden_layers):
        group = int(layer / config.num_hidden_layers * config.num_hidden_groups)
        attention_index = group if config.parameter_sharing in ("all", "attention") else layer
        ffn_index = group if config.parameter_sharing in ("all", "ffn") else layer
        for inner in range(config.inner_group_num):
            block = f"bert/encoder/transformer/group_{attention_index}/inner_group_{inner}"
            split = {
                part: dense(x, f"{block}/attention_1/self/{part}").reshape(batch, length, heads, size)
                for part in ("query", "key", "value")
            }
            scores = np.einsum("bind,bjnd->bnij", split["query"], split["key"]) / math.sqrt(size) + bias
            context = np.einsum("bnij,bjnd->bind", softmax(scores), split["value"]).reshape(batch, length, -1)
            x = norm(x + dense(context, f"{block}/attention_1/output/dense"), f"{block}/LayerNorm")
            block = f"bert/encoder/transformer/group_{ffn_index}/inner_group_{inner}"
            inner_activation = gelu_tanh(dense(x, f"{block}/ffn_1/intermediate/dense"))
            x = norm(x + dense(inner_activation, f"{block}/ffn_1/intermediate/output/dense"), f"{block}/LayerNorm_1")
            out["all_layer_outputs"].append(x)
    out["sequence_output"] = x
    out["pooled_output"] = np.tanh(dense(x[:, 0], "bert/pooler/dense"))
    predicted = np.stack([row[positions] for row, positions in zip(x, inputs["masked_lm_positions"])])
    predicted = norm(
        gelu_tanh(dense(predicted, "cls/predictions/transform/dense")), "cls/predictions/transform/LayerNorm"
    )
    table = w["bert/embeddings/word_embeddings"]
    out["masked_lm_logits"] = predicted @ table.T + w["cls/predictions/output_bias"]
    head = w["cls/seq_relationship/output_weights"]
    out["sentence_order_logits"] = out["pooled_output"] @ head.T + w["cls/seq_relationship/output_bias"]
    return out
