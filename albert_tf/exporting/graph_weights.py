"""Arrays inside a SavedModel, written once however many of its functions read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

LARGEST = 2**27  # bytes that may be constants; a process takes some forty times as many while it loads them


class GraphWeights:
    """Arrays as constants of the graph or as variables that are not trained.

    oneDNN keeps the layout of a constant kernel that it has made for its first product; that of a variable is made anew
    each time. In bfloat16 that is half the time of a short sequence, in float32 it is worth nothing. But TensorFlow
    copies constants with each step of loading a graph: ALBERT base takes 0.6 GB more and a second longer, xlarge 4 GB
    and 20 s. Vectors are constants always: what optimises the graph does not know the shape of a variable, and needs it
    to make one operation of a LayerNorm.

    Args:
        parts: name to nested dicts of arrays.
        constant: whether kernels are to be constants; where all is more than `LARGEST` they become variables all the
            same, with a warning.

    Attributes:
        variables: which the owner of the functions has to keep; empty where the kernels are constants.
    """

    def __init__(self, parts: Mapping[str, Any], constant: bool):
        self.variables: list[tf.Variable] = []
        size = sum(array.nbytes for array in tf.nest.flatten(parts))
        if constant and size > LARGEST:
            logging.warning(
                "the encoder's weights, %d MB, are more than the %d MB that are saved as constants, which would take "
                "many times their size in memory and minutes to load: they are variables, and short texts take up to "
                "twice as long",
                size // 2**20,
                LARGEST // 2**20,
            )
        is_constant = constant and size <= LARGEST
        self._readers = {
            name: _constants(arrays) if is_constant else self._variables(arrays) for name, arrays in parts.items()
        }

    def __call__(self, name: str) -> Any:
        """The arrays of a part as tensors, nested as they were given; call it inside a graph."""
        return self._readers[name]()

    def _variables(self, arrays: Any) -> Callable[[], Any]:
        kept = tf.nest.map_structure(
            lambda array: array if array.ndim == 1 else tf.Variable(array, trainable=False), arrays
        )
        self.variables += [kernel for kernel in tf.nest.flatten(kept) if isinstance(kernel, tf.Variable)]
        return lambda: tf.nest.map_structure(tf.convert_to_tensor, kept)


def _constants(arrays: Any) -> Callable[[], Any]:
    return tf.function(lambda: tf.nest.map_structure(tf.constant, arrays), autograph=False)


def in_precision(array: np.ndarray, precision: str) -> np.ndarray:
    """Rounded to "float32", "bfloat16" or "float16"."""
    return array.astype(tf.as_dtype(precision).as_numpy_dtype)
