"""JSON objects from a file with one a line, or with all of them in one list."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from albert_tf import json_text
from albert_tf.errors import InputError
from albert_tf.json_text import JsonFault, shown
from albert_tf.tasks import rows


class Record(NamedTuple):
    """An object and where it stands, for messages: "dev.json, line 7" or "dev.json, entry 7" of a list."""

    place: str
    values: Mapping[str, Any]

    def text(self, key: str) -> str:
        """The text under a key.

        Raises:
            InputError: it is not there, or is something else.
        """
        value = self.value(key)
        if not isinstance(value, str):
            raise InputError(f"{self.place}: {key!r} must be a text, but is {shown(value)}")
        return value

    def list(self, key: str) -> list[Any]:
        """The list under a key.

        Raises:
            InputError: it is not there, or is something else.
        """
        value = self.value(key)
        if not isinstance(value, list):
            raise InputError(f"{self.place}: {key!r} must be a list, but is {shown(value)}")
        return value

    def value(self, key: str) -> Any:
        """What is under a key.

        Raises:
            InputError: it is not there.
        """
        if key not in self.values:
            raise InputError(f"{self.place} has no {key!r}; it has {rows.names(list(self.values)) or 'nothing'}")
        return self.values[key]


def read_records(path: str) -> list[Record]:
    """The objects of a file in order: one a line, or one list of them, or one alone over several lines.

    Raises:
        InputError: it cannot be read, is no JSON (the line is named), or holds something else than objects.
    """
    lines = rows.read_lines(path)
    if (lines[0].lstrip().startswith("[") and not _is_value_a_line(lines)) or lines[0].strip() == "{":
        values = _as_list(read_value(path))
        found = [(f"{path}, entry {number}", value) for number, value in enumerate(values, start=1)]
    else:
        found = [
            (rows.place(path, number), _parse(line, rows.place(path, number)))
            for number, line in enumerate(lines, start=1)
            if line.strip()
        ]
    for place, value in found:
        if not isinstance(value, dict):
            raise InputError(
                f"{place} must be a JSON object, but is {shown(value)}: each example is one, such as "
                '{"text": …, "label": …}'
            )
    return [Record(place, value) for place, value in found]


def read_value(path: str) -> Any:
    """The one JSON value that a file holds.

    Raises:
        InputError: it cannot be read, or is no JSON (the line is named).
    """
    try:
        return json_text.parse(rows.read_text(path))
    except JsonFault as error:
        raise InputError(f"{rows.place(path, error.line)}: not JSON: {_reason(error)}") from error


def _is_value_a_line(lines: list[str]) -> bool:
    """Whether the first line is a list of its own and others follow, none of which is then the end of it."""
    if not any(line.strip() for line in lines[1:]):
        return False
    with contextlib.suppress(JsonFault):
        json_text.parse(lines[0])
        return True
    return False


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _parse(line: str, place: str) -> Any:
    try:
        return json_text.parse(line)
    except JsonFault as error:
        raise InputError(f"{place}: not JSON: {_reason(error)} at column {error.column}") from error


def _reason(error: JsonFault) -> str:
    if error.reason != "Extra data":
        return error.reason
    return "behind the value another one begins (several need a line each, or one list around all of them)"
