"""Arrays inside a SavedModel, written once however many of its functions read them."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

LARGEST = 2**30  # bytes; a SavedModel's graph is one message of at most 2 GB, with everything else that is in it


class Constants:
    """Arrays as constants of the graph, which the runtime lays out for its products once and for all.

    Where they are too large for a graph they are variables instead, which are not trained.

    Args:
        arrays: nested dicts of arrays; more than `LARGEST` become variables, with a warning.

    Attributes:
        variables: empty where the arrays are constants; else the owner of the functions has to keep them.
    """

    def __init__(self, arrays: Any):
        self.variables: list[tf.Variable] = []
        size = sum(array.nbytes for array in tf.nest.flatten(arrays))
        if size <= LARGEST:
            self._read = tf.function(lambda: tf.nest.map_structure(tf.constant, arrays), autograph=False)
            return
        logging.warning(
            "the encoder's weights, %d MB, are more than the %d MB of constants that fit into a SavedModel's graph: "
            "they are saved as variables, and answers take longer",
            size // 2**20,
            LARGEST // 2**20,
        )
        kept = tf.nest.map_structure(lambda array: tf.Variable(array, trainable=False), arrays)
        self.variables = tf.nest.flatten(kept)
        self._read = lambda: tf.nest.map_structure(tf.convert_to_tensor, kept)

    def __call__(self) -> Any:
        """The arrays as tensors, nested as they were given; call it inside a graph."""
        return self._read()


def in_precision(array: np.ndarray, precision: str) -> np.ndarray:
    """Rounded to "float32", "bfloat16" or "float16"."""
    return array.astype(tf.as_dtype(precision).as_numpy_dtype)
