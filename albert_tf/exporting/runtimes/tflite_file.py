"""A model as a TensorFlow Lite file, and such a file as a function.

It takes any number of rows and any length; what they are is told before a run, and costs a new plan of the memory
whenever it changes. Text cannot be an input: TensorFlow Text's operations are none of TensorFlow Lite's, and only a
runtime that somebody built with them runs them.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf import files, stack
from albert_tf.exporting.runtimes import ids_outputs
from albert_tf.exporting.runtimes.onnx_graph import FLOAT32, INT8
from albert_tf.exporting.runtimes.tflite_model import TfliteModel
from albert_tf.pretrained_model import PretrainedModel

FILE = "model.tflite"
WEIGHTS = (FLOAT32, INT8)
_SIGNATURE = "ids"


def write(path: str, model: PretrainedModel, weights: str = FLOAT32) -> None:
    """Writes the file, with one signature, `ids`; its inputs and outputs are those of `ids_outputs`.

    Args:
        path: where.
        model: with any head.
        weights: one of `WEIGHTS`; int8 is what TensorFlow Lite calls dynamic range: the other factor of a product is
            rounded while it runs.
    """
    function = ids_outputs.keras_function(TfliteModel(model)).get_concrete_function()
    module = tf.Module()
    module.variables_of_the_model = [stack.native_variable(value) for value in model.named_variables().values()]
    with tempfile.TemporaryDirectory() as directory:
        tf.saved_model.save(module, directory, signatures={_SIGNATURE: function})
        converter = tf.lite.TFLiteConverter.from_saved_model(directory, signature_keys=[_SIGNATURE])
        if weights == INT8:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        content = converter.convert()
    with files.atomic_write(path) as file:
        file.write(content)


class TfliteFunction:
    """A file, run on the CPU: by ai-edge-litert where it is installed, else by the interpreter inside TensorFlow.

    Args:
        path: of the file.
        threads: of one call; 0 for the runtime's own choice.
    """

    def __init__(self, path: str, threads: int = 0):
        self._interpreter = _interpreter()(model_path=path, num_threads=threads or None)
        self._runner = self._interpreter.get_signature_runner(_SIGNATURE)

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """`input_ids`, `input_mask` and `segment_ids` [B,S] int32 to the outputs by name."""
        return {name: np.array(value) for name, value in self._runner(**inputs).items()}


def _interpreter() -> Any:
    if importlib.util.find_spec("ai_edge_litert") is None:
        return tf.lite.Interpreter
    from ai_edge_litert.interpreter import Interpreter

    return Interpreter
