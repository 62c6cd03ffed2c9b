"""JSON from texts that others wrote: whatever is wrong with one is told with its line and column."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable
from typing import Any

_SHOWN = 60  # characters of a value in a message
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")
_IS_KEY = re.compile(r"\s*:")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]|\d+', re.DOTALL)


class JsonFault(ValueError):
    """A text is no JSON, gives a key twice, or is more deeply nested or with more digits than can be read.

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


class _RepeatedKey(Exception):
    """An object has a key twice."""


def parse(data: str | bytes, *, allow_repeated_keys: bool = False) -> Any:
    """The value that a text holds; bytes are UTF-8, with or without a byte order mark.

    Args:
        data: the text.
        allow_repeated_keys: take the last value of a key that an object has twice, as other programs do.

    Raises:
        JsonFault: there is none, or an object has a key twice.
    """
    text = data if isinstance(data, str) else _decoded(data)
    try:
        return json.loads(text, object_pairs_hook=None if allow_repeated_keys else _unique)
    except _RepeatedKey as error:
        at = _repeated_key(text)
        raise JsonFault(f"an object has the key {_key_at(text, at)} twice", text[:at]) from error
    except json.JSONDecodeError as error:
        raise JsonFault(error.msg, text[: error.pos]) from error
    except RecursionError as error:
        raise JsonFault("lists or objects are too deeply nested", text[: _deepest(text)]) from error
    except ValueError as error:  # Python converts so many digits and no more
        digits = max((token for token in _TOKEN.finditer(text) if token[0].isdigit()), key=lambda token: len(token[0]))
        raise JsonFault(f"a number has {len(digits[0])} digits, too many to read", text[: digits.start()]) from error


def place_of(text: str, steps: Iterable[str | int]) -> tuple[int, int]:
    """Line and column, both counted from 1, where a value begins in a text that is JSON.

    Args:
        text: the whole.
        steps: the keys and indices, counted from 0, that lead to the value; the way ends where there is none.
    """
    at = _skipped(text, 0)
    for step in steps:
        inner = _inside(text, at, step)
        if inner is None:
            break
        at = inner
    before = text[:at]
    return before.count("\n") + 1, at - before.rfind("\n")


def _inside(text: str, at: int, step: str | int) -> int | None:
    """Where the value under a key or index begins, in the object or list that begins at `at`."""
    is_object = text[at] == "{"
    if text[at] not in "[{" or is_object != isinstance(step, str):
        return None
    number, at = 0, _skipped(text, at + 1)
    while text[at] not in "]}":
        key: str | int = number
        if is_object:
            key, at = _DECODER.raw_decode(text, at)
            at = _skipped(text, _skipped(text, at) + 1)  # behind the colon
        if key == step:
            return at
        _, at = _DECODER.raw_decode(text, at)
        at = _skipped(text, at)
        at = _skipped(text, at + 1) if text[at] == "," else at
        number += 1
    return None


def _skipped(text: str, at: int) -> int:
    """Where the white space that begins at `at` ends."""
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def shown(value: Any, length: int = _SHOWN) -> str:
    """A JSON value for a message, cut to one line."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "a deeply nested value"
    return text if len(text) <= length else f"{text[:length]}…"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise _RepeatedKey
    return values


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


def _repeated_key(text: str) -> int:
    """Where the first key begins that its object has had before; the text is JSON up to the end of that object."""
    keys: list[set[str]] = []
    for token in _TOKEN.finditer(text):
        if token[0] in ("[", "{"):
            keys.append(set())
        elif token[0] in ("]", "}"):
            keys.pop()
        elif token[0].startswith('"') and _IS_KEY.match(text, token.end()):
            key = json.loads(token[0])
            if key in keys[-1]:
                return token.start()
            keys[-1].add(key)
    raise AssertionError("no key is repeated")


def _key_at(text: str, at: int) -> str:
    token = _TOKEN.match(text, at)
    assert token is not None
    return shown(json.loads(token[0]))
