"""A portable directory behind the server: instances through an answerer."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from albert_tf.answering.answerer import STRING, Answerer, BadInstance, checked, described
from albert_tf.serving.backend import DEFAULT_SIGNATURE, Columns, Request, RequestError, RowError, Signature, TensorInfo

_BAD_REQUEST = 400


class PortableBackend:
    """A `Backend` with one signature, whose instances are those of an answerer."""

    version = 1

    def __init__(self, answerer: Answerer):
        self._answerer = answerer
        self.task = answerer.task
        self.examples: Mapping[str, Any] = {DEFAULT_SIGNATURE: answerer.example}
        form = next(form for form in answerer.forms if {given.name for given in form} == set(answerer.example))
        inputs = {given.name: _info(given.name, STRING, (-1,) if given.is_list else ()) for given in form}
        outputs = {given.name: _info(given.name, given.type, given.shape) for given in answerer.outputs}
        self.signatures: Mapping[str, Signature] = {DEFAULT_SIGNATURE: Signature(inputs, outputs)}

    def from_rows(self, signature: str, instances: Sequence[Any]) -> Request:
        """See `Backend`; where an instance has one input, its value may stand for it."""
        return self._request([self._instance(instance) for instance in instances])

    def from_columns(self, signature: str, inputs: Any) -> Request:
        """See `Backend`."""
        if not isinstance(inputs, Mapping) or set(inputs) == {"b64"}:
            inputs = {self._only_input(): inputs}
        for name, values in inputs.items():
            if not isinstance(values, list):
                raise RequestError(_BAD_REQUEST, f"inputs: {name} must be a list with a value for each row")
        lengths = {name: len(values) for name, values in inputs.items()}
        if len(set(lengths.values())) != 1:
            counts = ", ".join(f"{count} {name}" for name, count in lengths.items())
            raise RequestError(_BAD_REQUEST, f"inputs must have as many values of each: there are {counts or 'none'}")
        rows = [dict(zip(inputs, values)) for values in zip(*inputs.values())]
        return self._request([self._instance(row) for row in rows])

    def split(self, request: Request, start: int, stop: int) -> Request:
        """See `Backend`."""
        return request._replace(rows=stop - start, data=request.data[start:stop])

    def run(self, requests: Sequence[Request]) -> list[Columns]:
        """See `Backend`."""
        try:
            answers = self._answerer.answers([row for request in requests for row in request.data])
        except BadInstance as error:
            raise RowError(error.index, error.problem) from error
        results, start = [], 0
        for request in requests:
            some = answers[start : start + request.rows]
            results.append({output.name: [answer[output.name] for answer in some] for output in self._answerer.outputs})
            start += request.rows
        return results

    def _request(self, instances: list[dict[str, Any]]) -> Request:
        try:
            checked(instances, self._answerer.forms)
        except BadInstance as error:
            raise RowError(error.index, error.problem) from error
        return Request(DEFAULT_SIGNATURE, len(instances), instances)

    def _instance(self, instance: Any) -> dict[str, Any]:
        if not isinstance(instance, Mapping) or set(instance) == {"b64"}:
            instance = {self._only_input(): instance}
        return {name: _text(value) for name, value in instance.items()}

    def _only_input(self) -> str:
        for form in self._answerer.forms:
            if len(form) == 1:
                return form[0].name
        raise RequestError(_BAD_REQUEST, f"an instance must be an object with {described(self._answerer.forms)}")


def _info(name: str, type_: str, shape: Sequence[int]) -> TensorInfo:
    return TensorInfo(type_, (-1, *shape), f"{DEFAULT_SIGNATURE}_{name}:0")


def _text(value: Any) -> Any:
    """The text of `{"b64": …}`; lists likewise, all else as it is."""
    if isinstance(value, list):
        return [_text(each) for each in value]
    if not isinstance(value, Mapping) or set(value) != {"b64"}:
        return value
    try:
        return base64.b64decode(value["b64"], validate=True).decode()
    except (TypeError, ValueError, binascii.Error) as error:
        raise RequestError(_BAD_REQUEST, "the value of b64 is not the base64 of UTF-8") from error
