"""What the graphs for other runtimes read of a model's blocks: the names of their parts, and joined matrices.

H hidden size, D size of a head.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.exporting.joined_qkv import joined_qkv

_BLOCK = "bert/encoder/transformer/group_{}/inner_group_{}"


def names(config: AlbertConfig) -> list[tuple[str, str]]:
    """Of each block in order, the scope of its attention part and of its feed-forward part."""
    return [
        (_BLOCK.format(attention, inner), _BLOCK.format(feed_forward, inner))
        for attention, feed_forward, inner in config.blocks()
    ]


def query_key_value(weights: Mapping[str, np.ndarray], scope: str, head_size: int) -> tuple[np.ndarray, np.ndarray]:
    """The kernel [H,3H] and the bias [3H] of queries, keys and values.

    Args:
        weights: released name to values.
        scope: of "query" and the others.
        head_size: D, by whose root scores are divided.
    """
    kernels, biases = (
        [weights[f"{scope}/{part}/{what}"] for part in ("query", "key", "value")] for what in ("kernel", "bias")
    )
    return joined_qkv(kernels, biases, 1.0 / math.sqrt(head_size))
