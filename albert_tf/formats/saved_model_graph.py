"""Facts about a model that its SavedModel's graph tells and its variables do not; nothing in it is executed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

from albert_tf.errors import InputError

GRAPH_FILE = "saved_model.pb"
_KERAS_FILE = "keras_metadata.pb"
_LAYER_SCOPE = re.compile(r"(?:^|/)encoder/(?:transformer/group_\w+/)?layer_(\d+)/")
_KERAS_ENCODER = re.compile(r'"class_name": "[^"]*Encoder[^"]*", "config": ')
_GELU_TANH_CONSTANT = 0.044715
_FUSED_NORMS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
_FUSED_EPSILON = 1e-4  # of these operations where the attribute is left out, as defaults are


class SavedModelGraph:
    """The graph of one SavedModel directory.

    Raises:
        InputError: saved_model.pb is missing or damaged.
    """

    def __init__(self, directory: str):
        self._directory = directory
        path = os.path.join(directory, GRAPH_FILE)
        self._data = _read(path)
        try:
            self._meta_graphs = saved_model_pb2.SavedModel.FromString(self._data).meta_graphs
        except DecodeError as error:
            raise InputError(f"{path} is damaged: it is no SavedModel") from error

    def layer_scopes(self) -> int | None:
        """L from the scopes `layer_0` … that TF1 code puts around each layer."""
        found = {int(match[1]) for node in self._nodes() for match in [_LAYER_SCOPE.search(node.name)] if match}
        return len(found) if found and found == set(range(len(found))) else None

    def attention_heads(self, hidden_size: int) -> int | None:
        """N from the shape [H,N,D] or [N,D] the query is given, else from the factor 1/sqrt(D) of the scores."""
        from_shapes, from_factors = set(), set()
        for node in self._nodes():
            if node.op != "Const" or "/self/" not in node.name:
                continue
            value = tf.make_ndarray(node.attr["value"].tensor)
            if "/self/query/" in node.name and value.ndim == 1 and value.size in (2, 3) and value.dtype.kind == "i":
                if value[-1] * value[-2] == hidden_size and (value.size == 2 or value[0] == hidden_size):
                    from_shapes.add(int(value[-2]))
            elif node.name.lower().endswith("mul/y") and value.ndim == 0 and 0 < value < 1:
                size = round(float(value) ** -2)
                if hidden_size % size == 0 and np.isclose(size**-0.5, value, rtol=1e-5):
                    from_factors.add(hidden_size // size)
        found = from_shapes or from_factors
        return found.pop() if len(found) == 1 else None

    def activations(self) -> set[str]:
        """What `hidden_act` can be, by the operations and the constant that only one activation has."""
        operations = {node.op for node in self._nodes()}
        named = (("Erf", "gelu_erf"), ("Erfc", "gelu_erf"), ("Relu", "relu"))
        found = {name for operation, name in named if operation in operations}
        constants = (self._scalar(node) for node in self._nodes() if node.op == "Const")
        if any(constant is not None and np.isclose(constant, _GELU_TANH_CONSTANT) for constant in constants):
            return found | {"gelu"}
        tanhs = [node.name for node in self._nodes() if node.op == "Tanh"]  # the pooler has one too
        return found | {"tanh" for name in tanhs if re.search(r"(^|/)(intermediate|activation)\w*/", name)}

    def layer_norm_epsilons(self) -> set[float]:
        """What is added to the variance in its LayerNorms."""
        found = set()
        for node in self._nodes():
            value = self._scalar(node) if node.op == "Const" and node.name.endswith("batchnorm/add/y") else None
            if node.op in _FUSED_NORMS:
                value = node.attr["epsilon"].f if "epsilon" in node.attr else _FUSED_EPSILON
            if value is not None:
                found.add(float(str(np.float32(value))))
        return found

    def applications(self, variable: str) -> int | None:
        """How often a function of a TensorFlow 2 module reads a variable: the layers that share it.

        Args:
            variable: its name in the graph; None is returned where no or more than one variable has it.
        """
        counts = [0]
        for meta_graph in self._meta_graphs:
            objects = meta_graph.object_graph_def
            variables = [i for i, node in enumerate(objects.nodes) if node.variable.name == variable]
            functions = {function.signature.name: function for function in meta_graph.graph_def.library.function}
            if len(variables) != 1:
                continue
            for name, concrete in objects.concrete_functions.items():
                if variables[0] in concrete.bound_inputs and name in functions:
                    arguments = len(functions[name].signature.input_arg)
                    place = arguments - len(concrete.bound_inputs) + list(concrete.bound_inputs).index(variables[0])
                    counts.append(_reads(functions, name, place, {}))
        return max(counts) or None

    def keras_config(self) -> dict[str, Any]:
        """The config that Keras stored of a tf-models encoder; empty where there is none."""
        for data in (_read(os.path.join(self._directory, _KERAS_FILE), needed=False), self._data):
            text = data.decode("utf-8", errors="replace")
            for match in _KERAS_ENCODER.finditer(text):
                try:
                    values, _ = json.JSONDecoder().raw_decode(text, match.end())
                except ValueError:
                    continue
                if isinstance(values, dict) and {"num_layers", "num_attention_heads"} <= set(values):
                    return values
        return {}

    def lower_case(self) -> bool | None:
        """`do_lower_case` of a TF1 module's signature tokenization_info; None where there is none."""
        for meta_graph in self._meta_graphs:
            output = meta_graph.signature_def["tokenization_info"].outputs["do_lower_case"].name.partition(":")[0]
            for node in meta_graph.graph_def.node:
                if output and node.name == output and node.op == "Const":
                    return bool(tf.make_ndarray(node.attr["value"].tensor))
        return None

    def _nodes(self) -> Iterator[Any]:
        for meta_graph in self._meta_graphs:
            yield from meta_graph.graph_def.node
            for function in meta_graph.graph_def.library.function:
                yield from function.node_def

    @staticmethod
    def _scalar(node: Any) -> float | None:
        tensor = node.attr["value"].tensor
        is_float = tensor.dtype == tf.float32.as_datatype_enum and not tensor.tensor_shape.dim
        return float(tf.make_ndarray(tensor)) if is_float else None


def _read(path: str, needed: bool = True) -> bytes:
    if not needed and not os.path.exists(path):
        return b""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def _reads(functions: dict[str, Any], name: str, place: int, known: dict[tuple[str, int], int]) -> int:
    """How often a function reads the variable that is its argument number `place`, the functions it calls included."""
    if (name, place) in known or name not in functions:
        return known.get((name, place), 0)
    known[name, place] = 0
    argument = functions[name].signature.input_arg[place].name
    count = 0
    for node in functions[name].node_def:
        inputs = [text for text in node.input if not text.startswith("^")]
        if argument not in inputs:
            continue
        if node.op == "ReadVariableOp":
            count += 1
        elif node.op in ("PartitionedCall", "StatefulPartitionedCall"):
            count += _reads(functions, node.attr["f"].func.name, inputs.index(argument), known)
        elif node.op in ("If", "StatelessIf"):
            branches = (node.attr[branch].func.name for branch in ("then_branch", "else_branch"))
            count += max(_reads(functions, branch, inputs.index(argument) - 1, known) for branch in branches)
    known[name, place] = count
    return count
