"""Pieces to a padded batch inside a graph: what `sequences` and calling a tokenizer do in NumPy.

N sequences, S the length of the longest, which is what they are padded to.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from albert_tf.sequences import SPECIALS_OF_ONE, SPECIALS_OF_PAIR
from albert_tf.tokenizer import Tokenizer


class PackedTexts(NamedTuple):
    """`inputs`: `input_ids`, `input_mask` and `segment_ids` int32 [N,S]; `is_cut` bool [N]: pieces were lost."""

    inputs: dict[str, tf.Tensor]
    is_cut: tf.Tensor


def pack(
    first: tf.RaggedTensor, second: tf.RaggedTensor | None, tokenizer: Tokenizer, max_seq_length: int
) -> PackedTexts:
    """`[CLS] A [SEP]` and `[CLS] A [SEP] B [SEP]`, cut as by `sequences.pair_sequences`.

    Args:
        first: [N, None] int32, the pieces of the texts.
        second: [N, None] int32, those of the second texts, if there are any.
        tokenizer: whose special pieces to put around them.
        max_seq_length: the most pieces of a sequence, special ones counted.
    """
    sizes_a, sizes_b = first.row_lengths(), tf.zeros([first.nrows()], tf.int64)
    room = max_seq_length - SPECIALS_OF_ONE
    if second is not None:
        sizes_b, room = second.row_lengths(), max_seq_length - SPECIALS_OF_PAIR
    # See `sequences.sizes_of_pair`.
    kept_a = tf.minimum(sizes_a, tf.maximum(room - sizes_b, (room + 1) // 2))
    kept_b = tf.minimum(sizes_b, room - kept_a)
    inputs = assemble(first_pieces(first, kept_a), None if second is None else first_pieces(second, kept_b), tokenizer)
    return PackedTexts(inputs, (kept_a < sizes_a) | (kept_b < sizes_b))


def assemble(
    first: tf.RaggedTensor, second: tf.RaggedTensor | None, tokenizer: Tokenizer, least_length: int = 0
) -> dict[str, tf.Tensor]:
    """The inputs of a model from pieces [N, None] that were cut before, padded to `least_length` at least."""
    count = first.nrows()
    cls, sep = (tf.fill([count, 1], piece_id) for piece_id in (tokenizer.cls_id, tokenizer.sep_id))
    parts = [cls, first, sep] if second is None else [cls, first, sep, second, sep]
    sequences = tf.concat(parts, axis=1)  # [N, None]
    input_ids = sequences.to_tensor(tokenizer.pad_id)
    padding = tf.maximum(least_length - tf.shape(input_ids)[1], 0)
    input_ids = tf.pad(input_ids, [[0, 0], [0, padding]], constant_values=tokenizer.pad_id)
    mask = tf.sequence_mask(sequences.row_lengths(), tf.shape(input_ids)[1])
    is_first = tf.sequence_mask(first.row_lengths() + SPECIALS_OF_ONE, tf.shape(input_ids)[1])
    return {
        "input_ids": input_ids,
        "input_mask": tf.cast(mask, tf.int32),
        "segment_ids": tf.cast(mask & ~is_first, tf.int32),
    }


def first_pieces(ragged: tf.RaggedTensor, sizes: tf.Tensor) -> tf.RaggedTensor:
    """The first `sizes` [N] int64 elements of each row, or all there are."""
    positions = tf.ragged.range(ragged.row_lengths())
    return tf.ragged.boolean_mask(ragged, positions < sizes[:, tf.newaxis])


def last_pieces(ragged: tf.RaggedTensor, sizes: tf.Tensor) -> tf.RaggedTensor:
    """The last `sizes` [N] int64 elements of each row, or all there are."""
    positions = tf.ragged.range(ragged.row_lengths())
    return tf.ragged.boolean_mask(ragged, positions >= (ragged.row_lengths() - sizes)[:, tf.newaxis])
