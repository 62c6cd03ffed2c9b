"""A person's own file as a table: `.tsv` and `.txt` cut at tabs, `.csv` with quotes, `.jsonl` and `.json` by keys."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Union

from absl import logging

from albert_tf.errors import InputError
from albert_tf.json_text import shown
from albert_tf.tasks import json_records, rows
from albert_tf.tasks.rows import Row, place

Column = Union[str, int]
SPLITS = {
    split: tuple(f"{split}.{ending}" for ending in ("tsv", "csv", "jsonl", "json", "txt"))
    for split in ("train", "dev", "test")
}


@dataclasses.dataclass(frozen=True)
class Line:
    """A row as a person sees it: cells by position, or by name where there is a header or the file is JSON."""

    place: str
    cells: Sequence[Any]

    def text(self, column: int) -> str:
        """The text of a cell, see `text_of`."""
        return text_of(self.cells[column], self.place)

    def identifier(self, column: int | None, number: int) -> str:
        """What is in the column of identifiers, else the number of the row."""
        return str(number) if column is None or self.cells[column] in (None, "") else self.text(column)


@dataclasses.dataclass(frozen=True)
class Table:
    """All rows of a file.

    Attributes:
        path: of the file.
        names: the names of the columns; None where the file has no header.
        lines: the rows, each with one cell for each column; of JSON the values as they are, None for a missing key.
    """

    path: str
    names: tuple[str, ...] | None
    lines: list[Line]

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.names) if self.names is not None else len(self.lines[0].cells)

    @property
    def shown_names(self) -> str:
        """The header for a message."""
        return "no header" if self.names is None else rows.names(self.names)

    def find(self, column: Column, what: str) -> int:
        """The position of a column given by its name, or by its number counted from 0.

        Args:
            column: a name as in the header; a number, also as text, where no column has that name.
            what: what the column is for, for the message: "the text".

        Raises:
            InputError: there is none, or the name is there twice.
        """
        names = self.names or ()
        if isinstance(column, str) and column in names:
            if names.count(column) > 1:
                raise InputError(f"{place(self.path, 1)}: the column {column!r} is there twice: give its number")
            return names.index(column)
        if str(column).isdecimal() and int(column) < self.width:
            return int(column)
        raise InputError(
            f"{self.path} has no column {column!r} for {what}: it has {self.width} column(s) ({self.shown_names}); "
            "give a name of the header, or a number counted from 0"
        )

    def find_optional(
        self, column: Column | None, usual: Sequence[str], taken: Collection[int | None] = ()
    ) -> int | None:
        """The position of a column that need not be there: of the one asked for, or else of one with a usual name.

        Args:
            column: as for `find`; None where none is asked for.
            usual: names in lower case, the most usual first.
            taken: positions of columns that are something else, whatever their names are.

        Raises:
            InputError: the name is there twice.
        """
        if column is not None:
            is_there = column in (self.names or ()) or (str(column).isdecimal() and int(column) < self.width)
            return self.find(column, "") if is_there else None
        free = ["" if at in taken else name for at, name in enumerate(self.names or ())]
        return rows.find_column(free, usual, place(self.path, 1))

    def check_apart(self, asked: Iterable[tuple[str, int | None]]) -> None:
        """Refuses one column for two uses.

        Args:
            asked: name of the flag and position of each column that is asked for; None where it is not there.

        Raises:
            InputError: two have the same position.
        """
        flags: dict[int, str] = {}
        for flag, column in asked:
            if column is None:
                continue
            if column in flags:
                both = " and ".join(dict.fromkeys(f"--{name}" for name in (flags[column], flag)))
                name = column if self.names is None else repr(self.names[column])
                raise InputError(f"{self.path}: column {name} is named twice, by {both}: each needs one of its own")
            flags[column] = flag

    def texts(self, column: int) -> list[str]:
        """The texts in a column, with a warning that counts numbers.

        Raises:
            InputError: a cell is no text.
        """
        found = [line.text(column) for line in self.lines]
        warn_of_numbers(self.path, [line for line in self.lines if not isinstance(line.cells[column], str)])
        return found

    def described(self, uses: Mapping[str, int | None], asked: Mapping[str, Column | None]) -> str:
        """Which column is what, for a person.

        Args:
            uses: what a column is for ("text") to its position; None where there is none.
            asked: the same to the column that was asked for, if one was; it may be missing.
        """
        names = [str(number) for number in range(self.width)] if self.names is None else [repr(n) for n in self.names]
        parts = []
        for what, column in uses.items():
            if column is not None:
                parts.append(f"the {what} is column {names[column]}")
            elif asked.get(what) is not None:
                parts.append(f"there is no column {asked[what]!r} for the {what}")
        unused = [name for number, name in enumerate(names) if number not in uses.values()]
        parts.append(f"not used: {rows.names(unused)}" if unused else "all are used")
        return ", ".join(parts) + ("; the file has no header" if self.names is None else "")


def text_of(value: Any, where: str) -> str:
    """A value as a text; a whole number of JSON becomes one.

    Raises:
        InputError: it is no text; `where` is its place.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise InputError(f"{where}: a text is needed, but there is {shown(value)}")
    return value


def warn_of_numbers(path: str, lines: Sequence[Line]) -> None:
    """Counts the rows of a file that have a number in place of a text."""
    if lines:
        logging.warning(
            "%s: %d row(s) have a number where a text is expected, the first in %s: it is taken for a text",
            path,
            len(lines),
            lines[0].place,
        )


def read_table(
    path: str, has_header: bool | None, usual: Sequence[str], given: Sequence[Column] = (), beside: Sequence[str] = ()
) -> Table:
    """Reads a file; its form follows from the ending of its name, `.gz` behind that aside.

    Args:
        path: of the file.
        has_header: whether the first line names the columns; None finds out: it does if it has one of `given`, two of
            the other names, or one of `usual` and no cell that comes again below it, which is said in a warning.
        usual: names that a header is known by, in lower case.
        given: columns as a person names them; numbers say nothing of a header.
        beside: further names, in lower case, that alone are no evidence.

    Rows that repeat the header are left out, as blank ones are, with a warning that counts them.

    Raises:
        InputError: a row has another number of columns than the first, a quote is not closed, JSON is broken, or there
            is no row; the message names file and line.
    """
    if rows.ending(path) in rows.JSON:
        return _json_table(path)
    body = rows.read_csv(path) if rows.ending(path) == rows.CSV else rows.read_rows(path)
    width = len(body[0].cells) if body else 0
    if width > 1:  # in a file of texts alone an empty line is an empty text, so that predictions stay line by line
        blank = [place(path, row.line) for row in body if not any(row.cells)]
        rows.warn_of_skipped(path, blank, "without content")
        body = [row for row in body if any(row.cells)]
    if not body:
        raise InputError(f"{path} has rows without content alone: it must have one example a line")
    for row in body:
        if len(row.cells) != width:
            raise rows.wrong_width(path, row, width)
    first = tuple(cell.strip() for cell in body[0].cells)
    if has_header is None:
        has_header = _is_header(path, body, usual, given, beside)
    if has_header:
        rows.warn_of_repeated_columns(place(path, body[0].line), first)
        body = _with_one_header(path, body)
    lines = [Line(place(path, row.line), row.cells) for row in body[has_header:]]
    if not lines:
        raise InputError(f"{path} has a header and no rows: it must have one example a line below it")
    return Table(path, first if has_header else None, lines)


def _is_header(
    path: str, body: Sequence[Row], usual: Sequence[str], given: Sequence[Column], beside: Sequence[str]
) -> bool:
    """Whether the first row names the columns, see `read_table`."""
    first = [cell.strip().lower() for cell in body[0].cells]
    asked = {str(column).strip().lower() for column in given if not str(column).isdecimal()}
    if asked.intersection(first):
        return True
    known = set(first).intersection(usual)
    if not known or len(first) == 1 or len(known | set(first).intersection(beside)) > 1:
        return bool(known)
    below = [[cell.strip().lower() for cell in row.cells] for row in body[1:]]
    below = [row for row in below if row != first]  # files that were joined have their header again
    comes_again = any(cell and any(row[column] == cell for row in below) for column, cell in enumerate(first))
    logging.warning(
        "%s is taken for %s, with %r as the only usual name of a column: say --%shas_header if that is wrong",
        place(path, body[0].line),
        "a row and not for a header" if comes_again else "a header and not for a row",
        next(iter(known)),
        "" if comes_again else "no",
    )
    return not comes_again


def _with_one_header(path: str, body: Sequence[Row]) -> list[Row]:
    """The header and the rows below that are not the same again, as it is in files that were joined.

    No example says what all its columns are named, and learned as one it would be a class of its own. A file of texts
    alone keeps all its rows, so that predictions stay line by line.
    """
    header = [cell.strip() for cell in body[0].cells]
    again = [row for row in body[1:] if len(header) > 1 and [cell.strip() for cell in row.cells] == header]
    rows.warn_of_skipped(path, [place(path, row.line) for row in again], "that repeat the header")
    lines = {row.line for row in again}
    return [row for row in body if row.line not in lines]


def _json_table(path: str) -> Table:
    records = json_records.read_records(path)
    names: dict[str, None] = {}
    for record in records:
        names.update(dict.fromkeys(record.values))
    if not records:
        raise InputError(f"{path} has no entries: it must have one JSON object for each example")
    return Table(path, tuple(names), [Line(r.place, [r.values.get(name) for name in names]) for r in records])
