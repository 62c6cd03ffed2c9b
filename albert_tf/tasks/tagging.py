"""Sequence labelling from CoNLL columns: one word a line with its tag, a blank line between sentences."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Collection, Sequence

from albert_tf import json_text
from albert_tf.errors import InputError
from albert_tf.json_text import JsonFault
from albert_tf.tasks import rows
from albert_tf.tasks.examples import Example, TagExample
from albert_tf.tasks.rows import Row, place
from albert_tf.tasks.submissions import write_tags
from albert_tf.tasks.task import Task

_DOCUMENT = "-DOCSTART-"
_NAMES_OF_COLUMNS = ("word", "words", "token", "tokens", "text", "sentence", "tag", "tags", "ner", "ner_tags", "label")
_LEAST_LINES_TO_JUDGE = 3  # whether they are words or sentences
_MOST_WORDS_WITH_SPACES = 0.5  # of those that stand before a tab; some corpora have words such as "10 000"


def read_columns(path: str, word_column: int = 0, tag_column: int | None = -1) -> list[Example]:
    """Reads sentences; tags stay as they stand, in whichever scheme (IOB1, IOB2, BIOES, plain).

    Columns are separated by a tab where the line has one, else by spaces. `-DOCSTART-` lines are no words, and neither
    are comments: lines at the beginning of a sentence that start with "#" and have another number of columns than
    words have.

    Args:
        path: of the file.
        word_column, tag_column: counted from 0, or from the end with negative numbers; a file of one column, and any
            with `tag_column` None, has no tags.

    Raises:
        InputError: a line has another number of columns than the first, a column is not there or empty, or the file is
            plainly another thing: JSON, or a table of texts or with a header.
    """
    lines = rows.read_lines(path)
    _refuse_other_forms(path, lines)
    width = _width(lines)
    examples: list[Example] = []
    sentence: list[Row] = []
    for number, line in enumerate([*lines, ""], start=1):
        cells = _cells(line)
        if cells and cells[0] != _DOCUMENT:
            if not sentence and line.startswith("#") and len(cells) != width:
                continue
            if len(cells) != width:
                raise InputError(
                    f"{place(path, number)} has {len(cells)} column(s), and the first word has {width}: every word "
                    "needs a line with as many"
                )
            sentence.append(Row(number, cells))
        elif sentence:
            examples.append(_example(sentence, len(examples), path, word_column, tag_column))
            sentence = []
    return rows.checked(path, examples)


def are_columns(lines: Sequence[str], tags: Collection[str]) -> bool:
    """Whether lines that are read as sentences are plainly words with their tags, all with as many columns.

    Args:
        lines: some of a file, blank ones too.
        tags: those that are known.
    """
    words = [cells for cells in map(_cells, lines) if cells and cells[0] != _DOCUMENT]
    if len(words) < _LEAST_LINES_TO_JUDGE or len(words[0]) < 2:
        return False
    # A sentence may well end in a word such as "O", but not one after the other, and all of them equally long.
    return all(len(cells) == len(words[0]) and cells[-1] in tags for cells in words)


def tagging_task(word_column: int = 0, tag_column: int | None = -1, labels: Sequence[str] = ()) -> Task:
    """The task for files with words and tags in these columns, see `read_columns`; labels as in `text_file`."""
    return Task(
        name="conll",
        title="CoNLL",
        head="tagger",
        read=functools.partial(read_columns, word_column=word_column, tag_column=tag_column),
        files={
            "train": ("train.txt", "train.conll", "train.tsv", "eng.train"),
            "dev": ("dev.txt", "dev.conll", "dev.tsv", "valid.txt", "eng.testa"),
            "test": ("test.txt", "test.conll", "test.tsv", "eng.testb"),
        },
        write_submission=write_tags,
        metrics=("entity_f1", "entity_precision", "entity_recall"),
        labels=tuple(labels),
        words="a tag for each word, such as names of persons and places, from files with a word and its tag a line",
    )


def _cells(line: str) -> list[str]:
    """The columns of a line; none of a blank one."""
    if not line.strip():
        return []
    return line.split("\t") if "\t" in line else re.split(" +", line.strip(" "))


def _width(lines: Sequence[str]) -> int:
    """How many columns the first word has."""
    for line in lines:
        cells = _cells(line)
        if cells and cells[0] != _DOCUMENT and not line.startswith("#"):
            return len(cells)
    return 1


def _refuse_other_forms(path: str, lines: Sequence[str]) -> None:
    """Refuses a file that would be read as words and tags, and cannot be meant so."""
    first = next((line for line in lines if line.strip()), "").strip()
    needed = "words and tags need one word a line, its tag behind a tab or a space, and a blank line between sentences"
    if rows.ending(path) in rows.JSON or (first[:1] in ("[", "{") and _is_json(first, lines)):
        raise InputError(f"{path} is JSON, and {needed}")
    cells = _cells(first)
    if len(cells) > 1 and {cells[0].lower(), cells[-1].lower()} <= {*_NAMES_OF_COLUMNS}:
        raise InputError(
            f"{place(path, lines.index(first) + 1 if first in lines else 1)}: {rows.names(cells)} seem to be names of "
            "columns, and such a line would be read as a word: take it away"
        )
    words = [line.split("\t", 1)[0] for line in lines if "\t" in line]
    if sum(" " in word.strip() for word in words) > len(words) * _MOST_WORDS_WITH_SPACES:
        raise InputError(
            f"{path} has texts of several words in its first column, and {needed}: is it a table for --task=text?"
        )


def _is_json(first: str, lines: Sequence[str]) -> bool:
    """Whether the first line is an object, or all lines together are a list or an object."""
    with contextlib.suppress(JsonFault):
        return isinstance(json_text.parse(first), dict)
    with contextlib.suppress(JsonFault):
        return isinstance(json_text.parse("\n".join(lines)), (dict, list))
    return False


def _example(sentence: Sequence[Row], index: int, path: str, word_column: int, tag_column: int | None) -> TagExample:
    tags = None
    if tag_column is not None and len(sentence[0].cells) > 1:
        tags = tuple(_cell(row, tag_column, path, "tag") for row in sentence)
    words = tuple(_cell(row, word_column, path, "word") for row in sentence)
    places = tuple(place(path, row.line) for row in sentence)
    return TagExample(str(index), words, tags, places[0], places)


def _cell(row: Row, column: int, path: str, what: str) -> str:
    if not -len(row.cells) <= column < len(row.cells):
        raise InputError(
            f"{place(path, row.line)} has {len(row.cells)} column(s), so there is no column {column} for the {what} "
            "(the first is 0, the last -1)"
        )
    cell = row.cells[column].strip()
    if not cell:
        raise InputError(f"{place(path, row.line)}: the {what} in column {column} is empty")
    return cell


CONLL = tagging_task()
