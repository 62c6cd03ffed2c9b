"""Many rows through a model a few at a time, so that the windows of a long text take no more memory than a few do.

N rows, S their padded length.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from albert_tf.exporting import forward

ROWS = 32  # at a time


def head_outputs(model: Any, inputs: Mapping[str, tf.Tensor], rows: int = ROWS) -> Any:
    """`forward.head_outputs` of inputs [N,S], of which no more than `rows` are in the model at the same time."""
    specs = {name: tf.TensorSpec([None, None], value.dtype) for name, value in inputs.items()}
    of_block = tf.function(lambda block: forward.head_outputs(model, block), input_signature=[specs], autograph=False)
    made = of_block.get_concrete_function().structured_outputs  # of one tensor, or several by name
    count = tf.maximum(1, (tf.shape(inputs["input_ids"])[0] + rows - 1) // rows)

    def step(number: tf.Tensor, arrays: Any) -> tuple[tf.Tensor, Any]:
        block = {name: value[number * rows : (number + 1) * rows] for name, value in inputs.items()}
        return number + 1, tf.nest.map_structure(
            lambda array, value: array.write(number, value), arrays, of_block(block)
        )

    empty = tf.nest.map_structure(lambda spec: tf.TensorArray(spec.dtype, size=count, infer_shape=False), made)
    _, arrays = tf.while_loop(lambda number, _: number < count, step, (0, empty), parallel_iterations=1)
    return tf.nest.map_structure(lambda array, spec: tf.ensure_shape(array.concat(), spec.shape), arrays, made)
