"""Whole-word n-gram masking (paper, section 3.1 and the released create_pretraining_data), for many records at once.

The released code goes through the words of a record in random order; at each it draws a length n with p(n) ~ 1/n, makes
the n-gram shorter if it would exceed the budget, and leaves it out if it meets one masked before. Here the same is done
one try at a time for all records together. Unlike there, an n-gram stays within its segment.

N records, S sequence length, P prediction slots, V vocabulary size, W words of all the records.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from data_prep.batches import Batch

MASK_SHARE, KEEP_SHARE = 0.8, 0.1  # the rest is replaced by a random piece
FATES = ("mask", "kept", "random")


@dataclasses.dataclass(frozen=True)
class Masking:
    """What is fixed for a run.

    Attributes:
        starts_word: bool [V].
        regular_ids: int32, the ids a random replacement may be.
        mask_id: of [MASK].
        max_predictions: P.
        masked_lm_prob: the share of the pieces, special ones included, to predict.
        ngram: the longest n.
        favor_shorter_ngram: p(n) ~ 1/n; otherwise the same weights in reverse.
        whole_words: n-grams of words; otherwise of pieces.
    """

    starts_word: np.ndarray
    regular_ids: np.ndarray
    mask_id: int
    max_predictions: int
    masked_lm_prob: float = 0.15
    ngram: int = 3
    favor_shorter_ngram: bool = True
    whole_words: bool = True

    def draws_per_record(self, max_seq_length: int) -> int:
        """How many uniform numbers `mask_batch` needs for a record: an order, an n, what becomes of it, by what."""
        return 2 * max_seq_length + 2 * self.max_predictions


class MaskedBatch(NamedTuple):
    """Masked records.

    Attributes:
        input_ids: int32 [N, S].
        token_boundary: uint8 [N, S], 1 where a word or a special piece starts, as in the released records.
        positions: int32 [N, P], ascending, then 0.
        labels: int32 [N, P], the pieces before masking, then 0.
        counts: int64 [N], predictions of each record.
        budgets: int64 [N], predictions wanted.
        ngram_counts: int64 [ngram], how many n-grams of n = 1, 2, …
        fate_counts: int64 [3], pieces by `FATES`.
    """

    input_ids: np.ndarray
    token_boundary: np.ndarray
    positions: np.ndarray
    labels: np.ndarray
    counts: np.ndarray
    budgets: np.ndarray
    ngram_counts: np.ndarray
    fate_counts: np.ndarray


def mask_batch(batch: Batch, masking: Masking, draws: np.ndarray) -> MaskedBatch:
    """Masks every record.

    Args:
        batch: N records.
        masking: see `Masking`.
        draws: uniform numbers in [0, 1), float64 [N, draws_per_record(S)].
    """
    size, length = batch.input_ids.shape
    slots = masking.max_predictions
    order, lengths_drawn, fates, replacements = np.split(draws, (length, 2 * length, 2 * length + slots), axis=1)

    columns = np.arange(length, dtype=np.int32)
    ends = batch.lengths[:, None]
    separator = 1 + batch.first_lengths[:, None]
    is_text = (columns > 0) & (columns < ends - 1) & (columns != separator)
    opens_segment = (columns == 1) | (columns == separator + 1)
    starts = (masking.starts_word[batch.input_ids] | opens_segment) & is_text
    words = _Words.of(starts if masking.whole_words else is_text, is_text, batch)

    budgets = np.minimum(slots, np.maximum(1, np.rint(masking.masked_lm_prob * batch.lengths))).astype(np.int64)
    covered, ngram_counts = _choose(words, budgets, masking, order, lengths_drawn)

    is_masked = np.zeros(is_text.shape, bool)
    is_masked[is_text] = np.repeat(covered, words.sizes)
    rows, places = np.nonzero(is_masked)
    counts = np.bincount(rows, minlength=size)
    slot = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    positions = np.zeros((size, slots), np.int32)
    labels = np.zeros((size, slots), np.int32)
    positions[rows, slot] = places
    old = labels[rows, slot] = batch.input_ids[rows, places]

    fate = fates[rows, slot]
    random_ids = masking.regular_ids[(replacements[rows, slot] * len(masking.regular_ids)).astype(np.int64)]
    is_kept = (fate >= MASK_SHARE) & (fate < MASK_SHARE + KEEP_SHARE)
    input_ids = batch.input_ids.copy()
    input_ids[rows, places] = np.where(fate < MASK_SHARE, masking.mask_id, np.where(is_kept, old, random_ids))
    masks, kept = int((fate < MASK_SHARE).sum()), int(is_kept.sum())

    return MaskedBatch(
        input_ids,
        (starts | (columns < ends) & ~is_text).astype(np.uint8),
        positions,
        labels,
        counts,
        budgets,
        ngram_counts,
        np.array([masks, kept, len(rows) - masks - kept]),
    )


class _Words(NamedTuple):
    """The words of all records in a row; those of one record are neighbours.

    Attributes:
        sizes: int64 [W], pieces of each.
        pieces_before: int64 [W + 1], pieces of all words before each.
        left: int64 [W], words from this one to the end of its segment.
        first: int64 [N], the first word of each record.
        counts: int64 [N], words of each record.
    """

    sizes: np.ndarray
    pieces_before: np.ndarray
    left: np.ndarray
    first: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, starts: np.ndarray, is_text: np.ndarray, batch: Batch) -> _Words:
        at = np.flatnonzero(starts[is_text])  # among the text pieces of all records in a row
        pieces_before = np.append(at, int(is_text.sum()))
        # Segment ends among the same pieces: A and B of each record alternate.
        segment_ends = np.cumsum(np.stack([batch.first_lengths, batch.second_lengths], axis=1).ravel())
        words_to_end = np.searchsorted(at, segment_ends)
        words_in_segment = np.diff(words_to_end, prepend=0)
        left = np.repeat(words_to_end, words_in_segment) - np.arange(len(at))
        counts = words_in_segment.reshape(-1, 2).sum(axis=1)
        return cls(np.diff(pieces_before), pieces_before, left, np.cumsum(counts) - counts, counts)


def _choose(
    words: _Words, budgets: np.ndarray, masking: Masking, order: np.ndarray, lengths_drawn: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which words are masked, bool [W], and how many n-grams there are of each length, int64 [ngram]."""
    longest = masking.ngram
    weights = 1.0 / np.arange(1, longest + 1)
    reach = np.cumsum(weights if masking.favor_shorter_ngram else weights[::-1])
    covered = np.zeros(len(words.sizes) + longest, bool)
    ngram_counts = np.zeros(longest, np.int64)
    # Each record's words in random order, shuffled only as far as they are looked at.
    widest = int(words.counts.max(initial=0))
    shuffled = words.first[:, None] + np.arange(widest)
    left_over = budgets.copy()
    active = np.flatnonzero(words.counts > 0)
    for attempt in range(widest):
        if not len(active):
            break
        counts = words.counts[active]
        drawn = attempt + (order[active, attempt] * (counts - attempt)).astype(np.int64)
        word = shuffled[active, drawn]
        shuffled[active, drawn] = shuffled[active, attempt]

        fitting = np.minimum(words.left[word], longest)
        point = lengths_drawn[active, attempt] * reach[fitting - 1]
        n = np.ones_like(word)
        for bound in reach[:-1]:
            n += point >= bound
        before = words.pieces_before[word]
        room = left_over[active]
        pieces = words.pieces_before[word + n] - before
        for _ in range(longest - 1):
            n -= (pieces > room) & (n > 1)
            pieces = words.pieces_before[word + n] - before
        chosen = (pieces <= room) & ~covered[word]
        for further in range(1, longest):
            chosen &= ~(covered[word + further] & (n > further))

        word, n = word[chosen], n[chosen]
        for further in range(longest):
            covered[(word + further)[n > further]] = True
        ngram_counts += np.bincount(n - 1, minlength=longest)
        left_over[active] = room - pieces * chosen
        active = active[(left_over[active] > 0) & (counts > attempt + 1)]
    return covered[: len(words.sizes)], ngram_counts
