"""Sentences of words cut to windows inside a graph, as `albert_tf.word_pieces` cuts them in Python.

N sentences, W windows, T words of all sentences together.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf


class WordWindows(NamedTuple):
    """int64 [W], in the order of the sentences; words by their places among all T.

    Attributes:
        first, end: the words of the window.
        first_own, end_own: those that are answered in it; all windows together answer each word once, in order.
    """

    first: tf.Tensor
    end: tf.Tensor
    first_own: tf.Tensor
    end_own: tf.Tensor


def word_windows(word_sizes: tf.RaggedTensor, room: int, stride: int) -> WordWindows:
    """See `word_pieces.windows`; a sentence without words has no window.

    Args:
        word_sizes: [N, None] int64, the pieces of each word, each from 1 to `room`.
        room: the most pieces of a window.
        stride: pieces from the beginning of one window to that of the next, at least.
    """
    ends = tf.cumsum(word_sizes.values)
    starts = ends - word_sizes.values
    row_starts, row_ends = (
        tf.gather(word_sizes.row_splits, word_sizes.value_rowids() + behind) for behind in (0, 1)
    )  # [T] each
    # For a window that begins with a word: the word behind its last one, and the word the next window begins with.
    window_ends = tf.minimum(tf.searchsorted(ends, starts + room, side="right", out_type=tf.int64), row_ends)
    words = tf.range(tf.size(ends, tf.int64))
    strided = tf.searchsorted(starts, starts + stride, out_type=tf.int64)
    following = tf.minimum(window_ends, tf.maximum(words + 1, strided))

    first = _chains(row_starts, tf.where(window_ends < row_ends, following, tf.size(ends, tf.int64)))
    end = tf.gather(window_ends, first)
    has_next = end < tf.gather(row_ends, first)
    next_first = tf.roll(first, -1, 0)
    middle = tf.gather(starts, next_first) + tf.gather(ends, end - 1)  # twice that of what both windows hold
    shared = tf.clip_by_value(tf.searchsorted(2 * starts, middle, out_type=tf.int64), next_first, end)
    end_own = tf.where(has_next, shared, end)
    is_first = first == tf.gather(row_starts, first)
    return WordWindows(first, end, tf.where(is_first, first, tf.roll(end_own, 1, 0)), end_own)


def _chains(begin: tf.Tensor, following: tf.Tensor) -> tf.Tensor:
    """All words that are reached from those in `begin`, in order; T follows where a chain ends.

    Each round doubles how many words ahead is looked, so that T words take the logarithm of T rounds.
    """
    total = tf.size(following, tf.int64)
    ahead = tf.concat([following, [total]], 0)  # [T + 1]
    is_reached = tf.scatter_nd(begin[:, tf.newaxis], tf.ones_like(begin), [total + 1])

    def step(is_reached: tf.Tensor, ahead: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        more = tf.boolean_mask(ahead, is_reached > 0)
        is_reached = tf.tensor_scatter_nd_update(is_reached, more[:, tf.newaxis], tf.ones_like(more))
        return is_reached, tf.gather(ahead, ahead)

    is_reached, _ = tf.while_loop(lambda _, ahead: tf.reduce_any(ahead < total), step, (is_reached, ahead))
    return tf.where(is_reached[:-1] > 0)[:, 0]
