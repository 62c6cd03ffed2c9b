"""Stand-ins for what the server calls: a model that answers when a test lets it, without TensorFlow."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from albert_tf.serving.backend import DEFAULT_SIGNATURE, Request, RequestError, Signature, TensorInfo
from albert_tf.serving.batching import Batcher


class Fake:
    """A backend that answers with its version, once it may.

    Attributes:
        ran: the rows of each batch that it was given.
    """

    task = "a stand-in"
    examples: dict = {}
    signatures = {
        DEFAULT_SIGNATURE: Signature(
            {"x": TensorInfo("DT_STRING", (-1,), "x:0")}, {"version": TensorInfo("DT_INT32", (-1,), "version:0")}
        )
    }

    def __init__(self, version: int):
        self.version = version
        self.may_answer = threading.Event()
        self.ran: list[list] = []

    def from_rows(self, signature, instances) -> Request:
        if not all(isinstance(instance, str) for instance in instances):
            raise RequestError(400, "it is no text")
        return Request(signature, len(instances), list(instances))

    def from_columns(self, signature, inputs) -> Request:
        return self.from_rows(signature, next(iter(inputs.values())) if isinstance(inputs, dict) else inputs)

    def split(self, request: Request, start: int, stop: int) -> Request:
        return request._replace(rows=stop - start, data=request.data[start:stop])

    def run(self, requests):
        self.ran.append([row for request in requests for row in request.data or ()])
        assert self.may_answer.wait(10)
        return [{"version": [self.version] * request.rows} for request in requests]


class Quiet:
    """Is told what happens, and keeps the number of rows that wait."""

    def __init__(self) -> None:
        self.rows = 0

    def queued(self, rows: int) -> None:
        self.rows += rows

    def batch(self, rows: int, seconds: float) -> None: ...


def make_batcher(backend, **settings) -> Batcher:
    given = {"max_batch_rows": 4, "max_batch_characters": 100, "max_wait_seconds": 0, "max_queued_rows": 100}
    return Batcher(backend, **{**given, "observer": Quiet(), **settings})


async def until(condition: Callable[[], bool]) -> None:
    """Returns as soon as it holds."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came")
