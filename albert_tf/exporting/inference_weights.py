"""The encoder's weights as the graph for inference reads them.

E embedding width, H hidden size, D size of a head, F width of the feed-forward network.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.encoder import FeedForward, SelfAttention
from albert_tf.exporting.graph_weights import in_precision
from albert_tf.exporting.joined_qkv import joined_qkv
from albert_tf.models import AlbertModel

EMBEDDINGS = "embeddings"
_ATTENTION, _FEED_FORWARD = "attention/{}", "feed_forward/{}"
SCORE_FACTOR = 0.5  # what the graph multiplies scores by; exact in every precision
Arrays = dict[str, np.ndarray]


def block_parts(config: AlbertConfig) -> list[tuple[str, str]]:
    """Of each block in order its attention's name and its feed-forward network's in `inference_weights`."""
    return [
        (
            _ATTENTION.format(f"group_{attention}/inner_group_{inner}"),
            _FEED_FORWARD.format(f"group_{ffn}/inner_group_{inner}"),
        )
        for attention, ffn, inner in config.blocks()
    ]


def inference_weights(albert: AlbertModel, precision: str) -> dict[str, dict[str, Arrays]]:
    """Arrays by part.

    Returns:
        Under `EMBEDDINGS` `norm` with `gamma` and `beta` [E], and `projection`, where there is one, with `kernel` [E,H]
        and `bias` [H]. Under the names of `block_parts`, for attention `qkv` with `kernel` [H,3H], of which the query's
        columns hold 2 / sqrt(D) already, `output` and `norm`; for feed-forward networks `inner` [H,F], `output` and
        `norm`. Kernels and biases in the precision, what normalises in float32.
    """
    embeddings, encoder = albert.embeddings, albert.encoder
    weights = {EMBEDDINGS: {"norm": _norm(embeddings.layer_norm)}}
    if embeddings.projection is not None:
        weights[EMBEDDINGS]["projection"] = _dense(embeddings.projection, precision)
    for key, attention in encoder.attention_parts.items():
        weights[_ATTENTION.format(key)] = _attention(attention, precision)
    for key, feed_forward in encoder.feed_forward_parts.items():
        weights[_FEED_FORWARD.format(key)] = _feed_forward(feed_forward, precision)
    return weights


def _attention(part: SelfAttention, precision: str) -> dict[str, Arrays]:
    layers = (part.query, part.key, part.value)
    kernel, bias = joined_qkv(
        [_array(layer.kernel) for layer in layers],
        [_array(layer.bias) for layer in layers],
        1.0 / (SCORE_FACTOR * math.sqrt(part.config.head_size)),
    )
    return {
        "qkv": {"kernel": in_precision(kernel, precision), "bias": in_precision(bias, precision)},
        "output": _dense(part.output_dense, precision),
        "norm": _norm(part.layer_norm),
    }


def _feed_forward(part: FeedForward, precision: str) -> dict[str, Arrays]:
    return {
        "inner": _dense(part.intermediate, precision),
        "output": _dense(part.output_dense, precision),
        "norm": _norm(part.layer_norm),
    }


def _dense(layer: Any, precision: str) -> Arrays:
    return {name: in_precision(_array(getattr(layer, name)), precision) for name in ("kernel", "bias")}


def _norm(layer: Any) -> Arrays:
    return {name: _array(getattr(layer, name)) for name in ("gamma", "beta")}


def _array(variable: Any) -> np.ndarray:
    array: np.ndarray = variable.numpy()
    return array
