"""The sizes of a model as far as the shapes of its weights tell them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from albert_tf import weight_names
from albert_tf.errors import InputError

_INTERMEDIATE = "bert/encoder/transformer/group_0/inner_group_0/ffn_1/intermediate/dense/kernel"


def sizes_from_weights(weights: Mapping[str, np.ndarray], path: str) -> dict[str, Any]:
    """Keys of `AlbertConfig` from weights under released names: all sizes but the numbers of layers and of heads.

    Args:
        weights: released name to array.
        path: for the message.

    Raises:
        InputError: a variable of the encoder that tells a size is missing, or has not two axes.
    """

    def shape(name: str) -> tuple[int, int]:
        if name not in weights or weights[name].ndim != 2:
            raise InputError(f"{path} has no {name} with two axes, so it holds no ALBERT encoder that is known here")
        return weights[name].shape[0], weights[name].shape[1]

    vocab_size, embedding_size = shape("bert/embeddings/word_embeddings")
    hidden_size, intermediate_size = shape(_INTERMEDIATE)
    blocks = [match for match in map(weight_names.BLOCK.fullmatch, weights) if match]
    has_projection = "bert/encoder/embedding_hidden_mapping_in/kernel" in weights
    return {
        "vocab_size": vocab_size,
        "embedding_size": embedding_size,
        "hidden_size": hidden_size,
        "intermediate_size": intermediate_size,
        "max_position_embeddings": shape("bert/embeddings/position_embeddings")[0],
        "type_vocab_size": shape("bert/embeddings/token_type_embeddings")[0],
        "num_hidden_groups": len({match[2] for match in blocks}),
        "inner_group_num": len({match[4] for match in blocks}),
        **({"embedding_projection": True} if has_projection and embedding_size == hidden_size else {}),
    }
