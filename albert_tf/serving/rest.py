"""The JSON of TensorFlow Serving's REST API: requests, answers, status and metadata of a model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from albert_tf import json_text
from albert_tf.json_text import JsonFault, shown
from albert_tf.serving import row_characters
from albert_tf.serving.backend import (
    DEFAULT_SIGNATURE,
    NO_ROWS,
    Backend,
    Columns,
    Request,
    RequestError,
    TensorInfo,
    has_rows,
)
from albert_tf.serving.settings import Settings
from albert_tf.serving.versions import State

INSTANCES, INPUTS, SIGNATURE_NAME = "instances", "inputs", "signature_name"
_LEVELS = 4  # of an answer that are taken apart: its object, rows, outputs, and their first dimension
_STRING = "DT_STRING"
_KEYS = (INSTANCES, INPUTS, SIGNATURE_NAME)


def read_request(body: bytes, backend: Backend, settings: Settings) -> tuple[Request, bool]:
    """What is asked for, and whether it is in the row form.

    Raises:
        RequestError: it is no JSON, not of the API's form, not what the signature takes, has too many rows, or one
            whose texts are too long.
    """
    try:
        return _read(_object(body), backend, settings)
    except RecursionError as error:
        raise RequestError(400, "JSON Parse error: there are too many lists within lists") from error


def _read(values: dict[str, Any], backend: Backend, settings: Settings) -> tuple[Request, bool]:
    signature = values.get(SIGNATURE_NAME) or DEFAULT_SIGNATURE
    if not isinstance(signature, str):
        raise RequestError(400, f"{SIGNATURE_NAME} must be a string")
    if signature not in backend.signatures:
        raise RequestError(
            400, f'Serving signature key "{signature:.60}" not found: there are {", ".join(backend.signatures)}'
        )
    if (INSTANCES in values) == (INPUTS in values):
        raise RequestError(400, f"the request must have either {INSTANCES!r} or {INPUTS!r}")
    is_rows = INSTANCES in values
    if is_rows:
        instances = values[INSTANCES]
        if not isinstance(instances, list) or not instances:
            raise RequestError(400, f"{INSTANCES!r} must be a list with at least one instance")
        _check_count(len(instances), settings.max_rows)
        request = backend.from_rows(signature, instances)
    else:
        request = backend.from_columns(signature, values[INPUTS])
        _check_count(request.rows, settings.max_rows)
    if any(info.type == _STRING for info in backend.signatures[signature].inputs.values()):
        characters = row_characters.of_rows(instances) if is_rows else row_characters.of_columns(values[INPUTS])
        _check_characters(characters, settings.max_row_characters)
        request = request._replace(characters=characters)
    return request, is_rows


def answer(columns: Columns, is_rows: bool, rows: int) -> dict[str, Any]:
    """The body of the answer; the name of an output that is alone is left out.

    Raises:
        RequestError: it shall be in the row form, but an output has not one value for each of the rows.
    """
    if is_rows and not has_rows(columns, rows):
        raise RequestError(400, NO_ROWS)
    alone = next(iter(columns.values())) if len(columns) == 1 else None
    if not is_rows:
        return {"outputs": columns if alone is None else alone}
    if alone is not None:
        return {"predictions": alone}
    return {"predictions": [dict(zip(columns, values)) for values in zip(*columns.values())]}


def count(columns: Columns) -> int:
    """About how many values there are, as the first of each list tells."""
    total = 0
    for values in columns.values():
        size = 1
        while isinstance(values, list):
            size *= len(values)
            values = values[0] if values else None
        total += size
    return total


def encoded(answer: Any, levels: int = _LEVELS) -> bytes:
    """An answer as JSON, in pieces: while it writes one, `json` lets no other thread work."""
    return _text(answer, levels).encode()


def _text(value: Any, levels: int) -> str:
    if levels and isinstance(value, dict):
        pairs = (f"{_text(name, 0)}: {_text(each, levels - 1)}" for name, each in value.items())
        return "{" + ", ".join(pairs) + "}"
    if levels and isinstance(value, list):
        return "[" + ", ".join(_text(each, levels - 1) for each in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def status(states: Mapping[int, State]) -> dict[str, Any]:
    """The answer of the model status API."""
    return {
        "model_version_status": [
            {
                "version": str(version),
                "state": state.name,
                "status": {"error_code": "UNKNOWN" if state.problem else "OK", "error_message": state.problem},
            }
            for version, state in states.items()
        ]
    }


def metadata(backend: Backend, name: str) -> dict[str, Any]:
    """The answer of the model metadata API."""
    signatures = {
        signature: {
            "inputs": _tensors(about.inputs),
            "outputs": _tensors(about.outputs),
            "method_name": "tensorflow/serving/predict",
        }
        for signature, about in backend.signatures.items()
    }
    return {
        "model_spec": {"name": name, "signature_name": "", "version": str(backend.version)},
        "metadata": {"signature_def": {"signature_def": signatures}},
    }


def _object(body: bytes) -> dict[str, Any]:
    try:
        values = json_text.parse(body, allow_repeated_keys=True)
    except JsonFault as error:
        raise RequestError(400, f"JSON Parse error: {error}") from error
    if not isinstance(values, dict):
        raise RequestError(400, "the request must be a JSON object")
    unknown = [name for name in values if name not in _KEYS]
    if unknown:
        raise RequestError(400, f"the request has the key {shown(unknown[0])}, and known are {', '.join(_KEYS)}")
    return values


def _check_count(rows: int, max_rows: int) -> None:
    if not rows:
        raise RequestError(400, "the request has no rows")
    if rows > max_rows:
        raise RequestError(413, f"the request has {rows} rows, and at most {max_rows} are taken at once")


def _check_characters(characters: Sequence[int], most: int) -> None:
    for row, count in enumerate(characters):
        if count > most:
            raise RequestError(
                413,
                f"instance {row} has {count:,} characters to read, and at most {most:,} are taken: ask for its parts, "
                "or have the server started with a larger --max_row_characters",
            )


def _tensors(tensors: Mapping[str, TensorInfo]) -> dict[str, Any]:
    return {
        name: {
            "dtype": info.type,
            "tensor_shape": {
                "dim": [{"size": str(size), "name": ""} for size in info.shape or ()],
                "unknown_rank": info.shape is None,
            },
            "name": info.name,
        }
        for name, info in tensors.items()
    }
