"""Sentences of words to sequences of pieces, long ones to several that overlap, so that no word is lost.

N sequences, T pieces of all of them together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from albert_tf import sequences
from albert_tf.tokenizer import Tokenizer


class Window(NamedTuple):
    """Words `first` to `end` - 1 of a sentence, of which those from `first_own` to `end_own` - 1 are answered here."""

    first: int
    end: int
    first_own: int
    end_own: int


class WordSequences(NamedTuple):
    """`[CLS] pieces of the words [SEP]`, without padding.

    Attributes:
        input_ids: int32 [T].
        sizes: int32 [N].
        sentences: int32 [N], ascending.
        words: int32 [T], at the first piece of a word that is answered there its index in the sentence, else -1. Each
            word of each sentence is at one place.
        cut: sentences with a word that alone is too long for a sequence and lost its last pieces.
    """

    input_ids: np.ndarray
    sizes: np.ndarray
    sentences: np.ndarray
    words: np.ndarray
    cut: int


def word_sequences(
    sentences: Sequence[Sequence[str]], tokenizer: Tokenizer, max_seq_length: int, doc_stride: int
) -> WordSequences:
    """Encodes sentences word by word.

    SentencePiece puts its mark of a space before every word, and its pieces do not reach over a space, so the ids are
    those of the words joined by spaces. A word of which the clean-up leaves nothing is one unknown piece.

    Args:
        sentences: the words.
        tokenizer: makes the pieces.
        max_seq_length: the most pieces of a sequence.
        doc_stride: how far a window is from the one before, in pieces.
    """
    pieces = _with_unknown(sequences.encode([word for words in sentences for word in words], tokenizer), tokenizer)
    room = max_seq_length - sequences.SPECIALS_OF_ONE
    kept = pieces.first(np.full(len(pieces.sizes), room))
    is_long = kept.sizes < pieces.sizes
    ends = np.cumsum([len(words) for words in sentences], dtype=np.int64)
    ids, sizes, owners, indices = [], [], [], []
    cut = 0
    for number, (words, end) in enumerate(zip(sentences, ends)):
        first = end - len(words)
        cut += bool(is_long[first:end].any())
        for window in windows(kept.sizes[first:end], room, doc_stride):
            some = kept.take(np.arange(first + window.first, first + window.end))
            places = np.cumsum(some.sizes) - some.sizes + 1
            here = np.full(int(some.sizes.sum()) + sequences.SPECIALS_OF_ONE, -1, np.int32)
            own = np.arange(window.first_own, window.end_own)
            here[places[own - window.first]] = own
            ids.append(np.concatenate([[tokenizer.cls_id], some.ids[some.places()], [tokenizer.sep_id]]))
            indices.append(here)
            sizes.append(len(here))
            owners.append(number)
    return WordSequences(_joined(ids), np.array(sizes, np.int32), np.array(owners, np.int32), _joined(indices), cut)


def windows(word_sizes: np.ndarray, room: int, stride: int) -> Iterator[Window]:
    """Cuts a sentence between words; each word is answered where it has most context on its scarcer side.

    Args:
        word_sizes: pieces of each word, each from 1 to `room`.
        room: the most pieces of a window.
        stride: pieces from the beginning of one window to that of the next, at least; a window that would begin behind
            the end of the one before begins there.
    """
    ends = np.cumsum(word_sizes)
    starts = ends - word_sizes
    spans, first = [], 0
    while True:
        end = int(np.searchsorted(ends, starts[first] + room, side="right")) if len(ends) else 0
        spans.append((first, end))
        if end >= len(ends):
            break
        first = min(end, max(first + 1, int(np.searchsorted(starts, starts[first] + stride))))
    own = 0
    for number, (first, end) in enumerate(spans):
        until = end
        if number + 1 < len(spans):  # in the middle of what both windows hold
            next_first = spans[number + 1][0]
            middle = (starts[next_first] + ends[end - 1]) / 2
            until = next_first + int(np.searchsorted(starts[next_first:end], middle))
        yield Window(first, end, own, until)
        own = until


def _with_unknown(pieces: sequences.Pieces, tokenizer: Tokenizer) -> sequences.Pieces:
    """The pieces, with the unknown one for words that have none."""
    ids = np.append(pieces.ids, np.int32(tokenizer.unk_id))
    is_empty = pieces.sizes == 0
    return sequences.Pieces(
        ids, np.where(is_empty, len(pieces.ids), pieces.starts), np.where(is_empty, 1, pieces.sizes)
    )


def _joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(arrays).astype(np.int32) if arrays else np.zeros(0, np.int32)
