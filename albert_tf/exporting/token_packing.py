"""Rows of unequal length as one list of tokens inside a graph, so that padding costs nothing where it does not count.

B rows, S their padded length, T tokens that are kept, W any width.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf


class TokenPacking(NamedTuple):
    """Where the tokens of a batch are.

    Kept are the pieces and the first position of every row.

    Attributes:
        is_piece: [B,S] bool; in a row without pieces all positions count as such.
        is_full: bool, whether everything is kept.
        kept: [T] int32, the tokens' places among B*S.
        tokens: [B*S] int32, the token at each place, at padding the one before it.
    """

    is_piece: tf.Tensor
    is_full: tf.Tensor
    kept: tf.Tensor
    tokens: tf.Tensor

    @classmethod
    def of_mask(cls, input_mask: tf.Tensor) -> TokenPacking:
        """Of [B,S] integer, 1 at pieces; any pattern."""
        is_piece = input_mask > 0
        is_piece |= ~tf.reduce_any(is_piece, axis=1, keepdims=True)
        is_first = tf.range(tf.shape(input_mask)[1]) == 0
        is_kept = tf.reshape(is_piece | is_first, [-1])
        kept = tf.cast(tf.where(is_kept)[:, 0], tf.int32)
        return cls(is_piece, tf.reduce_all(is_kept), kept, tf.cumsum(tf.cast(is_kept, tf.int32)) - 1)

    @classmethod
    def specs(cls) -> TokenPacking:
        """What a function has to say that takes one."""
        return cls(
            tf.TensorSpec([None, None], tf.bool),
            tf.TensorSpec([], tf.bool),
            tf.TensorSpec([None], tf.int32),
            tf.TensorSpec([None], tf.int32),
        )

    def pack(self, rows: tf.Tensor) -> tf.Tensor:
        """[B*S,W] to [T,W]."""
        return tf.cond(self.is_full, lambda: rows, lambda: tf.gather(rows, self.kept))

    def spread(self, tokens: tf.Tensor) -> tf.Tensor:
        """[T,W] to [B*S,W]; padding repeats the last token before it."""
        return tf.cond(self.is_full, lambda: tokens, lambda: tf.gather(tokens, self.tokens))

    def with_zeros(self, tokens: tf.Tensor) -> tf.Tensor:
        """[T,W] to [B,S,W]; padding is zero."""
        rows_and_length = tf.shape(self.is_piece)
        shape = tf.concat([rows_and_length, tf.shape(tokens)[1:]], axis=0)
        places = self.kept[:, tf.newaxis]
        rows = tf.cond(
            self.is_full,
            lambda: tokens,
            lambda: tf.scatter_nd(places, tokens, [rows_and_length[0] * rows_and_length[1], tf.shape(tokens)[1]]),
        )
        return tf.ensure_shape(tf.reshape(rows, shape), [None, None, tokens.shape[1]])

    def first(self, tokens: tf.Tensor) -> tf.Tensor:
        """Of tokens [T,W] those at the first position of each row, [B,W]."""
        rows, length = tf.unstack(tf.shape(self.is_piece))
        return tf.gather(tokens, tf.gather(self.tokens, tf.range(rows) * length))
