"""Arrays inside a SavedModel, written once however many of its functions read them."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

LARGEST = 2**30  # bytes; a SavedModel's graph is one message of at most 2 GB, with everything else that is in it


class GraphWeights:
    """Arrays as constants of the graph or as variables that are not trained.

    oneDNN lays out a constant kernel anew for every product that reads it and keeps that, and what optimises the graph
    takes room for constants in every layer: a process with ALBERT base grows by 1.2 GB. In bfloat16 that is worth a
    quarter of the time of a short sequence; in float32 it is worth nothing. Vectors are constants always: what
    optimises the graph does not know the shape of a variable, and needs it to make one operation of a LayerNorm.

    Args:
        arrays: nested dicts of arrays.
        constant: whether kernels are to be constants; where all is more than `LARGEST` they become variables all the
            same, with a warning.

    Attributes:
        variables: which the owner of the functions has to keep; empty where the kernels are constants.
    """

    def __init__(self, arrays: Any, constant: bool):
        self.variables: list[tf.Variable] = []
        size = sum(array.nbytes for array in tf.nest.flatten(arrays))
        if constant and size <= LARGEST:
            self._read = tf.function(lambda: tf.nest.map_structure(tf.constant, arrays), autograph=False)
            return
        if constant:
            logging.warning(
                "the encoder's weights, %d MB, are more than the %d MB of constants that fit into a SavedModel: "
                "they are saved as variables, and answers take longer",
                size // 2**20,
                LARGEST // 2**20,
            )
        kept = tf.nest.map_structure(
            lambda array: array if array.ndim == 1 else tf.Variable(array, trainable=False), arrays
        )
        self.variables = [kernel for kernel in tf.nest.flatten(kept) if isinstance(kernel, tf.Variable)]
        self._read = lambda: tf.nest.map_structure(tf.convert_to_tensor, kept)

    def __call__(self) -> Any:
        """The arrays as tensors, nested as they were given; call it inside a graph."""
        return self._read()


def in_precision(array: np.ndarray, precision: str) -> np.ndarray:
    """Rounded to "float32", "bfloat16" or "float16"."""
    return array.astype(tf.as_dtype(precision).as_numpy_dtype)
