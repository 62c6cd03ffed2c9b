"""From a source to the output, a block of rows at a time: memory is bounded, and like lengths are read together."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from absl import logging

from albert_tf import sequences, vector_file
from albert_tf.answering.answerer import Answerer, BadInstance
from albert_tf.answering.pretrained_answerers import VectorAnswerer
from albert_tf.answering.task_answerers import TagAnswerer
from albert_tf.errors import InputError
from albert_tf.progress import Progress
from albert_tf.scoring import output
from albert_tf.scoring.columns import Given
from albert_tf.scoring.source import Source
from albert_tf.tasks import tagging


def write_answers(
    source: Source, given: Iterable[Given], answerer: Answerer, path: str, form: str, rows_at_a_time: int
) -> int:
    """Writes an answer for each row, in order; returns how many there are.

    Raises:
        InputError: there is no row, a row is not what the model reads (with file and line), or `path` cannot be
            written.
    """
    count = 0
    with output.opened(path, form, answerer.labels) as write:
        for block in _blocks(source, given, rows_at_a_time):
            if count == 0 and isinstance(answerer, TagAnswerer):
                _warn_of_columns(source, block, answerer.tags)
            write(block, _answered(block, answerer.answers))
            count += len(block)
    return count


def write_vectors(
    source: Source, given: Iterable[Given], answerer: VectorAnswerer, path: str, rows_at_a_time: int
) -> int:
    """Writes a .npy file with a vector for each row, in order; returns how many there are.

    Raises:
        InputError: as of `write_answers`.
    """

    def vectors(instances: Sequence[Any]) -> np.ndarray:
        return answerer.vectors(*answerer.texts(instances))

    blocks = (_answered(block, vectors) for block in _blocks(source, given, rows_at_a_time))
    count = vector_file.write_vectors(path, answerer.vectors.width, blocks)
    sequences.warn_of_cut(answerer.vectors.cut, count, answerer.vectors.max_seq_length)
    return count


def _warn_of_columns(source: Source, block: Sequence[Given], tags: Sequence[str]) -> None:
    """Says that CoNLL columns, as a tagger learns from, are no sentences."""
    texts = [row.instance.get("text") for row in block]
    if tagging.are_columns([text for text in texts if isinstance(text, str)], tags):
        logging.warning(
            "%s looks like CoNLL columns, and each of its lines is read as a sentence of its own: give a sentence a "
            "line, or predict with albert_tf.run_finetuning --task=conll --do_predict --test_file, which reads columns",
            source.name,
        )


def _blocks(source: Source, given: Iterable[Given], rows_at_a_time: int) -> Iterator[list[Given]]:
    remaining = iter(given)
    block = list(itertools.islice(remaining, rows_at_a_time))
    if not block:
        raise InputError(f"{source.name} has no rows: it must have one example a line")
    with Progress(None, "predicting", "rows") as progress:
        while block:
            yield block
            share = source.share
            progress.update(len(block), **({} if share is None else {"read": f"{share:.0%}"}))
            block = list(itertools.islice(remaining, rows_at_a_time))


def _answered(block: Sequence[Given], answer: Any) -> Any:
    try:
        return answer([row.instance for row in block])
    except BadInstance as error:
        raise InputError(f"{block[error.index].place}: {error.problem}") from error
