"""TFRecord files, framed without TensorFlow: length, its checksum, the record, its checksum."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

import google_crc32c

from albert_tf.errors import InputError


def frame(record: bytes) -> tuple[bytes, bytes, bytes]:
    """The three parts that stand for a record in the file, to be written one after the other."""
    length = struct.pack("<Q", len(record))
    return length + _masked_checksum(length), record, _masked_checksum(record)


def frames(records: Iterable[bytes]) -> bytes:
    """The bytes of several records."""
    return b"".join(part for record in records for part in frame(record))


def read_records(path: str) -> Iterator[bytes]:
    """Yields the records of a file.

    Raises:
        InputError: the file is cut, damaged or no TFRecord file.
    """
    try:
        file = open(path, "rb")  # noqa: SIM115 (the next line closes it)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    with file:
        number = 0
        while header := file.read(12):
            length = struct.unpack("<Q", header[:8])[0] if len(header) == 12 else 0
            if len(header) < 12 or header[8:] != _masked_checksum(header[:8]):
                raise InputError(f"{path}: record {number} has no valid header: the file is cut or no TFRecord file")
            record, checksum = file.read(length), file.read(4)
            if len(record) < length or checksum != _masked_checksum(record):
                raise InputError(f"{path}: record {number} is cut or damaged: make the file again")
            yield record
            number += 1


def _masked_checksum(data: bytes) -> bytes:
    checksum = google_crc32c.value(data)
    return struct.pack("<I", ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF)
