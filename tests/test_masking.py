"""Masking against a plain, one-record-at-a-time oracle and against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.batches import SpecialIds, assemble
from data_prep.masking import Masking, mask_batch
from data_prep.segments import Packing, pack_none, pack_sop
from tests.preparation import made_document

VOCAB = 400
SPECIAL = SpecialIds(pad=0, cls=2, sep=3, mask=4)
REGULAR = np.arange(5, VOCAB, dtype=np.int32)


def _batch(seed, *, length=64, documents=6, pack=pack_sop):
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(documents):
        document = made_document(rng.integers(1, 25, 15).tolist())
        made.append(document.__class__(document.key, rng.choice(REGULAR, len(document.pieces)), *_rest(document)))
    specials = 3 if pack is pack_sop else 2
    instances = [i for d in range(documents) for i in pack(made, d, Packing(length - specials, 0.3), rng)]
    return assemble(made, instances, length, SPECIAL)


def _rest(document):
    return document.sentence_ends, document.starts_word


def _masking(**changes):
    starts_word = np.arange(VOCAB) % 3 != 0  # about two pieces in three begin a word
    values = dict(starts_word=starts_word, regular_ids=REGULAR, mask_id=4, max_predictions=10)
    return Masking(**{**values, **changes})


def _draws(batch, masking, seed=0):
    size, length = batch.input_ids.shape
    return np.random.default_rng(seed).random((size, masking.draws_per_record(length)))


def _words_of(batch, row, masking):
    """Lists of places, a list for each segment, a list for each word."""
    first, second = int(batch.first_lengths[row]), int(batch.second_lengths[row])
    segments = []
    for start, size in ((1, first), (first + 2, second)):
        words = []
        for place in range(start, start + size):
            if place == start or not masking.whole_words or masking.starts_word[batch.input_ids[row, place]]:
                words.append([])
            words[-1].append(place)
        segments.append(words)
    return segments


def _oracle(batch, row, masking, draws):
    """The released procedure for one record, word by word: the places it masks and the lengths of its n-grams."""
    length = batch.input_ids.shape[1]
    order, sizes = draws[:length], draws[length : 2 * length]
    segments = _words_of(batch, row, masking)
    tries = [(segment, i) for segment in segments for i in range(len(segment))]
    budget = min(masking.max_predictions, max(1, round(masking.masked_lm_prob * int(batch.lengths[row]))))
    masked, lengths = set(), []
    for attempt in range(len(tries)):
        other = attempt + int(order[attempt] * (len(tries) - attempt))
        tries[attempt], tries[other] = tries[other], tries[attempt]
        if len(masked) >= budget:
            break
        segment, i = tries[attempt]
        possible = range(1, min(masking.ngram, len(segment) - i) + 1)
        weights = [1 / n if masking.favor_shorter_ngram else 1 / (masking.ngram + 1 - n) for n in possible]
        point, n = sizes[attempt] * sum(weights), 1
        while n < len(weights) and point >= sum(weights[:n]):
            n += 1
        while n > 1 and len(masked) + sum(map(len, segment[i : i + n])) > budget:
            n -= 1
        places = {place for word in segment[i : i + n] for place in word}
        if len(masked) + len(places) > budget or masked & places:
            continue
        masked |= places
        lengths.append(n)
    return sorted(masked), lengths


@given(
    st.integers(0, 10_000),
    st.booleans(),
    st.booleans(),
    st.integers(1, 4),
    st.sampled_from([0.05, 0.15, 0.5]),
    st.sampled_from([pack_sop, pack_none]),
)
@settings(max_examples=40, deadline=None)
def test_equals_the_oracle(seed, whole_words, favor_shorter, ngram, prob, pack):
    batch = _batch(seed, documents=3, pack=pack)
    masking = _masking(
        whole_words=whole_words, favor_shorter_ngram=favor_shorter, ngram=ngram, masked_lm_prob=prob, max_predictions=12
    )
    draws = _draws(batch, masking, seed)
    masked = mask_batch(batch, masking, draws)
    lengths = []
    for row in range(len(draws)):
        places, more = _oracle(batch, row, masking, draws[row])
        assert masked.positions[row, : masked.counts[row]].tolist() == places
        lengths += more
    assert masked.ngram_counts.tolist() == np.bincount(lengths, minlength=ngram + 1)[1:].tolist()


@pytest.mark.parametrize("whole_words", [True, False])
def test_records_are_what_the_definition_says(whole_words):
    batch = _batch(3, documents=60)
    masking = _masking(whole_words=whole_words)
    masked = mask_batch(batch, masking, _draws(batch, masking))
    partly = 0
    for row in range(len(batch.labels)):
        count = masked.counts[row]
        places = masked.positions[row, :count]
        assert (np.diff(places) > 0).all()
        assert not masked.positions[row, count:].any() and not masked.labels[row, count:].any()
        assert masked.labels[row, :count].tolist() == batch.input_ids[row, places].tolist()
        assert not np.isin(masked.labels[row, :count], [0, 2, 3]).any()
        assert masked.budgets[row] == min(10, max(1, round(0.15 * int(batch.lengths[row]))))
        assert count <= masked.budgets[row]
        untouched = np.setdiff1d(np.arange(64), places)
        assert masked.input_ids[row, untouched].tolist() == batch.input_ids[row, untouched].tolist()
        for segment in _words_of(batch, row, _masking()):
            partly += sum(0 < len(set(word) & set(places.tolist())) < len(word) for word in segment)
    assert (partly == 0) == whole_words
    assert (masked.budgets - masked.counts).sum() <= 0.01 * masked.budgets.sum()


def test_word_boundaries_do_not_depend_on_the_masks():
    batch = _batch(4)
    for whole_words in (True, False):
        masking = _masking(whole_words=whole_words)
        boundary = mask_batch(batch, masking, _draws(batch, masking)).token_boundary
        for row in range(len(batch.labels)):
            words = [word[0] for segment in _words_of(batch, row, _masking()) for word in segment]
            specials = [0, int(batch.first_lengths[row]) + 1, int(batch.lengths[row]) - 1]
            assert np.flatnonzero(boundary[row]).tolist() == sorted(words + specials)


def test_masks_kept_and_random_shares():
    batch = _batch(5, documents=700)
    masking = _masking()
    masked = mask_batch(batch, masking, _draws(batch, masking))
    is_used = np.arange(10) < masked.counts[:, None]
    rows, slots = np.nonzero(is_used)
    assert len(rows) > 20_000
    new = masked.input_ids[rows, masked.positions[rows, slots]]
    old = masked.labels[rows, slots]
    assert masked.fate_counts.sum() == len(rows)
    assert np.mean(new == 4) == pytest.approx(0.8, abs=0.01)
    assert np.mean(new == old) == pytest.approx(0.1 + 0.1 / len(REGULAR), abs=0.008)
    random_ids = new[(new != 4) & (new != old)]
    assert np.isin(random_ids, REGULAR).all()
    assert np.unique(random_ids).size > 0.95 * len(REGULAR)
    assert masked.fate_counts / len(rows) == pytest.approx([0.8, 0.1, 0.1], abs=0.01)


def test_ngram_lengths_follow_one_over_n():
    """One-piece words in one segment: the first n-gram of each record is drawn by p(n) ~ 1/n alone."""
    document = made_document([60])
    instances = pack_none([document], 0, Packing(62, 0.0), np.random.default_rng(0)) * 20_000
    batch = assemble([document], instances, 64, SPECIAL)
    for favor_shorter, expected in ((True, [6, 3, 2]), (False, [2, 3, 6])):
        # With a budget of 3 the first n-gram is never shortened; a 3-gram fills it, and what follows 1 and 2 is less.
        masking = Masking(np.ones(2000, bool), REGULAR, 4, 3, 0.05, 3, favor_shorter)
        masked = mask_batch(batch, masking, _draws(batch, masking))
        threes = masked.ngram_counts[2] / len(instances)
        # Starts at the last two words cannot be 3-grams.
        assert threes == pytest.approx(expected[2] / 11 * 58 / 60, abs=0.01)
        assert masked.counts.tolist() == [3] * len(instances)


def test_does_not_depend_on_what_is_masked_together():
    batch = _batch(6)
    masking = _masking()
    draws = _draws(batch, masking)
    whole = mask_batch(batch, masking, draws)
    for row in range(len(batch.labels)):
        one = mask_batch(type(batch)(*(values[row : row + 1] for values in batch)), masking, draws[row : row + 1])
        assert one.input_ids[0].tolist() == whole.input_ids[row].tolist()
        assert one.positions[0].tolist() == whole.positions[row].tolist()
