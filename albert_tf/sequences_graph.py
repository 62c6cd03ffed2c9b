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
    count = first.nrows()
    sizes_a, sizes_b = first.row_lengths(), tf.zeros([count], tf.int64)
    room = max_seq_length - SPECIALS_OF_ONE
    if second is not None:
        sizes_b, room = second.row_lengths(), max_seq_length - SPECIALS_OF_PAIR
    # See `sequences.sizes_of_pair`.
    kept_a = tf.minimum(sizes_a, tf.maximum(room - sizes_b, (room + 1) // 2))
    kept_b = tf.minimum(sizes_b, room - kept_a)
    cls, sep = (tf.fill([count, 1], piece_id) for piece_id in (tokenizer.cls_id, tokenizer.sep_id))
    parts = [cls, _first_pieces(first, kept_a), sep]
    if second is not None:
        parts += [_first_pieces(second, kept_b), sep]
    sequences = tf.concat(parts, axis=1)  # [N, None]
    input_ids = sequences.to_tensor(tokenizer.pad_id)
    mask = tf.sequence_mask(sequences.row_lengths(), tf.shape(input_ids)[1])
    is_first = tf.sequence_mask(kept_a + SPECIALS_OF_ONE, tf.shape(input_ids)[1])
    inputs = {
        "input_ids": input_ids,
        "input_mask": tf.cast(mask, tf.int32),
        "segment_ids": tf.cast(mask & ~is_first, tf.int32),
    }
    return PackedTexts(inputs, (kept_a < sizes_a) | (kept_b < sizes_b))


def _first_pieces(ragged: tf.RaggedTensor, sizes: tf.Tensor) -> tf.RaggedTensor:
    """The first `sizes` [N] elements of each row."""
    positions = tf.ragged.range(ragged.row_lengths())
    return tf.ragged.boolean_mask(ragged, positions < sizes[:, tf.newaxis])
