"""Masked records as serialised tf.train.Example, and back, without TensorFlow.

An Example is a map from names to lists; `albert_tf.record_spec` says which. N records, S sequence length, P prediction
slots.
"""

from __future__ import annotations

import struct

import numpy as np

from albert_tf import record_spec
from data_prep.batches import Batch
from data_prep.masking import MaskedBatch

# Field numbers of tensorflow/core/example/{example,feature}.proto.
_INT64_LIST, _FLOAT_LIST = 3, 2
_LENGTH_DELIMITED = 2


def encode_batch(batch: Batch, masked: MaskedBatch) -> list[bytes]:
    """The N serialised Examples."""
    size, length = batch.input_ids.shape
    slots = masked.positions.shape[1]
    columns = np.arange(length)
    ends = batch.lengths[:, None]
    is_second = (columns >= batch.first_lengths[:, None] + 2) & (columns < ends) & (batch.second_lengths > 0)[:, None]
    weights = (np.arange(slots) < masked.counts[:, None]).astype("<f4")
    labels = batch.labels.reshape(-1, 1)

    # The features in the order of their names, as the maps of other writers mostly are.
    features = {
        record_spec.INPUT_IDS: _Varints(masked.input_ids),
        record_spec.INPUT_MASK: _Flags((columns < ends).astype(np.uint8)),
        record_spec.MASKED_LM_IDS: _Varints(masked.labels),
        record_spec.MASKED_LM_POSITIONS: _Varints(masked.positions),
        record_spec.MASKED_LM_WEIGHTS: _Floats(weights),
        record_spec.OLD_SENTENCE_LABEL: _Flags(labels.astype(np.uint8)),
        record_spec.SEGMENT_IDS: _Flags(is_second.astype(np.uint8)),
        record_spec.SENTENCE_ORDER_LABEL: _Flags(labels.astype(np.uint8)),
        record_spec.TOKEN_BOUNDARY: _Flags(masked.token_boundary),
    }
    entries = [values.entries(name) for name, values in features.items()]
    records = []
    for parts in zip(*entries):
        body = b"".join(parts)
        records.append(b"\x0a" + _varint(len(body)) + body)
    return records


class _Rows:
    """One feature of N records: the bytes of row i are `data[bounds[i]:bounds[i + 1]]`."""

    list_field = _INT64_LIST

    def __init__(self, data: bytes, bounds: list[int]):
        self._data, self._bounds = data, bounds

    def entries(self, name: str) -> list[bytes]:
        """The serialised map entries, one for each record."""
        headers: dict[int, bytes] = {}
        entries = []
        for start, end in zip(self._bounds, self._bounds[1:]):
            size = end - start
            header = headers.get(size)
            if header is None:
                header = headers[size] = _entry_header(name, self.list_field, size)
            entries.append(header + self._data[start:end])
        return entries


class _Flags(_Rows):
    """Values below 128, a byte each: uint8 [N, n]."""

    def __init__(self, values: np.ndarray):
        size, width = values.shape
        super().__init__(values.tobytes(), list(range(0, size * width + 1, width)))


class _Floats(_Rows):
    """Little-endian float32 [N, n]."""

    list_field = _FLOAT_LIST

    def __init__(self, values: np.ndarray):
        size, width = values.shape
        super().__init__(values.tobytes(), list(range(0, size * width * 4 + 1, width * 4)))


class _Varints(_Rows):
    """Values of 0 to 2^28 - 1, int32 [N, n], seven bits a byte."""

    def __init__(self, values: np.ndarray):
        # The bytes of each value side by side, then those not needed are left out.
        width = max(1, (int(values.max(initial=0)).bit_length() + 6) // 7)
        spread = np.empty((*values.shape, width), np.uint8)
        is_used = np.empty(spread.shape, bool)
        for place in range(width):
            rest = values >> (7 * place)
            more = rest > 127 if place + 1 < width else np.zeros((), bool)
            spread[..., place] = rest & 127 | more * np.int32(128)
            is_used[..., place] = rest > 0 if place else True
        sizes = is_used.sum(axis=(1, 2))
        super().__init__(spread[is_used].tobytes(), [0, *np.cumsum(sizes).tolist()])


def _entry_header(name: str, list_field: int, size: int) -> bytes:
    """What stands before the packed values of a map entry."""
    key = name.encode()
    numbers = _field(1) + _varint(size)
    values = _field(list_field) + _varint(size + len(numbers)) + numbers
    key = _field(1) + _varint(len(key)) + key + _field(2) + _varint(size + len(values))
    return _field(1) + _varint(size + len(key) + len(values)) + key + values


def _field(number: int) -> bytes:
    return bytes([number << 3 | _LENGTH_DELIMITED])


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def decode_record(record: bytes) -> dict[str, np.ndarray]:
    """The int64 and float lists of a serialised Example by name, packed or not.

    Raises:
        ValueError: the bytes are no Example.
    """
    features: dict[str, np.ndarray] = {}
    for _, body in _fields(record):
        for _, entry in _fields(_as_bytes(body)):
            parts = dict(_fields(_as_bytes(entry)))
            for kind, values in _fields(_as_bytes(parts.get(2, b""))):
                if kind in (_INT64_LIST, _FLOAT_LIST):
                    features[_as_bytes(parts[1]).decode()] = _decode_list(kind, _as_bytes(values))
    return features


def _decode_list(kind: int, data: bytes) -> np.ndarray:
    values: list[float] = []
    for _, value in _fields(data):
        if kind == _FLOAT_LIST:
            values += struct.unpack(f"<{len(_as_bytes(value)) // 4}f", _as_bytes(value))
        elif isinstance(value, int):
            values.append(value)
        else:
            place = 0
            while place < len(value):
                number, place = _read_varint(value, place)
                values.append(number)
    return np.array(values, np.float32 if kind == _FLOAT_LIST else np.int64)


def _fields(data: bytes) -> list[tuple[int, bytes | int]]:
    """The fields of a protocol buffer message: (number, content)."""
    fields: list[tuple[int, bytes | int]] = []
    place = 0
    while place < len(data):
        tag, place = _read_varint(data, place)
        if tag & 7 == 0:
            value, place = _read_varint(data, place)
            fields.append((tag >> 3, value))
            continue
        if tag & 7 == _LENGTH_DELIMITED:
            size, place = _read_varint(data, place)
        elif tag & 7 in (1, 5):
            size = 8 if tag & 7 == 1 else 4
        else:
            raise ValueError(f"not a tf.train.Example: wire type {tag & 7}")
        if place + size > len(data):
            raise ValueError("not a tf.train.Example: it ends too early")
        fields.append((tag >> 3, data[place : place + size]))
        place += size
    return fields


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(data) or shift > 63:
            raise ValueError("not a tf.train.Example: a number ends too early")
        byte = data[place]
        value |= (byte & 127) << shift
        place += 1
        if byte < 128:
            return value, place
        shift += 7


def _as_bytes(value: bytes | int) -> bytes:
    if isinstance(value, int):
        raise ValueError("not a tf.train.Example")
    return value
