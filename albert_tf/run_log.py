"""A run's numbers as JSON lines: one object a line, each with its step, steps ascending, never one twice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from albert_tf import storage


def append(path: str, values: Mapping[str, Any]) -> None:
    """Adds a line; `values` has a `step`."""
    with storage.open_to_append(path) as file:
        file.write((json.dumps(dict(values)) + "\n").encode("utf-8"))


def read(path: str) -> list[dict[str, Any]]:
    """All whole lines; none where there is no file. A last line cut by a kill is left out."""
    if not storage.exists(path):
        return []
    lines = storage.read_bytes(path).decode("utf-8", errors="replace").split("\n")
    return [json.loads(line) for line in lines[:-1]]


def cut_after(path: str, step: int) -> None:
    """Drops the lines after `step`: a run resumed at `step` writes them again."""
    if storage.exists(path):
        kept = [line for line in read(path) if line["step"] <= step]
        storage.write_bytes(path, "".join(json.dumps(line) + "\n" for line in kept).encode("utf-8"))
