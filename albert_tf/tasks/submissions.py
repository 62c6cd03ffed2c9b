"""Predictions in the forms that scorers and people read; every file appears only when it is complete.

Writers take a path without an ending, such as `predictions/test_matched`, and return the files they wrote: the one for
the scorer first, then one of probabilities whose header names the labels. C labels, K choices.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from albert_tf import storage
from albert_tf.tasks.examples import (
    ChoiceExample,
    ChoicePrediction,
    Example,
    Prediction,
    TagExample,
    TagPrediction,
    TextPrediction,
)
from albert_tf.tasks.task import Writer

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NO_LINE_OR_CELL_ENDS = str.maketrans("\t\n\r", "   ")


def choice_name(index: int) -> str:
    """The letter of a choice, "A" for the first; behind "Z" the number, "27"."""
    return LETTERS[index] if index < len(LETTERS) else str(index + 1)


def glue_writer(file_names: Mapping[str, str], limits: tuple[float, float] | None = None) -> Writer:
    """A writer of GLUE's `index<TAB>prediction`.

    Args:
        file_names: split to the name that gluebenchmark.com takes, "MNLI-m.tsv" for "test_matched"; the predictions
            of other splits have the split's own name.
        limits: of a regression, the least and the largest score; predictions beyond them are set to them.
    """

    def write(
        path: str, examples: Sequence[Example], predictions: Sequence[Prediction], labels: Sequence[str]
    ) -> list[str]:
        name = file_names.get(storage.basename(path))
        file = storage.join(storage.dirname(path), name) if name else f"{path}.tsv"
        rows = [("index", "prediction"), *(_answer(prediction, limits) for prediction in predictions)]
        return [_write_rows(file, rows), *_probabilities(path, predictions, labels)]

    return write


def write_clue(
    path: str, examples: Sequence[Example], predictions: Sequence[Prediction], labels: Sequence[str]
) -> list[str]:
    """Writes CLUE's JSON lines `{"id": 0, "label": "neutral"}`, where the id is a number if the file's is."""
    lines = []
    for identifier, label in map(_answer, predictions):
        number = int(identifier) if identifier.isdecimal() and identifier.isascii() else identifier
        lines.append(json.dumps({"id": number, "label": label}, ensure_ascii=False))
    return [_write_lines(f"{path}.json", lines), *_probabilities(path, predictions, labels)]


def write_labels(
    path: str, examples: Sequence[Example], predictions: Sequence[Prediction], labels: Sequence[str]
) -> list[str]:
    """Writes `id<TAB>prediction`: a label, a number, or the labels of a multi-label task as a JSON list."""
    rows = [("id", "prediction"), *map(_answer, predictions)]
    return [_write_rows(f"{path}.tsv", rows), *_probabilities(path, predictions, labels)]


def write_choices(
    path: str, examples: Sequence[Example], predictions: Sequence[Prediction], labels: Sequence[str]
) -> list[str]:
    """Writes `id<TAB>prediction` with the choice's letter, "A" for the first, and the probability of each letter."""
    chosen = [prediction for prediction in predictions if isinstance(prediction, ChoicePrediction)]
    rows = [("id", "prediction"), *((p.id, choice_name(p.label)) for p in chosen)]
    most = max((len(e.choices) for e in examples if isinstance(e, ChoiceExample)), default=0)
    probabilities = [("id", *map(choice_name, range(most)))]
    for prediction in chosen:
        values = [f"{value:.6f}" for value in prediction.probabilities]
        probabilities.append((prediction.id, *values, *[""] * (most - len(values))))
    return [_write_rows(f"{path}.tsv", rows), _write_rows(f"{path}_probabilities.tsv", probabilities)]


def write_tags(
    path: str, examples: Sequence[Example], predictions: Sequence[Prediction], labels: Sequence[str]
) -> list[str]:
    """Writes CoNLL columns: the word, its gold tag if the file has one, the predicted tag; a blank line after each."""
    lines = []
    for example, prediction in zip(examples, predictions):
        assert isinstance(example, TagExample) and isinstance(prediction, TagPrediction)
        gold = [] if example.tags is None else [example.tags]
        columns = [example.words, *gold, prediction.tags]
        lines += ["\t".join(cells) for cells in zip(*columns)]
        lines.append("")
    return [_write_lines(f"{path}.conll", lines)]


def _answer(prediction: Prediction, limits: tuple[float, float] | None = None) -> tuple[str, str]:
    """The id and the label of a prediction as text."""
    assert isinstance(prediction, TextPrediction)
    label = prediction.label
    if isinstance(label, str):
        return prediction.id, label
    if isinstance(label, tuple):
        return prediction.id, json.dumps(label, ensure_ascii=False)
    return prediction.id, f"{label if limits is None else min(max(label, limits[0]), limits[1]):.6f}"


def _probabilities(path: str, predictions: Sequence[Prediction], labels: Sequence[str]) -> list[str]:
    """Writes `id`, `prediction` and one column for each label; nothing for a regression."""
    rows = [("id", "prediction", *labels)]
    for prediction in predictions:
        assert isinstance(prediction, TextPrediction)
        if prediction.probabilities is None:
            return []
        rows.append((*_answer(prediction), *(f"{value:.6f}" for value in prediction.probabilities)))
    return [_write_rows(f"{path}_probabilities.tsv", rows)]


def _write_rows(path: str, rows: Sequence[Sequence[str]]) -> str:
    return _write_lines(path, ["\t".join(cell.translate(_NO_LINE_OR_CELL_ENDS) for cell in cells) for cells in rows])


def _write_lines(path: str, lines: Sequence[str]) -> str:
    text = "".join(f"{line}\n" for line in lines)
    storage.write_bytes(path, text.encode("utf-8", "backslashreplace"))  # JSON can hold halves of surrogate pairs
    return path
