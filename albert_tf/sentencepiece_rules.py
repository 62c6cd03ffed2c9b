"""How a SentencePiece model changes text before it looks for pieces, read from the model itself.

The library applies these rules; a graph that must follow each character has to apply them on its own. The forms are
those of sentencepiece_model.proto and, for the replacements, of the double array of Darts-clone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

_PIECES, _NORMALIZER, _SELF_TEST = 1, 3, 4  # fields of a model
_CHARSMAP, _ADD_DUMMY_PREFIX, _REMOVE_EXTRA_WHITESPACES = 2, 3, 4  # fields of its normaliser
_PIECE, _TYPE, _USER_DEFINED = 1, 3, 4  # fields of a piece, and a type of pieces
_FIXED_SIZES = {1: 8, 5: 4}  # bytes of a value, by its type in the encoding


class NormalizerRules(NamedTuple):
    """What the model's normaliser does.

    Attributes:
        units: uint32 [U], a double array over UTF-8 bytes; its values are places in `texts`. Where several keys fit,
            the longest counts.
        texts: what the keys are replaced by, in UTF-8, each ended by a zero byte.
        symbols: that are taken as they are, before any key; the longest counts.
        add_dummy_prefix: a space is put in front of a text.
        remove_extra_whitespaces: spaces go at the ends and behind a space.
    """

    units: np.ndarray
    texts: bytes
    symbols: tuple[str, ...]
    add_dummy_prefix: bool
    remove_extra_whitespaces: bool


def normalizer_rules(model_proto: bytes) -> NormalizerRules:
    """The rules of a serialised model."""
    symbols = []
    spec: dict[int, int | bytes] = {}
    for field, value, _ in _fields(model_proto):
        if field == _PIECES:
            piece = _message(value)
            if piece.get(_TYPE) == _USER_DEFINED:
                symbols.append(bytes(piece[_PIECE]).decode())
        elif field == _NORMALIZER:
            spec.update(_message(value))
    charsmap = bytes(spec.get(_CHARSMAP, b""))
    behind = 4 + int.from_bytes(charsmap[:4], "little")
    return NormalizerRules(
        np.frombuffer(charsmap[4:behind], "<u4"),
        charsmap[behind:],
        tuple(symbols),
        bool(spec.get(_ADD_DUMMY_PREFIX, True)),
        bool(spec.get(_REMOVE_EXTRA_WHITESPACES, True)),
    )


def without_normalizer(model_proto: bytes) -> bytes:
    """The model for texts that are normalised already: it looks for pieces and changes nothing."""
    kept = [whole for field, _, whole in _fields(model_proto) if field not in (_NORMALIZER, _SELF_TEST)]
    # A double array without keys: where there is none, the library writes to the standard error at each loading.
    charsmap = _bytes_field(_CHARSMAP, b"".join([(1 << 10).to_bytes(4, "little"), bytes(1 << 10), b"\0"]))
    switches = bytes([_ADD_DUMMY_PREFIX << 3, 0, _REMOVE_EXTRA_WHITESPACES << 3, 0])
    return b"".join([*kept, _bytes_field(_NORMALIZER, charsmap + switches)])


def _message(data: int | bytes) -> dict[int, int | bytes]:
    """The last value of each field."""
    return {field: value for field, value, _ in _fields(bytes(data))}


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes, bytes]]:
    """The fields of a protocol buffer: number, value, and the bytes of both."""
    at = 0
    while at < len(data):
        start = at
        key, at = _varint(data, at)
        field, kind = key >> 3, key & 7
        value: int | bytes
        if kind == 0:
            value, at = _varint(data, at)
        else:
            size, at = (_FIXED_SIZES[kind], at) if kind in _FIXED_SIZES else _varint(data, at)
            value, at = data[at : at + size], at + size
        yield field, value, data[start:at]


def _bytes_field(field: int, value: bytes) -> bytes:
    """A field as the encoding has it, for a value of 128 bytes to 16 KiB."""
    return bytes([field << 3 | 2, len(value) & 0x7F | 0x80, len(value) >> 7]) + value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at a place of the data, and the place behind it."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
