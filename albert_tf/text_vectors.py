"""Texts to one vector each, by any encoder; fast, as texts of like length are read together.

N texts, H the width of the vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf import sequences, task_file
from albert_tf.batches import ROW, Batches, bucket_lengths
from albert_tf.errors import InputError
from albert_tf.feature_set import FeatureSet
from albert_tf.models import AlbertModel
from albert_tf.tokenizer import Tokenizer
from albert_tf.training_step import graph


def _mean(outputs: dict[str, tf.Tensor], mask: tf.Tensor) -> tf.Tensor:
    weights = tf.cast(mask, tf.float32)[:, :, tf.newaxis]
    pieces = tf.maximum(tf.reduce_sum(weights, axis=1), 1.0)  # a row that only fills the batch has none
    return tf.reduce_sum(outputs["sequence_output"] * weights, axis=1) / pieces


Function = Callable[[np.ndarray, np.ndarray, np.ndarray], Any]
POOLED = "pooled"
# Name to how the outputs of `AlbertModel` and input_mask [B,S] become [B,H].
POOLINGS: dict[str, Callable[[dict[str, tf.Tensor], tf.Tensor], tf.Tensor]] = {
    POOLED: lambda outputs, mask: outputs["pooled_output"],
    "mean": _mean,
    "cls": lambda outputs, mask: outputs["sequence_output"][:, 0],
}


def check_pooling(pooling: str) -> None:
    """Refuses what is no pooling.

    Raises:
        InputError: it is none of `POOLINGS`.
    """
    if pooling not in POOLINGS:
        raise InputError(f"the pooling is {pooling!r}, but must be one of {', '.join(POOLINGS)}")


class TextVectors:
    """Makes vectors with one function.

    Args:
        function: `input_ids`, `input_mask` and `segment_ids` [B,S] int32 to [B,H].
        tokenizer: of the model.
        width: H.
        max_seq_length: the most pieces of a text; longer ones are cut.
        batch_size: texts at a time; None for all there are.

    Attributes:
        width: H.
        cut: how many texts were cut so far.

    Raises:
        InputError: the length has no room for a piece.
    """

    def __init__(
        self, function: Function, tokenizer: Tokenizer, *, width: int, max_seq_length: int, batch_size: int | None = 32
    ):
        self.max_seq_length = sequences.check_length(max_seq_length, sequences.SPECIALS_OF_PAIR)
        self._tokenizer = tokenizer
        self._batch_size = batch_size
        self._vectors = function
        self.width = width
        self.cut = 0

    @classmethod
    def of_model(
        cls,
        model: AlbertModel,
        tokenizer: Tokenizer,
        *,
        pooling: str = POOLED,
        max_seq_length: int = sequences.LONGEST,
        batch_size: int = 32,
    ) -> TextVectors:
        """Those of an encoder.

        Args:
            model: with a pooler for `POOLED`.
            tokenizer: the one it was trained with.
            pooling: "pooled", the pooler's output, which pre-training and classifiers learn by; "mean", of the last
                layer over all pieces, [CLS] and [SEP] too; "cls", the last layer at [CLS].
            max_seq_length, batch_size: see the class.

        Raises:
            InputError: there is no such pooling, the model lacks the pooler, or has fewer positions.
        """
        check_pooling(pooling)
        if pooling == POOLED and model.pooler is None:
            raise InputError("the model has no pooler: take the pooling mean or cls")
        ids = tf.TensorSpec([None, None], tf.int32)

        def vectors(input_ids: tf.Tensor, input_mask: tf.Tensor, segment_ids: tf.Tensor) -> tf.Tensor:
            inputs = {"input_ids": input_ids, "input_mask": input_mask, "segment_ids": segment_ids}
            return POOLINGS[pooling](model(inputs, training=False), input_mask)

        function = graph(vectors, input_signature=[ids, ids, ids])
        made = cls(
            function,
            tokenizer,
            width=model.config.hidden_size,
            max_seq_length=max_seq_length,
            batch_size=batch_size,
        )
        sequences.check_positions(max_seq_length, model.config.max_position_embeddings)
        return made

    def __call__(self, texts: Sequence[str], pairs: Sequence[str | None] | None = None) -> np.ndarray:
        """float32 [N,H]: row i is of text i, and of its pair where it has one; an empty text has a vector too."""
        made, cut = sequences.pair_sequences(texts, pairs or [None] * len(texts), self._tokenizer, self.max_seq_length)
        self.cut += cut
        features = FeatureSet(
            made.input_ids, made.sizes, made.first_sizes, np.arange(len(texts), dtype=np.int32), cut=cut
        )
        result = np.zeros((len(texts), self.width), np.float32)
        # A batch is filled up, and a few rows shall cost a few.
        at_once = max(1, min(self._batch_size or len(texts), len(texts)))
        for batch in Batches(features, at_once, bucket_lengths(self.max_seq_length)).evaluation():
            values = np.asarray(self._vectors(batch["input_ids"], batch["input_mask"], batch["segment_ids"]))
            is_text = batch[ROW] >= 0
            result[batch[ROW][is_text]] = values[is_text]
        return result

    def are_cut(self, texts: Sequence[str], pairs: Sequence[str | None]) -> list[bool]:
        """Of each text, or pair, whether it has more pieces than are read."""
        sizes = sequences.encode(texts, self._tokenizer).sizes.tolist()
        of_pairs = sequences.encode([pair or "" for pair in pairs], self._tokenizer).sizes.tolist()
        specials = [sequences.SPECIALS_OF_ONE if pair is None else sequences.SPECIALS_OF_PAIR for pair in pairs]
        return [sum(counts) > self.max_seq_length for counts in zip(sizes, of_pairs, specials)]


def load(path: str, pooling: str = POOLED, max_seq_length: int | None = None, batch_size: int = 32) -> TextVectors:
    """`TextVectors` of any model, a fine-tuned one or the output directory of its run too.

    Args:
        path: of the model; its vocabulary must be there.
        pooling, batch_size: see `TextVectors`.
        max_seq_length: likewise; by default 512, or the model's positions.

    Raises:
        InputError: nothing that can be read is there, it has no vocabulary, or no pooler where one is needed.
    """
    model = AlbertModel.from_pretrained(task_file.find(path) or path, with_pooler=pooling == POOLED)
    if model.vocabulary is None:
        raise InputError(
            f"--model={path} has no vocabulary: python -m albert_tf.convert with --vocabulary puts one beside it"
        )
    if model.load_report.missing:
        name = next(iter(model.load_report.missing))
        raise InputError(f"--model={path} has no {name}, so no pooler: give --pooling=mean or cls")
    tokenizer = model.vocabulary.tokenizer()
    tokenizer.check_config(model.config.vocab_size)
    return TextVectors.of_model(
        model,
        tokenizer,
        pooling=pooling,
        max_seq_length=max_seq_length or min(sequences.LONGEST, model.config.max_position_embeddings),
        batch_size=batch_size,
    )
