"""A model as OpenVINO's files (model.xml, model.bin), and such files as a function.

They are made of the ONNX graph. OpenVINO Model Server loads BASE/1/model.xml, the layout in which they are written.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from albert_tf import packing
from albert_tf.exporting.runtimes import onnx_file
from albert_tf.exporting.runtimes.onnx_encoder import IDS
from albert_tf.exporting.runtimes.onnx_graph import FLOAT32, INT8, STORED_AS_INT8
from albert_tf.exporting.runtimes.packages import require
from albert_tf.pretrained_model import PretrainedModel

FILE = "model.xml"
FLOAT16 = "float16"
WEIGHTS = (FLOAT32, FLOAT16, INT8)
# How many values of a product's other factor have one scale when the runtime makes int8 of them.
GROUP = 128
_EXTRA = "openvino"


def write(path: str, model: PretrainedModel, weights: str = FLOAT32, *, packed: bool = False) -> None:
    """Writes the file and the one with the weights; inputs and outputs are those of `ids_outputs`, of any size.

    Args:
        path: of the XML file.
        model: with any head.
        weights: how they are stored, one of `WEIGHTS`; what is computed in, the runtime is told when it loads them.
        packed: see `onnx_file.write`.

    Raises:
        InputError: a package is missing, or the model is too large for ONNX.
    """
    require("onnx", _EXTRA)
    require("openvino", _EXTRA)
    import openvino

    graph = onnx_file.onnx_model(model, STORED_AS_INT8 if weights == INT8 else FLOAT32, packed)
    made = openvino.convert_model(io.BytesIO(graph.SerializeToString()))
    for node in made.get_ordered_ops():  # names inside would become further names of the outputs
        if node.get_type_name() != "Parameter":
            for port in node.outputs():
                port.get_tensor().set_names(set())
    for port, output in zip(made.outputs, graph.graph.output):
        port.get_tensor().set_names({output.name})
    if weights == INT8:
        made.set_rt_info(str(GROUP), ["runtime_options", "DYNAMIC_QUANTIZATION_GROUP_SIZE"])
    openvino.save_model(made, path, compress_to_fp16=weights == FLOAT16)


class OpenvinoFunction:
    """Such files, run on the CPU.

    Those for packed batches are compiled for each shape that comes, which is faster than once for any: there are few.

    Args:
        path: of the XML file.
        threads: of one call; 0 for as many as there are cores.
        precision: of the products: "f32", or "bf16" where the processor has it.

    Attributes:
        is_packed: whether rows hold several texts.

    Raises:
        InputError: the package openvino is missing.
    """

    def __init__(self, path: str, threads: int = 0, precision: str = "f32"):
        require("openvino", _EXTRA)
        import openvino

        self._settings: dict[str, Any] = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": precision}
        if threads:
            self._settings["INFERENCE_NUM_THREADS"] = threads
        self._core = openvino.Core()
        self._model = self._core.read_model(path)
        self.is_packed = any(packing.TEXTS in port.get_names() for port in self._model.inputs)
        self._requests: dict[tuple[int, ...], Any] = {}
        if not self.is_packed:
            self._requests[()] = self._compile()

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The inputs of the file, int32, to the outputs by name."""
        shape = inputs[IDS].shape if self.is_packed else ()
        if shape not in self._requests:
            self._model.reshape({name: list(array.shape) for name, array in inputs.items()})
            self._requests[shape] = self._compile()
        request = self._requests[shape]
        found = request.infer(dict(inputs))
        return {port.get_any_name(): np.array(found[port]) for port in request.model_outputs}

    def _compile(self) -> Any:
        return self._core.compile_model(self._model, "CPU", self._settings).create_infer_request()
