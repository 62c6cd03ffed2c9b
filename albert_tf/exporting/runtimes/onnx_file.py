"""A model as an ONNX file, and such a file as a function.

The graph is written from the weights, in operations of ONNX alone: any runtime with its operation set 20 reads it, and
ONNX Runtime makes its own fused ones of them while loading. A part that layers share is in the file once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from albert_tf import files, packing
from albert_tf.exporting.runtimes import ids_outputs
from albert_tf.exporting.runtimes.onnx_encoder import Network
from albert_tf.exporting.runtimes.onnx_graph import FLOAT32, INT8, Graph
from albert_tf.exporting.runtimes.onnx_heads import Head
from albert_tf.exporting.runtimes.onnx_packed_encoder import PackedNetwork
from albert_tf.exporting.runtimes.packages import require
from albert_tf.pretrained_model import PretrainedModel

FILE = "model.onnx"
WEIGHTS = (FLOAT32, INT8)


def write(path: str, model: PretrainedModel, weights: str = FLOAT32, *, packed: bool = False) -> None:
    """Writes the file; inputs and outputs are those of `ids_outputs`, of any number of rows and any length.

    Args:
        path: where.
        model: with any head.
        weights: how large matrices are stored and multiplied, one of `WEIGHTS`.
        packed: rows hold several texts, as `albert_tf.packing` makes them.

    Raises:
        InputError: the package onnx is missing, or the model is too large for it.
    """
    require("onnx", "onnx")
    with files.atomic_write(path) as file:
        file.write(onnx_model(model, weights, packed).SerializeToString())


def onnx_model(model: PretrainedModel, weights: str = FLOAT32, packed: bool = False) -> Any:
    """See `write`; as an `onnx.ModelProto`."""
    graph = Graph(weights)
    values = {name: np.asarray(variable, np.float32) for name, variable in model.named_variables().items()}
    network = (PackedNetwork if packed else Network)(graph, model.config, values)
    search = getattr(model, "answerable_span", None)
    made = Head(network, model.head, (search.start_n_top, search.end_n_top) if search else (0, 0)).outputs()
    outputs = {}
    for name, spec in ids_outputs.output_specs(model, packed).items():
        shape = [size or network.output_sizes[axis] for axis, size in enumerate(spec.shape)]
        outputs[name] = (made[name], spec.dtype.name, shape)
    return graph.model(network.inputs, outputs)


class OnnxFunction:
    """A file, run by ONNX Runtime on the CPU.

    Args:
        path: of the file.
        threads: of one call; 0 for as many as there are cores.

    Attributes:
        is_packed: whether rows hold several texts.

    Raises:
        InputError: the package onnxruntime is missing.
    """

    def __init__(self, path: str, threads: int = 0):
        require("onnxruntime", "onnx")
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self._names = [output.name for output in self._session.get_outputs()]
        self.is_packed = any(given.name == packing.TEXTS for given in self._session.get_inputs())

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The inputs of the file, int32, to the outputs by name."""
        return dict(zip(self._names, self._session.run(None, dict(inputs))))
