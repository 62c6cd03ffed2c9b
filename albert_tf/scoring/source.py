"""The rows of a file or of standard input, one after the other, with the place of each for messages."""

from __future__ import annotations

import contextlib
import gzip
import sys
import zlib
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from albert_tf import json_text, storage
from albert_tf.errors import InputError
from albert_tf.json_text import JsonFault, shown
from albert_tf.tasks import rows

STANDARD_INPUT = "-"
LINES, TSV, CSV, JSONL = "lines", "tsv", "csv", "jsonl"
FORMS = (LINES, TSV, CSV, JSONL)
_ENDINGS = {".txt": LINES, ".tsv": TSV, ".csv": CSV, ".jsonl": JSONL}
_COMPRESSED = ".gz"


class Row(NamedTuple):
    """A row and its place, "texts.tsv, line 7"; cells, or the keys and values of a JSON object."""

    place: str
    values: list[str] | dict[str, Any]


class Source:
    """A file or standard input, opened for one reading.

    Args:
        path: of the file, gzip where its name ends in .gz, or "-".
        form: one of `FORMS`; None takes it from the ending of the name, lines for standard input.

    Attributes:
        name: for messages.
        form: the one that holds.
        share: of a file whose rows are asked for, which part of its bytes is read, from 0 to 1; None of standard input.

    Raises:
        InputError: it is no file, or its name does not tell its form.
    """

    def __init__(self, path: str, form: str | None = None):
        self._path = path
        self._is_input = path == STANDARD_INPUT
        self.name = "standard input" if self._is_input else path
        if not self._is_input and (storage.is_directory(path) or not storage.exists(path)):
            raise InputError(f"{path} is not a file: give one, or - for standard input")
        self.form = form or self._form_by_name()
        self._size = 0 if self._is_input else storage.size(path)
        self._file: IO[bytes] | None = None

    @property
    def share(self) -> float | None:
        """See the class."""
        if self._is_input or not self._size:
            return None
        return 1.0 if self._file is None else min(1.0, self._file.tell() / self._size)

    def rows(self) -> Iterator[Row]:
        """All rows; of JSON lines and of tables with several columns without those that are empty.

        Raises:
            InputError: a byte is no UTF-8 or is NUL, a line is no JSON object or no CSV, or a row has another number of
                columns than the first; with file and line.
        """
        yield from {LINES: self._lines, TSV: self._tsv, CSV: self._csv, JSONL: self._jsonl}[self.form]()

    def _form_by_name(self) -> str:
        if self._is_input:
            return LINES
        stem = self._path[: -len(_COMPRESSED)] if self._path.endswith(_COMPRESSED) else self._path
        for ending, form in _ENDINGS.items():
            if stem.lower().endswith(ending):
                return form
        raise InputError(f"the name {self._path} does not tell the form of the file: give --format, one of {FORMS}")

    def _decoded(self) -> Iterator[str]:
        """The lines with their ends."""
        with contextlib.ExitStack() as opened:
            try:
                file: Any = (
                    sys.stdin.buffer if self._is_input else opened.enter_context(storage.open_binary(self._path))
                )
                self._file = file
                if self._path.endswith(_COMPRESSED):
                    file = opened.enter_context(gzip.open(file))
                for number, line in enumerate(file, start=1):
                    yield self._decode(line, number)
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise InputError(f"{self.name} is not a whole gzip file: {error}") from error
            except OSError as error:
                raise InputError(f"cannot read {self.name}: {error.strerror}") from error
        self._file = None

    def _decode(self, line: bytes, number: int) -> str:
        if b"\0" in line:
            raise InputError(rows.nul_at(rows.place(self.name, number)))
        if number == 1 and not line.endswith(b"\n") and b"\r" in line:
            raise InputError(f"{self.name} has lines that end in \\r alone, as old Macs write them: save it with \\n")
        try:
            return line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{rows.place(self.name, number)}: the byte 0x{line[error.start]:02x} is not UTF-8: save the file as "
                "UTF-8"
            ) from error

    def _lines(self) -> Iterator[Row]:
        for number, line in enumerate(self._decoded(), start=1):
            yield Row(rows.place(self.name, number), [line.removesuffix("\n").removesuffix("\r")])

    def _tsv(self) -> Iterator[Row]:
        yield from self._table((row.place, row.values[0].split("\t")) for row in self._lines())  # type: ignore[index]

    def _csv(self) -> Iterator[Row]:
        found = rows.csv_rows(self._decoded(), self.name)
        yield from self._table((rows.place(self.name, row.line), row.cells) for row in found)

    def _table(self, found: Iterator[tuple[str, list[str]]]) -> Iterator[Row]:
        width = 0
        for place, cells in found:
            width = width or len(cells)
            if width > 1 and not any(cells):
                continue
            if len(cells) != width:
                raise InputError(
                    f"{place} has {len(cells)} column(s), and the first row has {width}: a separator or a line end "
                    "inside a text, or a cell is missing"
                )
            yield Row(place, cells)

    def _jsonl(self) -> Iterator[Row]:
        for place, (line,) in self._lines():  # type: ignore[misc]
            if not line.strip():
                continue
            try:
                value = json_text.parse(line)
            except JsonFault as error:
                raise InputError(f"{place}: not JSON: {error.reason} at column {error.column}") from error
            if not isinstance(value, dict):
                raise InputError(f"{place} must be a JSON object, but is {shown(value)}")
            yield Row(place, value)
