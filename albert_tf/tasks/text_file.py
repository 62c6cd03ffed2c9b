"""A person's own data: one or two texts and a label, several labels, a number, or a question with choices.

See `tables` for the forms of files. Columns are given by name or by number; without that they are found by usual names
("text", "label", …), and in a file without a header by their order: the texts, then the label.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import json
import math
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any

from absl import logging

from albert_tf import json_text
from albert_tf.errors import InputError
from albert_tf.head_config import MULTI_LABEL, REGRESSION, SINGLE_LABEL
from albert_tf.json_text import JsonFault, shown
from albert_tf.tasks import rows, tables
from albert_tf.tasks.examples import Example, TextExample
from albert_tf.tasks.labels import is_number
from albert_tf.tasks.submissions import write_labels
from albert_tf.tasks.tables import Column, Line, Table
from albert_tf.tasks.task import Layout, Task

TEXT_NAMES = (
    *("text_a", "text", "sentence", "sentence1", "question1", "premise"),
    *("review", "comment", "content", "utterance"),
)
SECOND_TEXT_NAMES = ("text_b", "sentence2", "question2", "hypothesis")
_LABEL = ("label", "labels", "class", "category", "sentiment", "intent", "target", "score", "rating", "gold_label")
ID_NAMES = ("id", "index", "idx")
_NAMES_OF_A_HEADER = (*TEXT_NAMES, *SECOND_TEXT_NAMES, *_LABEL)  # "id" is a label too, where languages are told apart
DEFAULT_METRICS = {  # by the problem; the first chooses the best checkpoint
    SINGLE_LABEL: ("accuracy", "macro_f1"),
    MULTI_LABEL: ("micro_f1", "macro_f1", "accuracy"),
    REGRESSION: ("pearson", "spearman", "mean_squared_error"),
}
_LEAST_ROWS_TO_JUDGE = 8  # below that a label that stands in the first line alone is no proof
_HEADER = "if the line is a header, name the columns (--text_column, --label_column) or say --has_header"
_NO_HEADER = "if it is not, say --nohas_header"


@dataclasses.dataclass(frozen=True)
class Columns:
    """Where a file has what; None means: look for it.

    Attributes:
        text_a, text_b: the texts; for a single text with `text_b` None the file has no column with a usual name for it.
        label: of the label; files without it are unlabelled.
        id: of an identifier that goes into the predictions; else rows are numbered from 0.
        has_header: whether the first line names the columns; None finds out.
    """

    text_a: Column | None = None
    text_b: Column | None = None
    label: Column | None = None
    id: Column | None = None
    has_header: bool | None = None


def read_texts(
    path: str,
    columns: Columns,
    problem: str = SINGLE_LABEL,
    separator: str = ",",
    described: MutableMapping[str, str] | None = None,
    layouts: MutableMapping[str, Layout] | None = None,
) -> list[Example]:
    """Reads texts with their labels.

    A file without the label's column, or with nothing in it, is unlabelled. In a multi-label task a cell is a JSON list
    or has labels between separators, and an empty one means that no label holds.

    Args:
        path: of the file.
        columns: where what is.
        problem: `SINGLE_LABEL`, `MULTI_LABEL` or `REGRESSION`.
        separator: between labels.
        described: is given, under the path, a sentence on which column is what.
        layouts: is given, under the path, how the table begins; not of JSON.

    Raises:
        InputError: a column is not there, a cell is no text, a label is missing or no number, or the first row seems to
            be a header with unusual names; with file and line.
    """
    given = [column for column in (columns.text_a, columns.text_b, columns.label, columns.id) if column is not None]
    table = tables.read_table(path, columns.has_header, _NAMES_OF_A_HEADER, given, ID_NAMES)
    found = _find(table, columns)
    if described is not None:
        uses = {"text": found.text_a, "second text": found.text_b, "label": found.label, "id": found.id}
        described[path] = table.described(uses, {"label": columns.label})
    if layouts is not None and rows.ending(path) not in rows.JSON:
        layouts[path] = Layout(table.names, table.width, table.lines[0].place)
    labels = [_cell(line, found.label) for line in table.lines]
    is_labelled = any(label is not None for label in labels)
    if is_labelled and table.names is None and columns.has_header is None:
        _check_first_line(table, labels, problem, separator)
    several = functools.partial(_several, separator=separator)
    readers: dict[str, Callable[[Any, str], Any]] = {SINGLE_LABEL: _class, MULTI_LABEL: several, REGRESSION: _number}
    text_a = table.texts(found.text_a)
    text_b = [None] * len(table.lines) if found.text_b is None else table.texts(found.text_b)
    return rows.checked(
        path,
        [
            TextExample(
                id=line.identifier(found.id, number),
                text_a=text_a[number],
                text_b=text_b[number],
                label=readers[problem](labels[number], line.place) if is_labelled else None,
                place=line.place,
            )
            for number, line in enumerate(table.lines)
        ],
    )


def text_file_task(
    columns: Columns | None = None,
    *,
    problem: str = SINGLE_LABEL,
    separator: str = ",",
    labels: Sequence[str] = (),
    metrics: Sequence[str] = (),
) -> Task:
    """The task for a person's own files.

    Args:
        columns: where what is; by default found by usual names or by order.
        problem: `SINGLE_LABEL`, `MULTI_LABEL` or `REGRESSION`.
        separator: between the labels of a multi-label task.
        labels: in the order of the logits; by default those in the training file, sorted (`labels.find_labels`).
        metrics: the first chooses the best checkpoint; by default accuracy, micro F1 or Pearson's correlation.

    Raises:
        InputError: the problem is none of the three, or a regression has labels.
    """
    if problem not in DEFAULT_METRICS:
        raise InputError(f"the problem is {problem!r}, but must be one of {', '.join(DEFAULT_METRICS)}")
    if problem == REGRESSION and labels:
        raise InputError(f"a regression has numbers and no labels, but there are {', '.join(labels)}")
    if problem == MULTI_LABEL and not separator:
        raise InputError("the separator between labels is empty: give one, such as ','")
    described: dict[str, str] = {}
    layouts: dict[str, Layout] = {}
    return Task(
        name="text_file",
        title="text file",
        head="classifier",
        read=functools.partial(
            read_texts,
            columns=columns or Columns(),
            problem=problem,
            separator=separator,
            described=described,
            layouts=layouts,
        ),
        files=tables.SPLITS,
        write_submission=write_labels,
        metrics=tuple(metrics) or DEFAULT_METRICS[problem],
        labels=tuple(labels),
        problem_type=problem,
        words="your own TSV, CSV or JSON lines: a text or a pair and a label, several labels, or a number",
        starts_at_mean=problem == REGRESSION,
        columns=described,
        layouts=layouts,
    )


@dataclasses.dataclass(frozen=True)
class _Found:
    text_a: int
    text_b: int | None
    label: int | None
    id: int | None


def _find(table: Table, columns: Columns) -> _Found:
    """The positions of the columns: those asked for, else by usual names, else by order."""
    text_a, text_b, identifier = (
        None if column is None else table.find(column, what)
        for column, what in ((columns.text_a, "the text"), (columns.text_b, "the second text"), (columns.id, "the id"))
    )
    label = None if columns.label is None else table.find_optional(columns.label, _LABEL)
    asked = {"text_column": text_a, "text_b_column": text_b, "label_column": label, "id_column": identifier}
    table.check_apart(asked.items())
    taken = tuple(asked.values())
    if columns.label is None:
        label = table.find_optional(None, _LABEL, taken)
    if columns.id is None:
        identifier = table.find_optional(None, ID_NAMES, taken)
    if text_a is not None:
        return _Found(text_a, text_b, label, identifier)
    if text_b is None:
        text_b = table.find_optional(None, SECOND_TEXT_NAMES, taken)
    text_a = table.find_optional(None, TEXT_NAMES, taken)
    if text_a is not None:
        return _Found(text_a, text_b, label, identifier)
    others = [column for column in range(table.width) if column not in (label, identifier, text_b)]
    if label is None and columns.label is None and len(others) > 1:
        label = others.pop()
    if text_b is None and len(others) == 2:
        text_b = others.pop()
    if len(others) != 1:
        raise InputError(
            f"{table.path} has {table.width} column(s) ({table.shown_names}), and which of them are texts cannot be "
            "told: name the columns of the text and of the label (--text_column, --label_column), or those of "
            "questions with choices (--choice_columns, --question_column, --passage_column), or give their numbers "
            "counted from 0"
        )
    return _Found(others[0], text_b, label, identifier)


def _check_first_line(table: Table, labels: Sequence[Any], problem: str, separator: str) -> None:
    """Refuses a file whose first line is nearly for sure a header with unusual names, and warns of what may be one."""
    # Equal rows count once: where files with a header were joined, it comes again.
    found = list({tuple(line.cells): (line.place, label) for line, label in zip(table.lines, labels)}.values())
    where = table.lines[0].place
    if problem == REGRESSION:
        _check_first_number(where, [label for _, label in found])
    elif problem == MULTI_LABEL:
        _check_first_label(where, [_several(label, place, separator) for place, label in found], are_several=True)
    else:
        _check_first_label(where, [() if label is None else (label,) for _, label in found], are_several=False)


def _check_first_number(where: str, labels: Sequence[Any]) -> None:
    if len(labels) > 1 and not is_number(labels[0]) and all(map(is_number, labels[1:])):
        raise InputError(f"{where}: the label is {shown(labels[0])}, and those below are numbers: {_HEADER}")


def _check_first_label(where: str, labels: Sequence[tuple[str, ...]], are_several: bool) -> None:
    """A row may have several labels, and then many are rare, so that none is refused."""
    first, counts = labels[0], collections.Counter(label for of_row in labels[1:] for label in of_row)
    if len(first) != 1 or first[0] in counts:
        return
    said = f"{where}: the label {first[0]!r} is in no other row"
    if not are_several and len(labels) >= _LEAST_ROWS_TO_JUDGE and len(counts) <= len(labels) // 2:
        raise InputError(f"{said}: {_HEADER}; {_NO_HEADER}")
    if len(counts) > 1 and min(counts.values()) > 1:  # with one row of each label, any of them may be the first
        logging.warning("%s, and each of the others is in several: %s; %s", said, _HEADER, _NO_HEADER)


def _cell(line: Line, column: int | None) -> Any:
    """What is there; None for a column that is not there, for an empty cell and for the NaN of a missing value."""
    value = None if column is None else line.cells[column]
    if isinstance(value, float) and math.isnan(value):
        return None
    return value if not isinstance(value, str) else value.strip() or None


def _class(value: Any, where: str) -> str:
    if value is None:
        raise InputError(f"{where}: there is no label, and other rows of the file have one")
    if isinstance(value, (list, dict)):
        raise InputError(
            f"{where}: one label is needed, but there is {shown(value)}: is it a multi-label task "
            f"(--problem_type={MULTI_LABEL})?"
        )
    return value if isinstance(value, str) else json.dumps(value)


def _several(value: Any, where: str, separator: str) -> tuple[str, ...]:
    if isinstance(value, str) and value.startswith("["):
        try:
            value = json_text.parse(value)
        except JsonFault as error:
            raise InputError(
                f"{where}: the labels {value!r:.60} are not a JSON list: {error.reason} at column {error.column}"
            ) from error
    if isinstance(value, str):
        value = [part.strip() for part in value.split(separator)]
    values = value if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(_class(each, where) for each in values if each is not None and each != ""))


def _number(value: Any, where: str) -> float:
    if value is None or isinstance(value, (bool, list, dict)):
        raise InputError(f"{where}: the label is {shown(value)}, but must be a number")
    return rows.number(str(value), where)


TEXT_FILE = text_file_task()
