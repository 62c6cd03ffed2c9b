"""Answerers of models without a task: pieces for the gaps of a text, and vectors of texts."""

from __future__ import annotations

from collections.abc import Sequence

from albert_tf.answering.answerer import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    STRING,
    Answer,
    Form,
    Input,
    Instance,
    Output,
    checked,
    numbers,
)
from albert_tf.gap_filling import GAP, GapFiller, pieces_with_gaps
from albert_tf.sequences import LONGEST, SPECIALS_OF_ONE
from albert_tf.tasks import text_file
from albert_tf.text_vectors import TextVectors


class GapAnswerer:
    """The likeliest pieces for each [MASK] of a text; an `Answerer`."""

    task = f"the likeliest pieces for each {GAP}"
    forms: tuple[Form, ...] = ((Input("text", text_file.TEXT_NAMES),),)
    outputs: tuple[Output, ...] = (
        Output("pieces", STRING, (ANY, ANY)),
        Output("probabilities", FLOAT, (ANY, ANY)),
        Output("piece_ids", INT, (ANY, ANY)),
        Output("positions", INT, (ANY,)),
        Output("gaps", INT),
        Output("is_cut", BOOL),
    )
    labels: tuple[str, ...] = ()
    example: Instance = {"text": f"The {GAP} is open."}

    def __init__(self, fill: GapFiller):
        self._fill = fill
        self._room = min(LONGEST, fill.longest) - SPECIALS_OF_ONE
        self._ids = {piece: piece_id for piece_id, piece in enumerate(fill.tokenizer.pieces())}

    def answers(self, instances: Sequence[Instance]) -> list[Answer]:
        """See `Answerer`; pieces, their ids and probabilities are [G,K], and positions among the pieces [G].

        `is_cut` tells of a text that was longer than the model reads; gaps behind that are lost.
        """
        checked(instances, self.forms)
        if not instances:
            return []
        tokenizer = self._fill.tokenizer
        pieces = [pieces_with_gaps(tokenizer, instance["text"]) for instance in instances]
        rows = [[tokenizer.cls_id, *some[: self._room], tokenizer.sep_id] for some in pieces]
        return [
            {
                "pieces": [[filling.piece for filling in fillings] for fillings in gaps],
                "probabilities": [numbers(filling.probability for filling in fillings) for fillings in gaps],
                "piece_ids": [[self._ids[filling.piece] for filling in fillings] for fillings in gaps],
                "positions": [at for at, piece in enumerate(ids) if piece == tokenizer.mask_id],
                "gaps": len(gaps),
                "is_cut": len(some) > self._room,
            }
            for some, ids, gaps in zip(pieces, rows, self._fill.fill(rows))
        ]


class VectorAnswerer:
    """The vector of a text, or of a pair; an `Answerer`."""

    task = "a vector for a text"
    forms: tuple[Form, ...] = (
        (Input("text", text_file.TEXT_NAMES),),
        (Input("text_a", text_file.TEXT_NAMES), Input("text_b", text_file.SECOND_TEXT_NAMES)),
    )
    labels: tuple[str, ...] = ()
    example: Instance = {"text": "A text."}

    def __init__(self, vectors: TextVectors, name: str = "pooled_output"):
        self.vectors = vectors
        self.outputs: tuple[Output, ...] = (Output(name, FLOAT, (vectors.width,)), Output("is_cut", BOOL))

    def texts(self, instances: Sequence[Instance]) -> tuple[list[str], list[str | None]]:
        """The texts, and the second ones of pairs.

        Raises:
            BadInstance: see `Answerer.answers`.
        """
        checked(instances, self.forms)
        texts = [instance.get("text", instance.get("text_a")) for instance in instances]
        return texts, [instance.get("text_b") for instance in instances]

    def answers(self, instances: Sequence[Instance]) -> list[Answer]:
        """See `Answerer`."""
        if not instances:
            return []
        (name, *_), *_ = self.outputs
        texts = self.texts(instances)
        return [
            {name: numbers(vector), "is_cut": is_cut}
            for vector, is_cut in zip(self.vectors(*texts), self.vectors.are_cut(*texts))
        ]
