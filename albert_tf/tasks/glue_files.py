"""Readers of the GLUE files as gluebenchmark.com distributes them: tab separated, quotes are ordinary characters.

Columns are found by the names in the header, so the same reader takes train, dev and test files, whose columns differ.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from absl import logging

from albert_tf.errors import InputError
from albert_tf.tasks import rows
from albert_tf.tasks.examples import Example, TextExample
from albert_tf.tasks.rows import Row, place

_COLA_COLUMNS = ("source", "label", "original mark", "sentence")
_COLA_TEST_HEADER = ["index", "sentence"]
# The label columns of all tasks: where a file has another task's and not this one's, it is that task's file.
_LABEL_COLUMNS = ("label", "gold_label", "is_duplicate", "quality", "score")


@dataclasses.dataclass(frozen=True)
class Layout:
    """The columns of a task's files, each by the names it has in one or another of them, in lower case.

    Attributes:
        title: of the task, for messages.
        text_a, text_b: the columns of the texts; no `text_b` for a single sentence.
        label: the column of the label, which test files lack.
        labels: what may stand there; empty for a score.
        ids: the column of the row's own number; where it is missing rows are numbered from 0.
        limits: least and largest score.
        skips_broken: whether labelled rows with another number of columns are left out, with a warning. The files of
            QQP have a few that a line end inside a question tore apart, and the released script leaves them out. (In
            Quora's own file such questions are in quotes, and whole.)
        undecided: a label whose rows are left out, with a warning: "-" where annotators did not agree.
    """

    title: str
    text_a: tuple[str, ...]
    text_b: tuple[str, ...] = ()
    label: tuple[str, ...] = ("label",)
    labels: tuple[str, ...] = ()
    ids: tuple[str, ...] = ("index", "id")
    limits: tuple[float, float] = (0.0, 5.0)
    skips_broken: bool = False
    undecided: str | None = None


def read(path: str, layout: Layout) -> list[Example]:
    """Reads a file with a header.

    Raises:
        InputError: the header is another task's, a column is there twice or missing in a row, or a label is none.
    """
    header, *body = _rows(path, layout)
    columns = _columns(header, path, layout)
    examples: list[Example] = []
    broken: list[str] = []
    undecided: list[str] = []
    for row in body:
        if len(row.cells) != len(header.cells):
            if not layout.skips_broken or columns.label is None:
                raise rows.wrong_width(path, row, len(header.cells))
            broken.append(place(path, row.line))
            continue
        if columns.label is not None and layout.undecided and row.cells[columns.label].strip() == layout.undecided:
            undecided.append(place(path, row.line))
            continue
        examples.append(_example(row, len(examples), path, columns, layout))
    rows.warn_of_skipped(path, broken, "with missing or surplus columns")
    rows.warn_of_skipped(path, undecided, f"with the label {layout.undecided!r}")
    return rows.checked(path, examples)


def _rows(path: str, layout: Layout) -> list[Row]:
    """The rows; of a file that has torn ones, or names in quotes, those of CSV if they are whole, as in Quora's own."""
    found = rows.read_rows(path)
    if not layout.skips_broken or (_is_whole(found) and not _is_quoted(found[0])):
        return found
    try:
        quoted = rows.quoted_rows(path)
    except InputError:
        return found
    if not _is_whole(quoted):
        return found
    logging.info("%s: cells are in double quotes where they hold a quote or a line end", path)
    return quoted


def _is_whole(found: Sequence[Row]) -> bool:
    return all(len(row.cells) == len(found[0].cells) for row in found)


def _is_quoted(header: Row) -> bool:
    return all(re.fullmatch('".*"', cell) for cell in header.cells)


def read_cola(path: str, layout: Layout) -> list[Example]:
    """Reads a file of CoLA: four columns and no header, or a test file with the header `index`, `sentence`.

    Raises:
        InputError: it is neither, or a label is neither 0 nor 1.
    """
    body = rows.read_rows(path)
    if body[0].cells == _COLA_TEST_HEADER:
        return read(path, layout)
    if len(body[0].cells) != len(_COLA_COLUMNS) or body[0].cells[1] not in layout.labels:
        raise InputError(
            f"{place(path, 1)}: {layout.title} files have no header and four columns ({', '.join(_COLA_COLUMNS)}), or "
            f"the header {', '.join(_COLA_TEST_HEADER)}; found {rows.names(body[0].cells)}"
        )
    examples: list[Example] = []
    for row in body:
        if len(row.cells) != len(_COLA_COLUMNS):
            raise rows.wrong_width(path, row, len(_COLA_COLUMNS))
        examples.append(_example(row, len(examples), path, _Columns(text_a=3, label=1), layout))
    return rows.checked(path, examples)


@dataclasses.dataclass(frozen=True)
class _Columns:
    text_a: int
    text_b: int | None = None
    label: int | None = None
    id: int | None = None


def _example(row: Row, index: int, path: str, columns: _Columns, layout: Layout) -> TextExample:
    where = place(path, row.line)
    cells = row.cells
    label: str | float | None = None
    if columns.label is not None:
        label = cells[columns.label].strip()
        if not layout.labels:
            label = rows.number(label, where, layout.limits)
        elif label not in layout.labels:
            raise InputError(
                f"{where}: the label is {label!r}, but {layout.title}'s labels are {', '.join(layout.labels)}"
            )
    return TextExample(
        id=str(index) if columns.id is None else cells[columns.id],
        text_a=cells[columns.text_a],
        text_b=None if columns.text_b is None else cells[columns.text_b],
        label=label,
        place=where,
    )


def _columns(header: Row, path: str, layout: Layout) -> _Columns:
    """Where the columns stand; the header of another task is refused."""
    where = place(path, header.line)
    text_a, text_b, label, identifier = (
        rows.find_column(header.cells, wanted, where)
        for wanted in (layout.text_a, layout.text_b, layout.label, layout.ids)
    )
    foreign = label is None and rows.find_column(header.cells, _LABEL_COLUMNS, where) is not None
    if text_a is None or (layout.text_b and text_b is None) or foreign:
        if _is_quoted(header):
            raise InputError(
                f"{where}: the cells are in double quotes, and those of {layout.title}'s files are "
                f"not: take GLUE's own files, or save this one as .csv and read it as your own (--task=text "
                f"{_flags_for(layout)})"
            )
        expected = [names[0] for names in (layout.text_a, layout.text_b) if names]
        raise InputError(
            f"{where}: {layout.title} needs a header with the columns {', '.join(expected)} and, "
            f"where there are labels, {layout.label[0]}; found {rows.names(header.cells)}: is it another task's file?"
        )
    return _Columns(text_a, text_b, label, identifier)


def _flags_for(layout: Layout) -> str:
    """How a file with this task's columns is read as a person's own."""
    columns = {"text_column": layout.text_a, "text_b_column": layout.text_b, "label_column": layout.label}
    return " ".join(f"--{flag}={names[0]}" for flag, names in columns.items() if names)
