"""Files of examples as lines and cells, with the number of each line for messages.

What all files have in common is settled here: UTF-8 without NUL, with or without a byte order mark; `\\n` or `\\r\\n`
at the ends of lines, `\\r` where there is no `\\n` (U+2028 and the like belong to texts); empty lines at the end of the
file; and gzip where the name says so.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import sys
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from absl import logging

from albert_tf import storage
from albert_tf.errors import InputError
from albert_tf.tasks.examples import ChoiceExample, Example, QuestionExample, TagExample, TextExample

COMPRESSED = ".gz"
CSV, JSON = ".csv", (".json", ".jsonl")  # endings
_MOST_NAMES = 12  # of a header that is quoted in a message
_LONGEST_NAME = 40


class Row(NamedTuple):
    """The cells of a line and its number, counted from 1."""

    line: int
    cells: list[str]


def place(path: str, line: int) -> str:
    """ "train.tsv, line 7" """
    return f"{path}, line {line}"


def ending(path: str) -> str:
    """The ending of a name, ".csv" for one, in lower case; that of compression aside."""
    return os.path.splitext(path.lower().removesuffix(COMPRESSED))[1]


def read_text(path: str) -> str:
    """The text of a file without its byte order mark; line ends as they are, but for those of old Macs.

    Raises:
        InputError: the file cannot be read, is a directory, is not UTF-8 or has NUL in it (the line is named).
    """
    if storage.is_directory(path):
        raise InputError(f"{path} is a directory, and a file is needed")
    data = storage.read_bytes(path)
    if path.endswith(COMPRESSED):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{path} is not a whole gzip file: {error}") from error
    data = data.removeprefix(codecs.BOM_UTF8)
    if b"\0" in data:
        raise InputError(nul_at(place(path, data.count(b"\n", 0, data.index(b"\0")) + 1)))
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{place(path, line)}: the byte 0x{data[error.start]:02x} is not UTF-8: save the file as UTF-8"
        ) from error


def nul_at(where: str) -> str:
    """What is said of a NUL character in a file."""
    return f"{where} has a NUL character, which no text has: is the file damaged, or is it UTF-16? Save it as UTF-8"


def read_lines(path: str) -> list[str]:
    """The lines of a file without their ends; empty ones at the end of the file are dropped.

    Raises:
        InputError: as `read_text`, or there is no line at all.
    """
    lines = [line[:-1] if line.endswith("\r") else line for line in read_text(path).split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise InputError(f"{path} is empty: it must have one example a line")
    return lines


def read_rows(path: str) -> list[Row]:
    """The lines of a file cut at their tabs; quotes are ordinary characters.

    Raises:
        InputError: as `read_lines`.
    """
    return [Row(number, line.split("\t")) for number, line in enumerate(read_lines(path), start=1)]


def read_csv(path: str) -> list[Row]:
    """The rows of a CSV file, whose cells may hold line ends between quotes; a row has the number of its first line.

    Raises:
        InputError: the file is empty or no CSV.
    """
    text = read_text(path)
    if not text.strip():
        raise InputError(f"{path} is empty: it must have one example a line")
    delimiter = _delimiter(text.split("\n", 1)[0])
    if delimiter != ",":
        logging.info("%s: the columns are separated by %r", path, delimiter)
    return _all_rows(text, path, delimiter)


def quoted_rows(path: str) -> list[Row]:
    """The rows of a file that is cut at its tabs, but for those between quotes; as `read_csv`.

    Raises:
        InputError: a quote is not closed or not doubled.
    """
    return _all_rows(read_text(path), path, "\t")


def _all_rows(text: str, path: str, delimiter: str) -> list[Row]:
    found = list(csv_rows(io.StringIO(text, newline=""), path, delimiter))
    while found and not any(found[-1].cells):
        found.pop()
    return found


def csv_rows(lines: Iterable[str], path: str, delimiter: str = ",") -> Iterator[Row]:
    """The rows of CSV as they are read, each with the line that it begins in.

    Raises:
        InputError: a quote is not closed or not doubled.
    """
    limit = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    line = 1
    try:
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        for cells in reader:
            yield Row(line, cells or [""])
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(
            f"{place(path, line)}: not CSV: {error}: is a quote in this row not closed or not doubled?"
        ) from error
    finally:
        csv.field_size_limit(limit)


def csv_cells(line: str) -> list[str]:
    """The cells of one line."""
    return next(csv.reader([line], delimiter=_delimiter(line)))


def _delimiter(first_line: str) -> str:
    """The comma, unless the first line has none and another usual separator."""
    return next((delimiter for delimiter in ",;\t" if delimiter in first_line), ",")


def wrong_width(path: str, row: Row, width: int) -> InputError:
    """The error for a row that has another number of columns than the first one."""
    return InputError(
        f"{place(path, row.line)} has {len(row.cells)} column(s), and the first line has {width}: a separator or a "
        "line end inside a text, or a cell is missing"
    )


def names(cells: Collection[str]) -> str:
    """The cells of a header, or of what should be one, for a message."""
    shown = [cell if len(cell) <= _LONGEST_NAME else f"{cell[:_LONGEST_NAME]}…" for cell in cells]
    more = f" and {len(shown) - _MOST_NAMES} more" if len(shown) > _MOST_NAMES else ""
    return ", ".join(cell or "''" for cell in shown[:_MOST_NAMES]) + more


def number(text: str, where: str, limits: tuple[float, float] = (float("-inf"), float("inf"))) -> float:
    """The number that a cell holds.

    Raises:
        InputError: it is none, is not finite, or lies outside the limits; `where` is its place.
    """
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not limits[0] <= value <= limits[1] or value in (float("-inf"), float("inf")):
        between = "" if limits[0] == float("-inf") else f" from {limits[0]:g} to {limits[1]:g}"
        raise InputError(f"{where}: the label is {text!r}, but must be a number{between}")
    return value


def find_column(header: Sequence[str], wanted: Sequence[str], where: str) -> int | None:
    """The position of the column that has the first of these names that is there; None where none is.

    Args:
        header: the names as they stand in the file; case and spaces at their ends do not matter.
        wanted: in lower case.
        where: the place of the header.

    Raises:
        InputError: two columns have that name.
    """
    found = [name.strip().lower() for name in header]
    for name in wanted:
        if found.count(name) > 1:
            raise InputError(f"{where}: the column {name!r} is there twice: give one of them another name")
        if name in found:
            return found.index(name)
    return None


def warn_of_repeated_columns(where: str, header: Sequence[str]) -> None:
    """Says which names come again in a header; whoever wants one of these columns refuses the file."""
    again = sorted({name for name in header if name and header.count(name) > 1})
    if again:
        logging.warning("%s: the header has more than once: %s", where, names(again))


def checked(path: str, examples: Sequence[Example]) -> list[Example]:
    """The examples of one file, with warnings that count those with an empty text or the id of another: they are kept.

    Raises:
        InputError: there is none.
    """
    if not examples:
        raise InputError(f"{path} has no example: it must have at least one")
    empty = [example for example in examples if not all(text.strip() for text in _texts(example))]
    if empty:
        logging.warning("%s: %d example(s) have an empty text, the first in %s", path, len(empty), empty[0].place)
    warn_of_repeated_ids(path, examples)
    return list(examples)


def warn_of_repeated_ids(path: str, examples: Sequence[Example]) -> None:
    """Counts the examples that have the id of one before them."""
    seen: set[str] = set()
    again: list[Example] = []
    for example in examples:
        if example.id in seen:
            again.append(example)
        seen.add(example.id)
    if again:
        logging.warning(
            "%s: %d example(s) have the id of one before, the first %r in %s: it does not tell predictions apart",
            path,
            len(again),
            again[0].id,
            again[0].place,
        )


def warn_of_skipped(path: str, places: Sequence[str], why: str) -> None:
    """Says once how many rows of a file were left out, and why."""
    if places:
        logging.warning("%s: left out %d row(s) %s, the first in %s", path, len(places), why, places[0])


def _texts(example: Example) -> tuple[str, ...]:
    if isinstance(example, TextExample):
        return (example.text_a,) if example.text_b is None else (example.text_a, example.text_b)
    if isinstance(example, ChoiceExample):
        return example.choices
    if isinstance(example, QuestionExample):
        return (example.question, example.context)
    assert isinstance(example, TagExample)
    return example.words
