"""A SavedModel behind the server: tensors through its signatures."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging
from tensorflow.core.framework import types_pb2

from albert_tf import operation_error
from albert_tf.errors import InputError
from albert_tf.exporting import version_directories
from albert_tf.serving import warm_up
from albert_tf.serving.backend import DEFAULT_SIGNATURE, NO_ROWS, Columns, Request, RequestError, Signature, TensorInfo
from albert_tf.serving.tensors import BASE64, to_array, to_json

SAVED_MODEL_FILE = "saved_model.pb"


def newest_version(path: str) -> tuple[str, int] | None:
    """The SavedModel at a path, and its version.

    That is the one with the largest number of those in directories that are named by numbers, as TensorFlow Serving
    has them; or the directory itself, as version 1. None: there is no SavedModel.
    """
    if os.path.isfile(os.path.join(path, SAVED_MODEL_FILE)):
        name = os.path.basename(os.path.normpath(path))
        return path, int(name) if name.isdecimal() and name.isascii() else 1
    try:
        versions = version_directories.versions(path) if os.path.isdir(path) else []
    except OSError:
        return None
    complete = ((of, number) for number, of in versions if os.path.isfile(os.path.join(of, SAVED_MODEL_FILE)))
    return next(complete, None)


class SavedModelBackend:
    """A `Backend` of any SavedModel.

    Args:
        path, version: see `newest_version`.
        max_answer_values: numbers and texts of one answer.

    Attributes:
        functions: of the signatures, by name.

    Raises:
        InputError: it cannot be loaded, or has no signature to call.
    """

    def __init__(self, path: str, version: int, max_answer_values: int):
        self.version = version
        self._max_answer_values = max_answer_values
        self.task = "a SavedModel"
        with contextlib.suppress(ImportError):
            import tensorflow_text  # noqa: F401  registers the operations of tokenizers
        try:
            self._loaded = tf.saved_model.load(path)
        except Exception as error:  # of whatever kind: what is damaged fails anywhere
            problem = next(iter(str(error).splitlines()), type(error).__name__)
            raise InputError(f"cannot load the SavedModel {path}: {problem}") from error
        self.functions = dict(self._loaded.signatures)
        if DEFAULT_SIGNATURE not in self.functions:
            raise InputError(
                f"{path} has no signature {DEFAULT_SIGNATURE}: it has {', '.join(self.functions) or 'none'}"
            )
        self.signatures: Mapping[str, Signature] = {
            name: _signature(function) for name, function in self.functions.items()
        }
        self.examples: Mapping[str, Any] = {}

    def from_rows(self, signature: str, instances: Sequence[Any]) -> Request:
        """See `Backend`."""
        inputs = self.signatures[signature].inputs
        if isinstance(instances[0], Mapping) and set(instances[0]) != {BASE64}:
            for index, instance in enumerate(instances):
                if not isinstance(instance, Mapping) or set(instance) != set(inputs):
                    raise RequestError(400, f"instance {index} must be an object with {', '.join(inputs)}")
            columns = {name: [instance[name] for instance in instances] for name in inputs}
        elif len(inputs) == 1:
            columns = {next(iter(inputs)): list(instances)}
        else:
            raise RequestError(400, f"instances must be objects with {', '.join(inputs)}")
        return self._request(signature, columns, must_be_rows=True)

    def from_columns(self, signature: str, inputs: Any) -> Request:
        """See `Backend`."""
        names = self.signatures[signature].inputs
        if not isinstance(inputs, Mapping) or set(inputs) == {BASE64}:
            if len(names) != 1:
                raise RequestError(400, f"inputs must be an object with {', '.join(names)}")
            inputs = {next(iter(names)): inputs}
        if set(inputs) != set(names):
            raise RequestError(400, f"inputs must have {', '.join(names)}, but has {', '.join(inputs) or 'nothing'}")
        return self._request(signature, inputs, must_be_rows=False)

    def split(self, request: Request, start: int, stop: int) -> Request:
        """See `Backend`."""
        data = {name: array[start:stop] for name, array in request.data.items()}
        return request._replace(rows=stop - start, data=data)

    def run(self, requests: Sequence[Request]) -> list[Columns]:
        """See `Backend`."""
        signature = requests[0].key[0]  # type: ignore[index]
        names = self.signatures[signature].inputs
        arrays = {name: _joined([request.data[name] for request in requests]) for name in names}
        try:
            outputs = self.functions[signature](**{name: _tensor(array, names[name]) for name, array in arrays.items()})
        except tf.errors.InvalidArgumentError as error:
            reason = operation_error.reason(error)
            raise RequestError(400, f"the signature {signature} does not take these values: {reason}") from error
        values = {name: tensor.numpy() for name, tensor in outputs.items()}
        self._check_size(values, requests)
        if len(requests) == 1:
            return [{name: to_json(_array(value), name) for name, value in values.items()}]
        rows = sum(request.rows for request in requests)
        if any(np.shape(value)[:1] != (rows,) for value in values.values()):
            raise RequestError(400, NO_ROWS)
        results, start = [], 0
        for request in requests:
            stop = start + request.rows
            results.append({name: to_json(value[start:stop], name) for name, value in values.items()})
            start = stop
        return results

    def _check_size(self, values: Mapping[str, Any], requests: Sequence[Request]) -> None:
        """Refuses what is too large before it is JSON, which takes many times the memory; a part stands for all."""
        rows = sum(request.rows for request in requests)
        largest = max(request.of_rows or request.rows for request in requests)
        count = sum(np.size(value) for value in values.values()) * largest // rows
        if count > self._max_answer_values:
            raise RequestError(
                413,
                f"the answer would have {count:,} values, and at most {self._max_answer_values:,} are given: ask for "
                "fewer or shorter rows, or have the server started with a larger --max_answer_values",
            )

    def _request(self, signature: str, columns: Mapping[str, Any], *, must_be_rows: bool) -> Request:
        infos = self.signatures[signature].inputs
        arrays = {name: to_array(columns[name], info, name) for name, info in infos.items()}
        counts = {array.shape[0] if array.ndim else None for array in arrays.values()}
        count = next(iter(counts)) if len(counts) == 1 else None
        if count is None and must_be_rows:
            raise RequestError(400, "the inputs of an instance do not have one row each")
        has_rows = count is not None and all(
            info.shape is not None and info.shape[:1] == (-1,)
            for tensors in self.signatures[signature]
            for info in tensors.values()
        )
        if not has_rows:
            return Request((signature, object()), count or 1, arrays, can_split=False)
        shapes = tuple((name, array.shape[1:]) for name, array in sorted(arrays.items()))
        return Request((signature, shapes), int(count or 0), arrays)


def load(path: str, max_answer_values: int) -> SavedModelBackend | None:
    """The newest SavedModel at a path, after a warm-up; None where there is none."""
    found = newest_version(path)
    if found is None:
        return None
    logging.info("loading the SavedModel %s", found[0])
    backend = SavedModelBackend(*found, max_answer_values)
    warm_up.warm_up(found[0], backend.functions, backend.signatures)
    return backend


def _signature(function: Any) -> Signature:
    inputs = function.structured_input_signature[1]
    return Signature(
        {name: _info(spec, spec.name or name) for name, spec in sorted(inputs.items())},
        {name: _info(spec, name) for name, spec in sorted(function.structured_outputs.items())},
    )


def _info(spec: Any, name: str) -> TensorInfo:
    type_ = types_pb2.DataType.Name(tf.as_dtype(spec.dtype).as_datatype_enum)
    shape = None if spec.shape.rank is None else tuple(-1 if size is None else size for size in spec.shape.as_list())
    return TensorInfo(type_, shape, f"{name}:0")


def _array(value: Any) -> np.ndarray:
    """What a tensor's `numpy` gives, which of a single string is bytes."""
    return np.asarray(value, object if isinstance(value, bytes) else None)


def _joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _tensor(array: np.ndarray, info: TensorInfo) -> tf.Tensor:
    dtype = tf.as_dtype(types_pb2.DataType.Value(info.type))
    return tf.constant(array.tolist() if array.dtype == object else array, dtype, array.shape)
