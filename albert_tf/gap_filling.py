"""The likeliest pieces for the gaps of texts, several texts at a time.

N texts, B of them in a batch, S its padded length, P gaps of the one that has most, K pieces for each gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from albert_tf.batches import ROW, Batches, bucket_lengths
from albert_tf.errors import InputError
from albert_tf.feature_set import FeatureSet
from albert_tf.models import AlbertForPreTraining
from albert_tf.tokenization import UNDERLINE
from albert_tf.tokenizer import Tokenizer
from albert_tf.training_step import graph
from albert_tf.weight_names import part_of

GAP = "[MASK]"
HEADS = ("masked_lm", "pretraining")  # that fill gaps
_POSITIONS = "positions"
_MOST_GAPS = 256  # of a batch: each has a probability for every piece of the vocabulary


class Filling(NamedTuple):
    """A piece for a gap, as it is spelled in the vocabulary, and its probability."""

    piece: str
    probability: float


class GapFiller:
    """Fills gaps with one model.

    Args:
        model: with a masked-LM head.
        tokenizer: the vocabulary the model was trained with.
        top_k: how many pieces for each gap, likeliest first; special pieces are never among them.
        batch_size: texts at a time.
    """

    def __init__(self, model: AlbertForPreTraining, tokenizer: Tokenizer, top_k: int = 5, batch_size: int = 32):
        self.longest = model.config.max_position_embeddings
        self.tokenizer = tokenizer
        self._batch_size = batch_size
        top_k = min(top_k, tokenizer.vocab_size - len(tokenizer.special_ids))
        is_usual = np.ones(tokenizer.vocab_size, np.float32)
        is_usual[list(tokenizer.special_ids)] = 0.0
        ids = tf.TensorSpec([None, None], tf.int32)

        def best(input_ids: tf.Tensor, input_mask: tf.Tensor, positions: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            inputs = {"input_ids": input_ids, "input_mask": input_mask, "masked_lm_positions": positions}
            logits = model(inputs, training=False)["masked_lm_logits"][:, :, : tokenizer.vocab_size]
            return tf.math.top_k(tf.nn.softmax(logits) * is_usual, top_k)  # type: ignore[no-any-return]

        self._best = graph(best, input_signature=[ids, ids, ids])

    def __call__(self, texts: Sequence[str]) -> list[list[list[Filling]]]:
        """For each text, for each of its gaps, the fillings.

        Raises:
            InputError: a text has no [MASK], or is longer than the model's positions.
        """
        return self.fill([self.encode(text) for text in texts])

    def fill(self, rows: Sequence[Sequence[int]]) -> list[list[list[Filling]]]:
        """The same for sequences of ids, each as long as the model's positions at most; one may have no gap."""
        gaps = [[at for at, piece in enumerate(row) if piece == self.tokenizer.mask_id] for row in rows]
        most = max([1, *map(len, gaps)])
        sizes = np.array([len(row) for row in rows], np.int32)
        positions = np.zeros((len(rows), most), np.int32)
        for number, some in enumerate(gaps):
            positions[number, : len(some)] = some
        features = FeatureSet(
            np.array([piece for row in rows for piece in row], np.int32),
            sizes,
            sizes,
            np.arange(len(rows), dtype=np.int32),
            {_POSITIONS: positions},
        )
        at_once = max(1, min(self._batch_size, _MOST_GAPS // most, len(rows)))
        fillings: list[list[list[Filling]]] = [[] for _ in rows]
        for batch in Batches(features, at_once, bucket_lengths(self.longest)).evaluation():
            chances, pieces = self._best(batch["input_ids"], batch["input_mask"], batch[_POSITIONS])
            for row, *found in zip(batch[ROW], chances.numpy(), pieces.numpy()):
                if row >= 0:
                    fillings[row] = [self._fillings(*one) for one, _ in zip(zip(*found), gaps[row])]
        return fillings

    def encode(self, text: str) -> list[int]:
        """`encode_with_gaps`, held to the model's positions.

        Raises:
            InputError: see `__call__`.
        """
        ids = encode_with_gaps(self.tokenizer, text)
        if len(ids) > self.longest:
            raise InputError(
                f"the text {text[:40]!r}… has {len(ids)} pieces, but the model has {self.longest} positions"
            )
        return ids

    def _fillings(self, chances: np.ndarray, pieces: np.ndarray) -> list[Filling]:
        return [Filling(self.tokenizer.id_to_piece(int(i)), float(chance)) for i, chance in zip(pieces, chances)]


def encode_with_gaps(tokenizer: Tokenizer, text: str) -> list[int]:
    """[CLS] text [SEP] as ids, each [MASK] of the text as the mask piece.

    Raises:
        InputError: there is no [MASK] in the text.
    """
    if GAP not in text:
        raise InputError(f"the text {text!r:.60} has no {GAP}: put one where a piece is to be found")
    return [tokenizer.cls_id, *pieces_with_gaps(tokenizer, text), tokenizer.sep_id]


def pieces_with_gaps(tokenizer: Tokenizer, text: str) -> list[int]:
    """The text as ids, each [MASK] of it as the mask piece; there may be none."""
    first, *others = text.split(GAP)
    ids = tokenizer.encode(first)
    for part in others:
        after = tokenizer.encode(part)
        # What follows the gap without a space continues the word or is punctuation: there is no piece for a space.
        if after and not part[:1].isspace() and tokenizer.id_to_piece(after[0]) == UNDERLINE:
            after = after[1:]
        ids += [tokenizer.mask_id, *after]
    return ids


def load(path: str) -> tuple[AlbertForPreTraining, Tokenizer]:
    """A pre-trained model that can fill gaps, with its tokenizer.

    Raises:
        InputError: nothing that can be read is there, or it has no masked-LM head or no vocabulary.
    """
    model = AlbertForPreTraining.from_pretrained(path)
    if model.vocabulary is None:
        raise InputError(
            f"--model={path} has no vocabulary: python -m albert_tf.convert with --vocabulary puts one beside it"
        )
    at_random = [name for name in model.load_report.missing if part_of(name) == "masked_lm_head"]
    if at_random:
        raise InputError(
            f"--model={path} has no {at_random[0]}, so no masked-LM head that could fill a gap: give a "
            "pre-trained model"
        )
    tokenizer = model.vocabulary.tokenizer()
    tokenizer.check_config(model.config.vocab_size)
    return model, tokenizer
