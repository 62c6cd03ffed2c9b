"""Answers as JSON lines or as a table, to a file that appears only when it is complete, or to standard output."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

from albert_tf import files
from albert_tf.answering.answerer import Answer
from albert_tf.errors import InputError
from albert_tf.scoring.columns import Given

JSONL, TSV = "jsonl", "tsv"
FORMS = (JSONL, TSV)
_NO_LINE_OR_CELL_ENDS = str.maketrans("\t\n\r", "   ")

Write = Callable[[Sequence[Given], Sequence[Answer]], None]


def form_of(path: str, form: str | None) -> str:
    """The form by the ending of the name, if none is given; JSON lines for standard output.

    Raises:
        InputError: the name does not tell it.
    """
    if form or not path:
        return form or JSONL
    for known in FORMS:
        if path.lower().endswith(f".{known}"):
            return known
    raise InputError(f"--output={path} must end in .jsonl, .tsv or, for vectors, .npy; or give --output_format")


@contextlib.contextmanager
def opened(path: str, form: str, labels: Sequence[str]) -> Iterator[Write]:
    """A function that writes answers in order.

    Args:
        path: of the file; "" is standard output.
        form: one of `FORMS`.
        labels: of the model, if it has any: what there is one of for each label is written under the labels' names.

    Raises:
        InputError: the file cannot be written.
    """
    with files.atomic_write(path, "w") if path else contextlib.nullcontext(sys.stdout) as file:
        yield _table_writer(file, labels) if form == TSV else _json_writer(file, labels)


def _json_writer(file: IO[str], labels: Sequence[str]) -> Write:
    def write(given: Sequence[Given], answers: Sequence[Answer]) -> None:
        for row, answer in zip(given, answers):
            values = {} if row.id is None else {"id": row.id}
            file.write(json.dumps({**values, **_by_label(answer, labels)}, ensure_ascii=False) + "\n")
        file.flush()

    return write


def _table_writer(file: IO[str], labels: Sequence[str]) -> Write:
    """There is a column of identifiers where a row of the first block has one."""
    has_header = has_ids = False

    def write(given: Sequence[Given], answers: Sequence[Answer]) -> None:
        nonlocal has_header, has_ids
        if not has_header:
            has_ids = any(row.id is not None for row in given)
        for row, answer in zip(given, answers):
            if row.id is not None and not has_ids:
                raise InputError(
                    f"{row.place} has an id, and the table has no column for it, as no row before has one: give the "
                    f"first row one, or --output_format={JSONL}"
                )
            values = {"id": "" if row.id is None else row.id} if has_ids else {}
            values.update(_flat(_by_label(answer, labels)))
            if not has_header:
                file.write("\t".join(map(_cell, values)) + "\n")
                has_header = True
            file.write("\t".join(map(_cell, values.values())) + "\n")
        file.flush()

    return write


def _by_label(answer: Answer, labels: Sequence[str]) -> dict[str, Any]:
    """Probabilities under the labels' names; of several labels those that hold."""
    if not labels:
        return answer
    made: dict[str, Any] = {}
    for name, value in answer.items():
        if name == "is_label":
            made["label"] = [label for label, holds in zip(labels, value) if holds]
        elif name == "probabilities":
            made[name] = dict(zip(labels, value))
        elif name != "labels":
            made[name] = value
    return dict(sorted(made.items(), key=lambda item: item[0] == "probabilities"))


def _flat(answer: Answer) -> dict[str, Any]:
    """One value for each column: a probability for each label, lists as JSON."""
    made: dict[str, Any] = {}
    for name, value in answer.items():
        if isinstance(value, dict):
            made.update({f"{name}: {label}": one for label, one in value.items()})
        else:
            made[name] = value
    return made


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.translate(_NO_LINE_OR_CELL_ENDS)
