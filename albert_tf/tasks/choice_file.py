"""A person's own questions with two or more choices, in the files that `tables` reads.

Columns that are not named are found by usual names: the choices as a list of JSON ("choices", "options", "endings"), as
numbered or lettered columns ("choice_1", "option b", "ending0", "answerC"), or as columns A, B, C, … beside a question.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Collection, Mapping, MutableMapping, Sequence
from typing import Any, NamedTuple

from albert_tf.errors import InputError
from albert_tf.json_text import shown
from albert_tf.tasks import choice_labels, rows, tables
from albert_tf.tasks.choice_labels import Labelled
from albert_tf.tasks.examples import LEAST_CHOICES, ChoiceExample, Example
from albert_tf.tasks.submissions import LETTERS, write_choices
from albert_tf.tasks.tables import Column, Line, Table
from albert_tf.tasks.task import Task

PASSAGE_NAMES = ("passage", "context", "article", "text")
QUESTION_NAMES = ("question", "query")
_LABEL = ("label", "answer")
_ID = ("id", "index")
LIST_NAMES = ("choices", "options", "endings")  # of JSON
_ONE_OF_SEVERAL = re.compile(r"(choice|option|ending|answer)[ _-]?(\d+|[a-z])")


@dataclasses.dataclass(frozen=True)
class ChoiceColumns:
    """Where a file has what, by the names of columns or by their numbers counted from 0; None means: by usual names.

    Attributes:
        choices: the columns of the choices in order; or one column, of JSON, with a list in it; or () for those with
            usual names. Empty cells at the end are choices that a question does not have.
        passage, question: what the choices are about; one of them may be missing.
        label: the right choice as a letter ("A") or a number, as the name of its column, or as its text.
        id: of an identifier; else rows are numbered from 0.
        first_label: the number of the first choice, 0 or 1, which also says that labels are numbers where they can be;
            None: 0, and see `choice_labels.indices` for labels that can be texts too.
        has_header: whether the first line names the columns; None finds out.
    """

    choices: tuple[Column, ...] = ()
    passage: Column | None = None
    question: Column | None = None
    label: Column | None = None
    id: Column | None = None
    first_label: int | None = None
    has_header: bool | None = None


def read_choices(path: str, columns: ChoiceColumns, described: MutableMapping[str, str] | None = None) -> list[Example]:
    """Reads questions with choices; a file without the label's column, or with nothing in it, is unlabelled.

    Args:
        path: of the file.
        columns: where what is.
        described: is given, under the path, a sentence on which column is what.

    Raises:
        InputError: a column is not there, a cell is no text, a question has fewer than two choices, or the label is
            none of them, or can be one of two; the message names file and line.
    """
    others = (columns.passage, columns.question, columns.label, columns.id)
    given = [*columns.choices, *(column for column in others if column is not None)]
    usual = (*PASSAGE_NAMES, *QUESTION_NAMES, *_LABEL)
    table = tables.read_table(path, columns.has_header, usual, given, _ID)
    places, passage, question, label, identifier = _find(table, columns)
    if described is not None:
        names = [f"choice {letter}" for letter in LETTERS[: len(places)]] if len(places) > 1 else ["list of choices"]
        uses = {"passage": passage, "question": question, **dict(zip(names, places)), "label": label, "id": identifier}
        described[path] = table.described(uses, {"label": columns.label})
    if label is not None and all(line.cells[label] in (None, "") for line in table.lines):
        label = None
    passages, questions = (
        [""] * len(table.lines) if column is None else table.texts(column) for column in (passage, question)
    )
    choices: list[tuple[str, ...]] = []
    with_numbers: list[Line] = []
    for line in table.lines:
        values = _choices(line, places)
        choices.append(tuple(tables.text_of(value, line.place) for value in values))
        if choices[-1] != values:
            with_numbers.append(line)
    labels: list[int | None] = [None] * len(choices)
    if label is not None:
        given_labels = [Labelled(line.cells[label], of, line.place) for line, of in zip(table.lines, choices)]
        names = [] if table.names is None else [table.names[at] for at in places]
        labels = choice_labels.indices(given_labels, names, columns.first_label)
    tables.warn_of_numbers(path, with_numbers)
    return rows.checked(
        path,
        [
            ChoiceExample(
                id=line.identifier(identifier, number),
                passage=passages[number],
                question=questions[number],
                choices=choices[number],
                label=labels[number],
                place=line.place,
            )
            for number, line in enumerate(table.lines)
        ],
    )


def choice_file_task(columns: ChoiceColumns) -> Task:
    """The task for a person's own files with these columns.

    Raises:
        InputError: `first_label` is neither 0 nor 1.
    """
    if columns.first_label not in (None, 0, 1):
        raise InputError(f"the first choice has the number {columns.first_label}, but it must be 0 or 1")
    described: dict[str, str] = {}
    return Task(
        name="choice_file",
        title="choice file",
        head="multiple_choice",
        read=functools.partial(read_choices, columns=columns, described=described),
        files=tables.SPLITS,
        write_submission=write_choices,
        metrics=("accuracy",),
        words="your own questions with two or more choices, as TSV, CSV or JSON lines",
        columns=described,
    )


def usual_choices(row: Mapping[str, Any], taken: Collection[str] = ()) -> tuple[str, ...]:
    """The columns that hold choices by their names, in order; () where there are none, or one alone.

    Args:
        row: a row of the file: each column's name, as it stands there, and what is under it.
        taken: names of columns that are something else.
    """
    free = [name for name in row if name not in taken]
    for name in free:
        if name.lower() in LIST_NAMES and isinstance(row[name], list):
            return (name,)
    return series_of_choices(row, taken)


def series_of_choices(names: Collection[str], taken: Collection[str] = ()) -> tuple[str, ...]:
    """The names, in order, of columns that hold a choice each; () where there are none, or one alone.

    Args:
        names: of all columns.
        taken: those of columns that are something else.
    """
    series: dict[str, dict[int, str]] = {}
    is_about_something = any(name.lower() in (*PASSAGE_NAMES, *QUESTION_NAMES) for name in names)
    for name in names:
        if name in taken:
            continue
        match = _ONE_OF_SEVERAL.fullmatch(name.lower())
        if match:
            is_number = match[2].isdecimal()
            number = int(match[2]) if is_number else LETTERS.index(match[2].upper())
            series.setdefault(f"{match[1]} {is_number}", {})[number] = name
        elif is_about_something and len(name) == 1 and name in LETTERS:
            series.setdefault("", {})[LETTERS.index(name)] = name
    for found in series.values():
        numbers = sorted(found)
        if len(numbers) >= LEAST_CHOICES and numbers[0] <= 1 and numbers[-1] - numbers[0] == len(numbers) - 1:
            return tuple(found[number] for number in numbers)
    return ()


def without_empty_end(values: Sequence[Any]) -> list[Any]:
    """A row's values in columns of choices, up to the last one: empty cells behind it are choices it does not have."""
    count = len(values)
    while count and values[count - 1] in (None, ""):
        count -= 1
    return list(values[:count])


class _Found(NamedTuple):
    choices: Sequence[int]
    passage: int | None
    question: int | None
    label: int | None
    id: int | None


def _find(table: Table, columns: ChoiceColumns) -> _Found:
    """The positions of the columns: those asked for, else by usual names among the others."""
    choices = [table.find(column, "a choice") for column in columns.choices]
    passage, question = (
        None if column is None else table.find(column, what)
        for column, what in ((columns.passage, "the passage"), (columns.question, "the question"))
    )
    label, identifier = (
        None if column is None else table.find_optional(column, ()) for column in (columns.label, columns.id)
    )
    asked = {"passage_column": passage, "question_column": question, "label_column": label, "id_column": identifier}
    table.check_apart([*(("choice_columns", column) for column in choices), *asked.items()])
    if not choices:
        choices = _named_choices(table, tuple(asked.values()))
    taken = (*choices, *asked.values())
    if passage is None:
        passage = table.find_optional(None, PASSAGE_NAMES, taken)
    if question is None:
        question = table.find_optional(None, QUESTION_NAMES, taken)
    if passage is None and question is None:
        raise InputError(
            f"{table.path} has neither a passage nor a question ({table.shown_names}): name the column of one of them "
            "(--passage_column, --question_column)"
        )
    if columns.label is None:
        label = table.find_optional(None, _LABEL, taken)
    if columns.id is None:
        identifier = table.find_optional(None, _ID, taken)
    return _Found(choices, passage, question, label, identifier)


def _named_choices(table: Table, taken: Collection[int | None]) -> list[int]:
    """The columns of choices by their names.

    Raises:
        InputError: there are none, or one of the names is there twice.
    """
    names = table.names or ()
    row = dict(zip(names, table.lines[0].cells))
    found = usual_choices(row, [name for column, name in enumerate(names) if column in taken])
    if not found:
        raise InputError(
            f"{table.path} has no columns of choices with usual names, such as choice_1 and choice_2 "
            f"({table.shown_names}): name two or more (--choice_columns), or one that holds a JSON list"
        )
    return [table.find(name, "a choice") for name in found]


def _choices(line: Line, places: Sequence[int]) -> tuple[Any, ...]:
    """What there is to choose from, as it stands."""
    values = [line.cells[column] for column in places]
    if len(values) == 1 and isinstance(values[0], list):
        values = list(values[0])
    values = without_empty_end(values)
    if not LEAST_CHOICES <= len(values) <= len(LETTERS):
        raise InputError(
            f"{line.place}: {LEAST_CHOICES} to {len(LETTERS)} texts to choose from are needed, but there are "
            f"{shown(values)}"
        )
    return tuple(values)
