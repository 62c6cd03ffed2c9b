"""Packed batches, against the definition: each text's pieces once and alone, and outputs in the texts' order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf import packing
from albert_tf.errors import InputError
from albert_tf.feature_set import FeatureSet

SIZES = st.lists(st.one_of(st.integers(0, 20), st.integers(0, 90)), max_size=60)
SHAPES = st.tuples(st.integers(1, 4), st.sampled_from((1, 5, 16, 24)))


def features_of(sizes) -> FeatureSet:
    """Pieces that are numbered through, the first third of each sequence in segment 0."""
    sizes = np.array(sizes, np.int32)
    ids = np.arange(1, sizes.sum() + 1, dtype=np.int32)
    return FeatureSet(ids, sizes, -(-sizes // 3), np.arange(len(sizes), dtype=np.int32))


@settings(max_examples=150, deadline=None)
@given(SIZES, SHAPES)
def test_every_piece_lies_in_one_batch_with_its_text_and_its_place(sizes, shape):
    rows, length = shape
    features, seen = features_of(sizes), {}
    for batch in packing.batches(features, rows, length):
        inputs, (own_rows, own_length) = batch.inputs, batch.inputs["input_ids"].shape
        assert all(array.dtype == np.int32 for array in inputs.values())
        assert own_length % length == 0 and own_rows == max(1, rows * length // own_length)
        assert own_length == length or max(features.sizes[batch.sequences]) > own_length // 2
        firsts = inputs["first_positions"]
        assert len(firsts) == own_rows * max(1, own_length // 8) and not firsts[len(batch.sequences) :].any()
        is_empty = inputs["text_ids"] == 0
        for name in ("input_ids", "segment_ids", "position_ids"):
            assert not inputs[name][is_empty].any()
        left = {name: inputs[name].ravel() for name in inputs}
        taken = np.zeros(is_empty.size, bool)
        for sequence, first in zip(batch.sequences, firsts):
            places = np.arange(first, first + features.sizes[sequence])
            assert first // own_length == places[-1] // own_length and not taken[places].any()
            taken[places] = True
            of_row = inputs["text_ids"][first // own_length]
            assert np.count_nonzero(of_row == left["text_ids"][first]) == len(places)
            assert len(set(left["text_ids"][places])) == 1
            np.testing.assert_array_equal(left["position_ids"][places], np.arange(len(places)))
            in_second = np.arange(len(places)) >= features.first_sizes[sequence]
            np.testing.assert_array_equal(left["segment_ids"][places], in_second)
            assert sequence not in seen
            seen[sequence] = left["input_ids"][places]
        np.testing.assert_array_equal(taken, ~is_empty.ravel())
    assert sorted(seen) == [number for number, size in enumerate(sizes) if size]
    found = [seen[number] for number in sorted(seen)]
    np.testing.assert_array_equal(np.concatenate([*found, np.zeros(0, np.int32)]), features.input_ids)


def sums(inputs):
    """A text's first piece, and the sum of its pieces, found as the graph has to."""
    ids, texts = inputs["input_ids"], inputs["text_ids"]
    rows, places = np.divmod(inputs["first_positions"], ids.shape[1])
    own = texts[rows] == texts[rows, places][:, np.newaxis]
    return {"first": ids[rows, places], "sum": (ids[rows] * own).sum(axis=1)[:, np.newaxis]}


@settings(max_examples=60, deadline=None)
@given(SIZES, SHAPES)
def test_outputs_are_in_the_order_of_the_texts(sizes, shape):
    features = features_of(sizes)
    found = packing.outputs(sums, features, *shape)
    if not any(sizes):
        assert found == {}
        return
    parts = np.split(features.input_ids, np.cumsum(sizes)[:-1])
    np.testing.assert_array_equal(found["first"], [part[0] if len(part) else 0 for part in parts])
    np.testing.assert_array_equal(found["sum"], [[part.sum()] for part in parts])


@pytest.mark.parametrize("rows, length", [(1, 128), (4, 128), (2, 256), (1, 512)])
def test_little_is_padding_where_lengths_are_log_normal(rows, length):
    for seed in range(3):
        drawn = np.random.default_rng(seed).lognormal(np.log(24), 0.79, 1000)
        features = features_of(np.clip(drawn, 3, 512).astype(int))
        made = list(packing.batches(features, rows, length))
        places = sum(batch.inputs["input_ids"].size for batch in made)
        fill = rows * length * len({batch.inputs["input_ids"].shape for batch in made})
        assert (places - len(features.input_ids) - fill) / places < 0.02


def test_a_row_takes_no_more_texts_than_are_computed_to_the_end():
    batches = list(packing.batches(features_of([2] * 100), 2, 24))
    assert [len(batch.sequences) for batch in batches] == [6] * 16 + [4]


def test_padded_batches_are_answered_through_packed_ones():
    mask = np.array([[1, 1, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]], np.int32)
    ids = np.arange(1, 13, dtype=np.int32).reshape(3, 4)
    segments = mask * [[0, 0, 1, 1]]
    seen = []

    def function(inputs):
        seen.append(inputs["segment_ids"])
        return sums(inputs)

    found = packing.of_padded(function, 1, 8)({"input_ids": ids * mask, "input_mask": mask, "segment_ids": segments})
    np.testing.assert_array_equal(found["sum"], [[1 + 2 + 3], [0], [9 + 10 + 11 + 12]])
    np.testing.assert_array_equal(seen, [[[0, 0, 1, 1, 0, 0, 0, 0]], [[0, 0, 1, 0, 0, 0, 0, 0]]])


@pytest.mark.parametrize("shape", [(0, 8), (1, 0)])
def test_a_shape_without_places_is_an_error(shape):
    with pytest.raises(InputError, match="both must be at least 1"):
        list(packing.batches(features_of([3]), *shape))
