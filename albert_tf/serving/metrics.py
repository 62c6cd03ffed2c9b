"""What Prometheus is told."""

from __future__ import annotations

from typing import Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    generate_latest,
)

from albert_tf.serving.backend import Backend


class Metrics:
    """The counters of one server, in a registry of their own.

    Args:
        name: of the model.
    """

    def __init__(self, name: str):
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        registry: Any = {"registry": self._registry}
        self._name = name
        self._model = Info("albert_tf_model", "The model.", **registry)
        self._requests = Counter("albert_tf_requests", "Answered requests.", ["kind", "status"], **registry)
        self._seconds = Histogram("albert_tf_request_seconds", "From a request's head to its answer.", **registry)
        self._at_work = Gauge("albert_tf_requests_at_work", "Requests without an answer yet.", **registry)
        self._queued = Gauge("albert_tf_queued_rows", "Rows that wait for the model.", **registry)
        self._rows = Counter("albert_tf_rows", "Rows that the model answered.", **registry)
        sizes = [2.0**power for power in range(11)]
        self._batch_rows = Histogram("albert_tf_batch_rows", "Rows of a batch.", buckets=sizes, **registry)
        self._batch_seconds = Histogram("albert_tf_batch_seconds", "Seconds of the model for a batch.", **registry)

    def model(self, backend: Backend) -> None:
        """It answers from now on."""
        self._model.info({"name": self._name, "version": str(backend.version)})

    def begin(self) -> None:
        """A request came."""
        self._at_work.inc()

    def end(self, kind: str, status: int, seconds: float) -> None:
        """It was answered."""
        self._at_work.dec()
        self._requests.labels(kind, str(status)).inc()
        self._seconds.observe(seconds)

    def queued(self, rows: int) -> None:
        """See `batching.Observer`."""
        self._queued.inc(rows)

    def batch(self, rows: int, seconds: float) -> None:
        """See `batching.Observer`."""
        self._rows.inc(rows)
        self._batch_rows.observe(rows)
        self._batch_seconds.observe(seconds)

    def text(self) -> tuple[bytes, str]:
        """What is scraped, and its type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST
