"""The limits of a server."""

from __future__ import annotations

import dataclasses

from albert_tf.errors import InputError

_LEAST = {"max_wait_seconds": 0, "port": 0, "file_system_poll_wait_seconds": 0}


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a server behaves; times in seconds.

    Attributes:
        host, port: where it listens; port 0 is any free one.
        max_batch_rows: of a batch that the model reads at once.
        max_wait_seconds: how long the first row of a batch waits for others.
        max_queued_rows: more are refused with 503.
        max_rows: of one request.
        max_row_characters: of the texts of one row, and of all rows that the model reads at once. What has begun is
            not given up, so it is as much as the model may read within `answer_seconds`.
        max_answer_values: numbers and texts of one answer.
        max_body_bytes: of one request, unpacked.
        read_seconds: for a request's body to arrive.
        answer_seconds: from there to the answer.
        idle_seconds: after which a connection without a request is closed; a request's head must arrive within them.
        stop_seconds: that requests at work may take after the server was told to stop.
        file_system_poll_wait_seconds: from one look for new versions of a SavedModel to the next; 0 for none.
    """

    host: str = "127.0.0.1"
    port: int = 8501
    max_batch_rows: int = 32
    max_wait_seconds: float = 0.005
    max_queued_rows: int = 4096
    max_rows: int = 1024
    max_row_characters: int = 1 << 16
    max_answer_values: int = 1 << 22
    max_body_bytes: int = 8 << 20
    read_seconds: float = 15.0
    answer_seconds: float = 60.0
    idle_seconds: float = 60.0
    stop_seconds: float = 30.0
    file_system_poll_wait_seconds: float = 1.0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            is_whole = isinstance(field.default, int)
            least = _LEAST.get(field.name, 1 if is_whole else 1e-3)
            if field.name != "host" and value < least:
                raise InputError(f"{field.name} is {value}, but must be at least {least:g}")
        if self.max_queued_rows < self.max_rows:
            raise InputError(
                f"max_queued_rows is {self.max_queued_rows}, but must be at least max_rows, which is {self.max_rows}: "
                "else a request of so many rows would never be taken"
            )
