"""Checkpoints for tests: small models with a value of its own in every place, and files as TensorFlow 1 wrote them."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf import weight_names
from albert_tf.config import AlbertConfig
from albert_tf.head_config import HeadConfig

SIZES = {
    "vocab_size": 320,  # the toy vocabularies have 200 and 300 pieces
    "hidden_size": 24,
    "num_hidden_layers": 4,
    "num_attention_heads": 3,
    "intermediate_size": 48,
    "embedding_size": 8,
    "max_position_embeddings": 16,
}


def small_config(**changes: object) -> AlbertConfig:
    return AlbertConfig.from_dict({**SIZES, **changes})


def random_weights(config: AlbertConfig, head: HeadConfig | None = None, seed: int = 1) -> dict[str, np.ndarray]:
    """A value for every variable of a model, by released name; norms are around 1, nothing is 0."""
    random = np.random.default_rng(seed)
    return {
        name: random.normal(1.0 if name.endswith("gamma") else 0.0, 0.2, shape).astype(np.float32)
        for name, shape in weight_names.variable_shapes(config, head).items()
    }


def assign(model: Any, weights: Mapping[str, np.ndarray]) -> None:
    """Gives every variable of a model its array."""
    for name, variable in model.named_variables().items():
        variable.assign(weights[name])


def write_tf1(prefix: str | os.PathLike[str], arrays: Mapping[str, np.ndarray]) -> str:
    """Writes a name-based checkpoint; returns its prefix."""
    pathlib.Path(prefix).parent.mkdir(parents=True, exist_ok=True)
    names = list(arrays)
    tf.raw_ops.SaveV2(
        prefix=str(prefix), tensor_names=names, shape_and_slices=[""] * len(names), tensors=[arrays[n] for n in names]
    )
    return str(prefix)


def encoder_inputs(config: AlbertConfig, batch: int = 3, length: int = 12) -> dict[str, np.ndarray]:
    """Random pieces with ragged masks, [batch, length]."""
    random = np.random.default_rng(0)
    lengths = random.integers(4, length + 1, batch)
    return {
        "input_ids": random.integers(0, config.vocab_size, (batch, length), dtype=np.int32),
        "input_mask": (np.arange(length) < lengths[:, None]).astype(np.int32),
        "segment_ids": random.integers(0, config.type_vocab_size, (batch, length), dtype=np.int32),
    }


def some_inputs(config: AlbertConfig, batch: int = 3, length: int = 12) -> dict[str, np.ndarray]:
    """The inputs of an encoder, and two positions to predict in each row."""
    positions = np.random.default_rng(1).integers(0, length, (batch, 2), dtype=np.int32)
    return {**encoder_inputs(config, batch, length), "masked_lm_positions": positions}
