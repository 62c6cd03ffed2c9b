"""Packing of sentences: nothing is lost, order and labels are what the README says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.errors import InputError
from data_prep.batches import SpecialIds, assemble
from data_prep.segments import Packing, pack_function, pack_none, pack_nsp, pack_sop, special_count
from tests.preparation import made_document

SPECIAL = SpecialIds(pad=0, cls=2, sep=3, mask=4)

sentence_sizes = st.lists(st.integers(1, 40), min_size=1, max_size=30)


def _rng(seed=0):
    return np.random.default_rng(seed)


def _pieces(documents, segment):
    return documents[segment.document].pieces[segment.start : segment.end].tolist()


@given(sentence_sizes, st.integers(5, 60), st.sampled_from([0.0, 0.1, 1.0]), st.integers(0, 1000), st.integers(1, 4))
@settings(max_examples=300, deadline=None)
def test_sop_is_two_consecutive_segments_of_one_document(sizes, max_pieces, short_seq_prob, seed, word_every):
    document = made_document(sizes, word_every=word_every)
    instances = pack_sop([document], 0, Packing(max_pieces, short_seq_prob), _rng(seed))
    covered = set()
    for first, second, label in instances:
        before, after = (second, first) if label else (first, second)
        assert before.end <= after.start
        assert before.start < before.end and after.start < after.end
        assert before.end - before.start + after.end - after.start <= max_pieces
        if before.end < after.start:  # then the later one is whole
            assert {after.start, after.end} <= set(document.sentence_ends)
            assert before.end - before.start + after.end - after.start == max_pieces
        covered.update(range(before.start, before.end), range(after.start, after.end))
    assert instances or document.starts_word.sum() == 1
    if instances:
        assert covered == set(range(len(document.pieces)))


@given(sentence_sizes, st.integers(20, 60), st.integers(0, 1000), st.sampled_from([pack_sop, pack_nsp, pack_none]))
@settings(max_examples=200, deadline=None)
def test_every_word_is_whole_in_a_record(sizes, max_pieces, seed, pack):
    document = made_document(sizes, word_every=3)
    other = made_document([10, 10], first_piece=5000)
    instances = pack([document, other], 0, Packing(max_pieces, 0.0), _rng(seed))
    assert instances or document.starts_word.sum() == 1
    starts = np.flatnonzero(document.starts_word).tolist()
    spans = set()
    for first, second, _ in instances:
        segments = [first] if second is None or second.document == 1 else [first, second]
        spans.update((segment.start, segment.end) for segment in segments)
        starts_and_ends = sorted(spans_of for segment in segments for spans_of in (segment.start, segment.end))
        if len(segments) == 2 and starts_and_ends[1] == starts_and_ends[2]:
            spans.add((starts_and_ends[0], starts_and_ends[3]))
    for start, end in zip(starts, [*starts[1:], len(document.pieces)]) if instances else ():
        assert any(a <= start and end <= b for a, b in spans), (start, end, spans)


def test_sop_swaps_half_of_the_pairs():
    document = made_document([5] * 20_000)
    labels = [label for _, _, label in pack_sop([document], 0, Packing(29, 0.0), _rng())]
    assert len(labels) > 2000
    assert 0.48 < np.mean(labels) < 0.52


def test_boundary_between_a_and_b_is_any_boundary_of_sentences():
    document = made_document([5] * 20_000)
    splits = [
        (second.end - second.start if label else first.end - first.start) // 5
        for first, second, label in pack_sop([document], 0, Packing(25, 0.0), _rng())
    ]
    assert set(splits) == {1, 2, 3, 4}
    assert np.bincount(splits)[1:] == pytest.approx(len(splits) / 4, rel=0.1)


def test_records_are_nearly_full_but_for_the_end_of_a_document():
    document = made_document([7] * 1000)
    instances = pack_sop([document], 0, Packing(61, 0.0), _rng())
    sizes = [sum(s.end - s.start for s in (first, second)) for first, second, _ in instances]
    assert set(sizes[:-1]) == {56}  # the next sentence would have to be cut for less than an eighth of the record
    document = made_document([17] * 1000)
    instances = pack_sop([document], 0, Packing(61, 0.0), _rng())
    assert {sum(s.end - s.start for s in (first, second)) for first, second, _ in instances[:-1]} <= {51, 61}
    assert sum(first.end - first.start + second.end - second.start == 61 for first, second, _ in instances) > 100


def test_short_target_is_drawn_per_document():
    packing = Packing(125, 0.1)
    document = made_document([5] * 40)
    lengths = []
    for seed in range(2000):
        first, second, _ = pack_sop([document], 0, packing, _rng(seed))[0]
        lengths.append(sum(s.end - s.start for s in (first, second)))
    short = np.mean(np.array(lengths) < 110)
    assert 0.08 < short < 0.12
    assert min(lengths) == 10  # however short the target, there are two sentences
    assert {size % 5 for size in lengths if size < 110} == {0}  # no sentence is cut


@pytest.mark.parametrize("max_pieces", [125, 253])
def test_nothing_about_where_a_segment_breaks_off_tells_the_order(max_pieces):
    sizes = np.random.default_rng(3).integers(3, 40, 60_000).tolist()
    document = made_document(sizes)
    ends = {0, *document.sentence_ends}
    shapes, shares = {0: [], 1: []}, {0: [], 1: []}
    for first, second, label in pack_sop([document], 0, Packing(max_pieces, 0.0), _rng()):
        shapes[label].append([place in ends for place in (first.start, first.end, second.start, second.end)])
        shares[label].append((first.end - first.start) / max_pieces)
    assert len(shapes[1]) > 1500
    in_order, swapped = (np.mean(shapes[label], axis=0) for label in (0, 1))
    assert in_order == pytest.approx(swapped, abs=0.05)
    assert in_order[[0, 2]] == pytest.approx(1.0, abs=0.001)  # segments begin with a sentence
    assert np.mean(shares[0]) == pytest.approx(np.mean(shares[1]), abs=0.03)
    assert np.quantile(shares[0], [0.1, 0.5, 0.9]) == pytest.approx(np.quantile(shares[1], [0.1, 0.5, 0.9]), abs=0.05)


def test_repeated_text_is_a_small_share():
    sizes = np.random.default_rng(3).integers(3, 40, 20_000).tolist()
    document = made_document(sizes)
    instances = pack_sop([document], 0, Packing(509, 0.0), _rng())
    assert 509 * len(instances) < 1.25 * len(document.pieces)


@pytest.mark.parametrize("sizes", [[1], [2]])
def test_documents_too_short_for_two_segments_give_nothing(sizes):
    assert pack_sop([made_document(sizes)], 0, Packing(61, 0.0), _rng()) == []


def test_a_single_sentence_is_split_between_words():
    document = made_document([30], word_every=3)
    splits = set()
    for seed in range(300):
        ((first, second, label),) = pack_sop([document], 0, Packing(61, 0.0), _rng(seed))
        splits.add(min(first.end, second.end))
    assert splits == set(range(3, 30, 3))


def test_a_single_long_word_is_split_between_pieces():
    document = made_document([12], word_every=100)
    splits = {
        min(i.first.end, i.second.end) for s in range(200) for i in pack_sop([document], 0, Packing(61, 0), _rng(s))
    }
    assert splits == set(range(1, 12))


def test_a_last_word_takes_the_sentence_before_it_along():
    document = made_document([60, 20, 1])
    last = pack_sop([document], 0, Packing(80, 0.0), _rng())[-1]
    assert {(s.start, s.end) for s in (last.first, last.second)} == {(60, 80), (80, 81)}


def test_nsp_labels():
    documents = [made_document([10] * 300, first_piece=1000 * i) for i in range(1, 9)]
    labels = []
    for index in range(len(documents)):
        instances = pack_nsp(documents, index, Packing(50, 0.0), _rng(index))
        reached = 0
        for first, second, label in instances:
            labels.append(label)
            assert first.document == index
            assert first.start <= reached  # no text is left out
            assert first.end - first.start + second.end - second.start <= 50
            if label:
                assert second.document != index
                assert second.start % 10 == 0
                reached = first.end
            else:
                assert second.document == index and second.start == first.end
                reached = second.end
        assert reached == len(documents[index].pieces)
    assert 0.46 < np.mean(labels) < 0.54


def test_nsp_draws_from_all_other_documents():
    documents = [made_document([10] * 50, first_piece=1000 * i) for i in range(1, 6)]
    drawn = [
        second.document
        for seed in range(200)
        for _, second, label in pack_nsp(documents, 2, Packing(50, 0.0), _rng(seed))
        if label
    ]
    counts = np.bincount(drawn, minlength=5)
    assert counts[2] == 0
    assert counts[[0, 1, 3, 4]] == pytest.approx(len(drawn) / 4, rel=0.15)


def test_nsp_with_a_single_document_at_hand_goes_on_with_label_0():
    instances = pack_nsp([made_document([10] * 50)], 0, Packing(50, 0.0), _rng())
    assert instances and {label for _, _, label in instances} == {0}


def test_none_has_one_segment():
    document = made_document([10] * 50)
    instances = pack_none([document], 0, Packing(62, 0.0), _rng())
    assert all(second is None and label == 0 for _, second, label in instances)
    assert [first.end - first.start for first, _, _ in instances[:-1]] == [62] * (len(instances) - 1)
    assert special_count("none") == 2 and special_count("sop") == special_count("nsp") == 3


def test_unknown_objective_lists_the_known_ones():
    with pytest.raises(InputError, match="--sentence_objective=mlm: choose one of sop, nsp, none"):
        pack_function("mlm")


@pytest.mark.parametrize("pack", [pack_sop, pack_none])
def test_rows(pack):
    documents = [made_document([9, 8, 7, 6, 5] * 10)]
    instances = pack(documents, 0, Packing(29, 0.0), _rng())
    batch = assemble(documents, instances, 32, SPECIAL)
    for row, (first, second, _), length in zip(batch.input_ids, instances, batch.lengths):
        expected = [2, *_pieces(documents, first), 3]
        if second is not None:
            expected += [*_pieces(documents, second), 3]
        assert length == len(expected)
        assert row.tolist() == expected + [0] * (32 - len(expected))
    assert batch.labels.tolist() == [label for _, _, label in instances]
