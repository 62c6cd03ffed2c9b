"""JSON from texts that others wrote: whatever is wrong with one is told with its line and column."""

from __future__ import annotations

import codecs
import json
import re
from typing import Any

_SHOWN = 60  # characters of a value in a message
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]|\d+', re.DOTALL)


class JsonFault(ValueError):
    """A text is no JSON, or more deeply nested or with more digits than can be read.

    Attributes:
        reason: what is wrong.
        line, column: where, both counted from 1.
    """

    def __init__(self, reason: str, before: str) -> None:
        """`before` is the text in front of the fault."""
        self.reason = reason
        self.line = before.count("\n") + 1
        self.column = len(before) - before.rfind("\n")
        super().__init__(f"{reason} (line {self.line}, column {self.column})")


def parse(data: str | bytes) -> Any:
    """The value that a text holds; bytes are UTF-8, with or without a byte order mark.

    Raises:
        JsonFault: there is none.
    """
    text = data if isinstance(data, str) else _decoded(data)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise JsonFault(error.msg, text[: error.pos]) from error
    except RecursionError as error:
        raise JsonFault("lists or objects are too deeply nested", text[: _deepest(text)]) from error
    except ValueError as error:  # Python converts so many digits and no more
        digits = max((token for token in _TOKEN.finditer(text) if token[0].isdigit()), key=lambda token: len(token[0]))
        raise JsonFault(f"a number has {len(digits[0])} digits, too many to read", text[: digits.start()]) from error


def shown(value: Any, length: int = _SHOWN) -> str:
    """A JSON value for a message, cut to one line."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "a deeply nested value"
    return text if len(text) <= length else f"{text[:length]}…"


def _decoded(data: bytes) -> str:
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        raise JsonFault(f"the byte 0x{data[error.start]:02x} is not UTF-8: save the file as UTF-8", before) from error


def _deepest(text: str) -> int:
    """Where the innermost list or object begins."""
    depth = most = place = 0
    for token in _TOKEN.finditer(text):
        if token[0] in ("[", "{"):
            depth += 1
            if depth > most:
                most, place = depth, token.start()
        elif token[0] in ("]", "}"):
            depth -= 1
    return place
