"""Rows of unequal length as one list of tokens inside a graph, so that padding costs nothing where it does not count.

B rows, S their padded length, T tokens that are kept, W any width.
"""

from __future__ import annotations

import tensorflow as tf


class TokenPacking:
    """Where the tokens of a batch are.

    Kept are the pieces and the first position of every row.

    Args:
        input_mask: [B,S] integer, 1 at pieces; any pattern.

    Attributes:
        is_piece: [B,S] bool; in a row without pieces all positions count as such.
    """

    def __init__(self, input_mask: tf.Tensor):
        is_piece = input_mask > 0
        self.is_piece = is_piece | ~tf.reduce_any(is_piece, axis=1, keepdims=True)
        self._shape = tf.shape(input_mask)
        is_first = tf.range(self._shape[1]) == 0
        is_kept = tf.reshape(self.is_piece | is_first, [-1])
        self._is_full = tf.reduce_all(is_kept)
        self._kept = tf.cast(tf.where(is_kept)[:, 0], tf.int32)  # [T] places among B*S
        self._tokens = tf.cumsum(tf.cast(is_kept, tf.int32)) - 1  # [B*S] the token, or at padding the one before it

    def pack(self, rows: tf.Tensor) -> tf.Tensor:
        """[B*S,W] to [T,W]."""
        return tf.cond(self._is_full, lambda: rows, lambda: tf.gather(rows, self._kept))

    def spread(self, tokens: tf.Tensor) -> tf.Tensor:
        """[T,W] to [B*S,W]; padding repeats the last token before it."""
        return tf.cond(self._is_full, lambda: tokens, lambda: tf.gather(tokens, self._tokens))

    def with_zeros(self, tokens: tf.Tensor) -> tf.Tensor:
        """[T,W] to [B,S,W]; padding is zero."""
        shape = tf.concat([self._shape, tf.shape(tokens)[1:]], axis=0)
        places = self._kept[:, tf.newaxis]
        rows = tf.cond(
            self._is_full,
            lambda: tokens,
            lambda: tf.scatter_nd(places, tokens, [self._shape[0] * self._shape[1], tf.shape(tokens)[1]]),
        )
        return tf.ensure_shape(tf.reshape(rows, shape), [None, None, tokens.shape[1]])

    def first(self, tokens: tf.Tensor) -> tf.Tensor:
        """Of tokens [T,W] those at the first position of each row, [B,W]."""
        return tf.gather(tokens, tf.gather(self._tokens, tf.range(self._shape[0]) * self._shape[1]))
