"""JSON values to arrays and back, as TensorFlow Serving maps them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from albert_tf.json_text import shown
from albert_tf.serving.backend import RequestError, TensorInfo

BASE64 = "b64"
_BYTES_SUFFIX = "_bytes"
_MOST_SHORT_NUMBERS = 4096  # of an array whose floats are written in their shortest form
_MOST_DIMENSIONS = 32  # NumPy's arrays have no more
_STRING = "DT_STRING"
_KINDS: dict[str, tuple[Any, tuple[type, ...]]] = {
    "DT_STRING": (object, (str, bytes)),
    "DT_BOOL": (np.bool_, (bool,)),
    "DT_FLOAT": (np.float32, (int, float)),
    "DT_DOUBLE": (np.float64, (int, float)),
    "DT_INT32": (np.int32, (int,)),
    "DT_INT64": (np.int64, (int,)),
    "DT_INT8": (np.int8, (int,)),
    "DT_UINT8": (np.uint8, (int,)),
    "DT_INT16": (np.int16, (int,)),
}


def to_array(value: Any, info: TensorInfo, name: str) -> np.ndarray:
    """The array of nested lists; of strings an object array of bytes.

    Raises:
        RequestError: a value has another type, the lists are ragged, or the shape is not the signature's.
    """
    if info.type not in _KINDS:
        raise RequestError(400, f"{name}: {info.type} cannot be given as JSON")
    dtype, types = _KINDS[info.type]
    shape: list[int] = []
    inner = value
    while isinstance(inner, list):
        shape.append(len(inner))
        inner = inner[0] if inner else None
    if len(shape) > _MOST_DIMENSIONS:
        raise RequestError(400, f"{name} has lists within lists of {len(shape)} levels")
    flat: list[Any] = []
    _flatten(value, shape, 0, flat, name)
    wanted = shape if info.shape is None else list(info.shape)
    if len(shape) != len(wanted) or any(size not in (-1, found) for size, found in zip(wanted, shape)):
        raise RequestError(400, f"{name} has the shape {shape}, but must have {wanted}")
    values = [_scalar(each, info.type, types, name) for each in flat]
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        if any(not limits.min <= value <= limits.max for value in values):
            raise RequestError(400, f"{name} has a number that is too large for {info.type}")
    made = np.empty(len(values), dtype)
    try:
        made[:] = values
    except OverflowError as error:
        raise RequestError(400, f"{name} has a number that is too large for {info.type}") from error
    return made.reshape(shape)


def to_json(array: np.ndarray, name: str) -> Any:
    """Nested lists, or one value; strings that are no UTF-8, and all of a name that ends in _bytes, as base64."""
    if array.dtype == object:
        return _map(array.tolist(), lambda value: _string(value, name.endswith(_BYTES_SUFFIX)))
    if array.dtype == np.float32 and array.size <= _MOST_SHORT_NUMBERS:
        return _map(array.tolist(), lambda value: float(str(np.float32(value))))
    return array.tolist()


def _flatten(value: Any, shape: Sequence[int], level: int, flat: list[Any], name: str) -> None:
    if level == len(shape):
        if isinstance(value, list):
            raise RequestError(400, f"{name} has lists of different depth")
        flat.append(value)
        return
    if not isinstance(value, list) or len(value) != shape[level]:
        raise RequestError(400, f"{name} has lists of different length: pad them to one")
    for each in value:
        _flatten(each, shape, level + 1, flat, name)


def _scalar(value: Any, type_: str, types: tuple[type, ...], name: str) -> Any:
    if type_ == _STRING and isinstance(value, Mapping) and set(value) == {BASE64}:
        try:
            return base64.b64decode(value[BASE64], validate=True)
        except (TypeError, ValueError, binascii.Error) as error:
            raise RequestError(400, f"{name}: the value of {BASE64} is not base64") from error
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise RequestError(400, f"{name}: {shown(value)} is not of the type {type_}")
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise RequestError(400, f"{name} has half of a surrogate pair at character {error.start}") from error
    return value


def _map(values: Any, function: Any) -> Any:
    if isinstance(values, list):
        return [_map(each, function) for each in values]
    return function(values)


def _string(value: bytes, is_binary: bool) -> Any:
    if not is_binary:
        try:
            return value.decode()
        except UnicodeDecodeError:
            pass
    return {BASE64: base64.b64encode(value).decode()}
