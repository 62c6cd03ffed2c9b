"""An ONNX graph while it is written: nodes, and constants that every node with the same name for one shares.

Only `Graph.model` needs the package onnx.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from albert_tf.errors import InputError

FLOAT32, INT8, STORED_AS_INT8 = "float32", "int8", "stored as int8"
OPSET = 20  # the first one with Gelu
IR_VERSION = 10  # of the same release
_LARGEST_INT8 = 127
_MOST_BESIDE_CONSTANTS = 1 << 24  # bytes: nodes and names


class Graph:
    """Nodes in order; values are known by their names.

    Args:
        weights: of the large matrices: FLOAT32, or INT8 with one scale for each column and values of the other factor
            rounded at run time, with one scale for all of them; STORED_AS_INT8 leaves that to the runtime.
    """

    def __init__(self, weights: str = FLOAT32):
        self._weights = weights
        self._nodes: list[tuple[str, list[str], list[str], dict[str, Any]]] = []
        self._constants: dict[str, np.ndarray] = {}
        self._quantized: dict[str, tuple[str, str, str]] = {}

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Adds a node; the name of its output, or a list of them where there are several."""
        names = [f"{kind}_{len(self._nodes)}_{number}" for number in range(outputs)]
        self._nodes.append((kind, list(inputs), names, attributes))
        return names[0] if outputs == 1 else list(names)

    def constant(self, name: str, value: Any, dtype: Any = np.float32) -> str:
        """A constant under this name; one that is there already is taken again."""
        if name not in self._constants:
            self._constants[name] = np.array(value, dtype, order="C")
        return name

    def integers(self, *values: int) -> str:
        """int64, of rank 1: shapes, axes and the like."""
        return self.constant("integers_" + "_".join(map(str, values)), values, np.int64)

    def scalar(self, value: float) -> str:
        """float32, of rank 0."""
        return self.constant(f"scalar_{value!r}", value)

    def product(
        self, x: str, name: str, kernel: np.ndarray, bias: np.ndarray | None = None, *, exact: bool = False
    ) -> str:
        """x @ kernel + bias, [...,in] to [...,out].

        Args:
            x: the first factor.
            name: of the constants.
            kernel, bias: their values.
            exact: float32 even in a graph with INT8.
        """
        if exact or self._weights == FLOAT32:
            product = self.op("MatMul", x, self.constant(f"{name}/kernel", kernel))
        else:
            scales = _scales(kernel, axis=0)[0]  # [out]
            integers = self.constant(f"{name}/int8", np.rint(kernel / scales), np.int8)
            product = self._int8_product(x, integers, self.constant(f"{name}/scales", scales))
        return product if bias is None else self.op("Add", product, self.constant(f"{name}/bias", bias))

    def tied_product(self, x: str, name: str, table: np.ndarray, bias: np.ndarray) -> str:
        """x @ table^T + bias, [...,E] to [...,N], with the table [N,E] that `rows` has under the same name."""
        if self._weights == FLOAT32:
            product = self.op("MatMul", x, self.op("Transpose", self.constant(name, table), perm=[1, 0]))
        else:
            integers, scales = self._int8_table(name, table)
            integers = self.op("Transpose", integers, perm=[1, 0])
            product = self._int8_product(x, integers, self.op("Squeeze", scales, self.integers(1)))
        return self.op("Add", product, self.constant(f"{name}/bias", bias))  # type: ignore[no-any-return]

    def rows(self, ids: str, name: str, table: np.ndarray) -> str:
        """table[ids], of [N,E] and [B,S] to [B,S,E]."""
        if self._weights == FLOAT32:
            return self.op("Gather", self.constant(name, table), ids)  # type: ignore[no-any-return]
        integers, scales = self._int8_table(name, table)
        rows = self.op("Cast", self.op("Gather", integers, ids), to="float32")
        return self.op("Mul", rows, self.op("Gather", scales, ids))  # type: ignore[no-any-return]

    def _int8_table(self, name: str, table: np.ndarray) -> tuple[str, str]:
        """The table's whole numbers [N,E] and their scales [N,1]."""
        scales = _scales(table, axis=1)
        integers = self.constant(f"{name}/int8", np.rint(table / scales), np.int8)
        return integers, self.constant(f"{name}/scales", scales)

    def _int8_product(self, x: str, integers: str, scales: str) -> str:
        if self._weights == STORED_AS_INT8:
            return self.op("MatMul", x, self.op("DequantizeLinear", integers, scales, axis=1))  # type: ignore[no-any-return]
        if x not in self._quantized:
            self._quantized[x] = tuple(self.op("DynamicQuantizeLinear", x, outputs=3))
        values, scale, zero = self._quantized[x]
        zeros = self.constant("int8_zero", 0, np.int8)
        product = self.op("Cast", self.op("MatMulInteger", values, integers, zero, zeros), to="float32")
        return self.op("Mul", product, self.op("Mul", scale, scales))  # type: ignore[no-any-return]

    def model(self, inputs: Mapping[str, Sequence[Any]], outputs: Mapping[str, tuple[str, str, Sequence[Any]]]) -> Any:
        """The whole as a checked `onnx.ModelProto`.

        Args:
            inputs: name to shape, all int32; a size may be a name.
            outputs: name to the value that it is, its type and its shape.

        Raises:
            InputError: it is larger than one file of ONNX can be.
        """
        import onnx
        from onnx import helper, numpy_helper

        size = sum(value.nbytes for value in self._constants.values())
        if size + _MOST_BESIDE_CONSTANTS > onnx.checker.MAXIMUM_PROTOBUF:
            raise InputError(
                f"the weights have {size / (1 << 30):.2f} GiB, and a graph of ONNX holds less than 2: --weights=int8 "
                "takes a quarter"
            )
        types: dict[str, int] = {"float32": onnx.TensorProto.FLOAT, "int32": onnx.TensorProto.INT32}
        types["bool"] = onnx.TensorProto.BOOL
        for name, (value, _, _) in outputs.items():
            self._nodes.append(("Identity", [value], [name], {}))
        nodes = []
        for kind, given, made, attributes in self._nodes:
            values: dict[str, Any] = {key: types[value] if key == "to" else value for key, value in attributes.items()}
            nodes.append(helper.make_node(kind, given, made, name=f"make_{made[0]}", **values))
        graph = helper.make_graph(
            nodes,
            "albert",
            [helper.make_tensor_value_info(name, types["int32"], shape) for name, shape in inputs.items()],
            [helper.make_tensor_value_info(name, types[kind], shape) for name, (_, kind, shape) in outputs.items()],
            [numpy_helper.from_array(value, name) for name, value in self._constants.items()],
        )
        model = helper.make_model(
            graph, producer_name="albert_tf", opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
        )
        onnx.checker.check_model(model, full_check=True)
        return model


def _scales(values: np.ndarray, axis: int) -> np.ndarray:
    """What values of whole numbers from -127 to 127 are multiplied by, so that the largest along the axis is met."""
    largest = np.abs(values).max(axis=axis, keepdims=True)
    return np.where(largest > 0, largest / _LARGEST_INT8, 1.0).astype(np.float32)


Activation = Callable[[Graph, str], str]
ACTIVATIONS: Mapping[str, Activation] = {
    "gelu": lambda graph, x: graph.op("Gelu", x, approximate="tanh"),
    "gelu_erf": lambda graph, x: graph.op("Gelu", x),
    "relu": lambda graph, x: graph.op("Relu", x),
    "tanh": lambda graph, x: graph.op("Tanh", x),
    "linear": lambda graph, x: x,
    "": lambda graph, x: x,
}
