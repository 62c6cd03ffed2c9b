"""Chinese classification: AFQMC, LCQMC, ChnSentiCorp and CMNLI.

They go round in several forms, which are told apart by their content: CLUE's JSON lines, tab separated with a header,
and tab separated without one, where the label is the last column or the first; and these two as CSV, by their name.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from albert_tf import json_text
from albert_tf.errors import InputError
from albert_tf.head_config import SINGLE_LABEL
from albert_tf.json_text import shown
from albert_tf.tasks import json_records, rows
from albert_tf.tasks.examples import Example, TextExample
from albert_tf.tasks.rows import Row, place
from albert_tf.tasks.submissions import write_clue
from albert_tf.tasks.task import Task

_TEXT_A = ("sentence1", "text_a", "sentence", "text", "review")
_TEXT_B = ("sentence2", "text_b")
_LABEL = ("label",)
_ID = ("id", "qid", "index")
_UNDECIDED = "-"  # where the annotators of CMNLI did not agree


@dataclasses.dataclass(frozen=True)
class Layout:
    """What the files of a task hold.

    Attributes:
        title: of the task, for messages.
        is_pair: whether a row has two texts.
        labels: the labels.
        other_names: label as it stands in some of the files to its name here.
    """

    title: str
    is_pair: bool
    labels: tuple[str, ...]
    other_names: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def texts(self) -> int:
        """How many texts a row has."""
        return 2 if self.is_pair else 1

    def label(self, text: str) -> str | None:
        """The label that a cell means, None if it means none."""
        name = self.other_names.get(text.strip(), text.strip())
        return name if name in self.labels else None


class _Raw(NamedTuple):
    place: str
    texts: Sequence[str]
    label: str | None
    id: str | None


def read(path: str, layout: Layout) -> list[Example]:
    """Reads a file in any of the forms; rows without agreement on the label ("-") are left out with a warning.

    Raises:
        InputError: it has none of the forms, a row has other columns than the rest, or a label is none of the labels.
    """
    raws = _from_json(path, layout) if _is_json(path) else _from_table(path, layout)
    examples: list[Example] = []
    undecided: list[str] = []
    for raw in raws:
        label = None if raw.label is None else layout.label(raw.label)
        if raw.label == _UNDECIDED:
            undecided.append(raw.place)
            continue
        if raw.label is not None and label is None:
            raise InputError(
                f"{raw.place}: the label is {raw.label!r}, but {layout.title}'s labels are {', '.join(layout.labels)}"
            )
        second = raw.texts[1] if layout.is_pair else None
        examples.append(TextExample(raw.id or str(len(examples)), raw.texts[0], second, label, raw.place))
    rows.warn_of_skipped(path, undecided, f"with the label {_UNDECIDED!r}")
    return rows.checked(path, examples)


def _is_json(path: str) -> bool:
    first = rows.read_lines(path)[0].strip()
    if rows.ending(path) in rows.JSON or first == "[":
        return True
    try:
        return first.startswith("{") and isinstance(json_text.parse(first), dict)
    except ValueError:
        return False


def _from_json(path: str, layout: Layout) -> Iterator[_Raw]:
    names = (_TEXT_A, _TEXT_B)[: layout.texts]
    for record in json_records.read_records(path):
        texts = []
        for group in names:
            key = next((name for name in group if name in record.values), group[0])
            texts.append(record.text(key))
        label, identifier = record.values.get("label"), record.values.get("id")
        if label is not None and (isinstance(label, bool) or not isinstance(label, (str, int))):
            raise InputError(f"{record.place}: 'label' must be a text or a whole number, but is {shown(label)}")
        yield _Raw(
            record.place,
            texts,
            None if label is None else str(label),
            None if identifier is None else str(identifier),
        )


def _from_table(path: str, layout: Layout) -> Iterator[_Raw]:
    body = rows.read_csv(path) if rows.ending(path) == rows.CSV else rows.read_rows(path)
    width = len(body[0].cells)
    columns = _columns_by_name(body[0], path, layout)
    has_header = columns is not None
    columns = columns or _columns_by_content(body[0], path, layout)
    for row in body[has_header:]:
        if len(row.cells) != width:
            raise rows.wrong_width(path, row, width)
        cells = row.cells
        yield _Raw(
            place(path, row.line),
            [cells[column] for column in columns.texts],
            None if columns.label is None else cells[columns.label],
            None if columns.id is None else cells[columns.id],
        )


class _Columns(NamedTuple):
    texts: tuple[int, ...]
    label: int | None = None
    id: int | None = None


def _columns_by_name(header: Row, path: str, layout: Layout) -> _Columns | None:
    """Where a header's columns stand; None if the row is no header."""
    where = place(path, header.line)
    *texts, label, identifier = (
        rows.find_column(header.cells, wanted, where) for wanted in (*(_TEXT_A, _TEXT_B)[: layout.texts], _LABEL, _ID)
    )
    if None in texts:
        return None
    return _Columns(tuple(text for text in texts if text is not None), label, identifier)


def _columns_by_content(first: Row, path: str, layout: Layout) -> _Columns:
    """Where the texts and the label stand in a file without a header."""
    texts = tuple(range(layout.texts))
    if len(first.cells) == layout.texts:
        return _Columns(texts)
    if len(first.cells) == layout.texts + 1:
        if layout.label(first.cells[-1]) or first.cells[-1] == _UNDECIDED:
            return _Columns(texts, layout.texts)
        if layout.label(first.cells[0]):
            return _Columns(tuple(text + 1 for text in texts), 0)
    raise InputError(
        f"{place(path, first.line)}: {layout.title} needs JSON lines, or {layout.texts} column(s) of text and one of "
        f"the label ({', '.join(layout.labels)}), with or without a header; found {rows.names(first.cells)}"
    )


def _task(layout: Layout, metrics: tuple[str, ...], words: str) -> Task:
    return Task(
        name=layout.title.lower(),
        title=layout.title,
        head="classifier",
        read=functools.partial(read, layout=layout),
        files={
            split: tuple(f"{split}.{end}" for end in ("json", "tsv", "txt", "csv"))
            for split in ("train", "dev", "test")
        },
        write_submission=write_clue,
        metrics=metrics,
        labels=layout.labels,
        problem_type=SINGLE_LABEL,
        words=words,
    )


AFQMC = _task(
    Layout("AFQMC", is_pair=True, labels=("0", "1")),
    ("accuracy", "f1"),
    "do two questions to a bank's service mean the same (1) or not (0); Chinese",
)
LCQMC = _task(
    Layout("LCQMC", is_pair=True, labels=("0", "1")),
    ("accuracy", "f1"),
    "do two questions from a forum mean the same (1) or not (0); Chinese",
)
CHNSENTICORP = _task(
    Layout(
        "ChnSentiCorp",
        is_pair=False,
        labels=("negative", "positive"),
        other_names={"0": "negative", "1": "positive"},
    ),
    ("accuracy",),
    "does a review of a hotel, a computer or a book praise or blame; Chinese",
)
CMNLI = _task(
    Layout("CMNLI", is_pair=True, labels=("contradiction", "entailment", "neutral")),
    ("accuracy",),
    "MNLI in Chinese",
)
TASKS = (AFQMC, LCQMC, CHNSENTICORP, CMNLI)
