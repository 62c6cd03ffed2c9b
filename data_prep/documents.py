"""Text files as streams of documents: one sentence a line, a blank line ends a document."""

from __future__ import annotations

import codecs
import dataclasses
import gzip
import io
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from albert_tf.errors import InputError

# Limits that bound the memory whatever the text is like: a longer line is cut at a space, a longer document at a line.
MAX_LINE_BYTES = 1 << 20
MAX_DOCUMENT_BYTES = 4 << 20

ERROR_MODES = ("strict", "replace")
_READ_BUFFER_BYTES = 1 << 18


@dataclasses.dataclass(frozen=True)
class Document:
    """The lines of one document, without their line ends.

    `file_index` is the place of the file in the list of inputs and `offset` the byte (of the unpacked text) where the
    document begins. The two name the document: everything random about it is drawn from them.
    """

    file_index: int
    offset: int
    lines: list[str]
    size: int  # bytes, line ends included


def is_gzip(path: str) -> bool:
    """Whether the file begins with gzip's two magic bytes, whatever its name."""
    with open(path, "rb") as file:
        return file.read(2) == b"\x1f\x8b"


def open_text(path: str) -> BinaryIO:
    """Opens a plain or gzip file for its unpacked bytes; seeking forward in a gzip file unpacks what is skipped.

    Raises:
        InputError: the file cannot be opened.
    """
    try:
        if is_gzip(path):
            return io.BufferedReader(gzip.open(path, "rb"), _READ_BUFFER_BYTES)  # type: ignore[arg-type]
        return open(path, "rb", buffering=_READ_BUFFER_BYTES)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def read_lines(file: BinaryIO, path: str, start: int, end: int | None, errors: str) -> Iterator[tuple[int, str, int]]:
    """Yields (offset, text, bytes) of each line from byte `start` to `end` (None: to the end of the file).

    Where a line is cut depends only on where it begins, so reading may begin at any line yielded before.

    Args:
        file: from `open_text`.
        path: for messages.
        start, end: offsets in the unpacked text.
        errors: "strict" or "replace" (bytes that are not UTF-8 become U+FFFD).

    Raises:
        InputError: bytes that are not UTF-8 under "strict" (file and line are named), or a damaged gzip file.
    """
    offset, rest = start, b""
    try:
        file.seek(start)
        while end is None or offset < end:
            raw = rest + file.readline(MAX_LINE_BYTES - len(rest))
            rest = b""
            if not raw:
                return
            if len(raw) == MAX_LINE_BYTES and not raw.endswith(b"\n"):
                cut = _cut_of_long_line(raw)
                raw, rest = raw[:cut], raw[cut:]
            try:
                text = raw.decode("utf-8", errors)
            except UnicodeDecodeError as error:
                raise InputError(_not_utf8(path, offset, raw, error)) from error
            if offset == 0 and raw.startswith(codecs.BOM_UTF8):
                text = text[1:]
            yield offset, text.strip(), len(raw)
            offset += len(raw)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path} is a damaged or cut gzip file ({error}): make or fetch it again") from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def read_documents(
    file: BinaryIO, path: str, file_index: int, start: int, end: int | None, errors: str
) -> Iterator[Document]:
    """Yields the documents that lie between two offsets where documents begin; arguments and errors of `read_lines`."""
    first, size = 0, 0
    lines: list[str] = []
    for offset, text, length in read_lines(file, path, start, end, errors):
        if text:
            if not lines:
                first = offset
            lines.append(text)
            size += length
        if lines and (not text or size >= MAX_DOCUMENT_BYTES):
            yield Document(file_index, first, lines, size)
            lines, size = [], 0
    if lines:
        yield Document(file_index, first, lines, size)


def _cut_of_long_line(raw: bytes) -> int:
    """Where to cut `raw`: behind its last space, else before its last whole or partial UTF-8 character."""
    cut = raw.rfind(b" ") + 1
    if cut:
        return cut
    cut = len(raw) - 1
    while cut > len(raw) - 4 and raw[cut] & 0xC0 == 0x80:
        cut -= 1
    return cut


def _not_utf8(path: str, offset: int, raw: bytes, error: UnicodeDecodeError) -> str:
    line, left = 1, offset
    with open_text(path) as file:
        while left > 0:
            block = file.read(min(left, 1 << 20))
            line += block.count(b"\n")
            left -= len(block)
    return (
        f"{path}, line {line}: byte 0x{raw[error.start]:02x} at position {error.start + 1} of the line is not UTF-8: "
        "convert the file to UTF-8, or give --errors=replace"
    )
