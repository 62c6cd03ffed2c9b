"""Batches: every row once, in an order that seed and epoch alone decide, and what stands in them cell by cell."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.batches import Batches, bucket_lengths
from albert_tf.errors import InputError
from albert_tf.feature_set import FeatureSet

LENGTHS = (4, 8, 16)


def feature_set(sizes, choices: int = 1, seed: int = 0) -> FeatureSet:
    """Sequences of those sizes with random pieces above 0."""
    random = np.random.default_rng(seed)
    sizes = np.asarray(sizes, np.int32)
    total = int(sizes.sum())
    return FeatureSet(
        random.integers(1, 100, total, dtype=np.int32),
        sizes,
        random.integers(0, sizes + 1).astype(np.int32),
        np.arange(len(sizes), dtype=np.int32) // choices,
        {"label_ids": random.integers(1, 9, len(sizes)).astype(np.int32), "table": random.random((len(sizes), 3))},
        {"tag_ids": random.integers(1, 9, total, dtype=np.int32)},
        choices,
    )


def check_sequence(features: FeatureSet, batch, sequence: int, at: tuple[int, ...]) -> None:
    """Compares one sequence of a batch with the flat arrays, piece by piece."""
    start, size, first = features.starts[sequence], features.sizes[sequence], features.first_sizes[sequence]
    for position in range(batch["input_ids"].shape[-1]):
        inside = position < size
        place = start + position
        assert batch["input_ids"][(*at, position)] == (features.input_ids[place] if inside else 0)
        assert batch["tag_ids"][(*at, position)] == (features.per_piece["tag_ids"][place] if inside else 0)
        assert batch["input_mask"][(*at, position)] == inside
        assert batch["segment_ids"][(*at, position)] == (inside and position >= first)
    for name in ("label_ids", "table"):
        np.testing.assert_array_equal(batch[name][at], features.per_sequence[name][sequence])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 16), max_size=60), st.integers(1, 7), st.integers(0, 3), st.integers(0, 3))
def test_an_epoch_visits_every_row_once(sizes, batch_size, seed, epoch):
    features = feature_set(sizes)
    batches = Batches(features, batch_size, LENGTHS)
    order = batches.training_order(seed, epoch)
    assert sorted(np.concatenate([[], *order]).tolist()) == list(range(len(sizes)))
    assert len(order) == batches.steps_per_epoch
    assert sum(len(rows) != batch_size for rows in order) <= 1
    for rows in order:
        batch = batches.cut(rows)
        assert batch["input_ids"].shape == (batch_size, min(n for n in LENGTHS if n >= features.sizes[rows].max()))
        assert batch["row"].tolist() == [*rows, *[-1] * (batch_size - len(rows))]
        assert batch["example_weight"].tolist() == [1.0] * len(rows) + [0.0] * (batch_size - len(rows))


def test_what_stands_in_a_batch():
    features = feature_set([5, 1, 16, 0, 7])
    batch = Batches(features, 7, LENGTHS).cut(np.array([4, 2, 0, 3]))
    for row, sequence in enumerate([4, 2, 0, 3]):
        check_sequence(features, batch, sequence, (row,))
    for name, array in batch.items():
        assert not np.any(array[4:]) or name == "row"
        assert array.dtype == (np.float64 if name == "table" else np.float32 if name == "example_weight" else np.int32)


def test_choices_stand_side_by_side():
    features = feature_set([5, 1, 0, 8, 3, 6], choices=3)
    batch = Batches(features, 3, LENGTHS).cut(np.array([1, 0]))
    assert batch["input_ids"].shape == (3, 3, 8)
    assert batch["table"].shape == (3, 3, 3)
    for (row, example), choice in itertools.product(enumerate([1, 0]), range(3)):
        check_sequence(features, batch, example * 3 + choice, (row, choice))
    assert not batch["input_mask"][2].any()


def test_the_order_is_a_function_of_seed_and_epoch():
    sizes = np.random.default_rng(1).integers(1, 17, 500)
    one, other = (Batches(feature_set(sizes), 8, LENGTHS) for _ in range(2))

    def order(batches, seed, epoch):
        return [rows.tolist() for rows in batches.training_order(seed, epoch)]

    assert order(one, 3, 2) == order(other, 3, 2)
    assert order(one, 3, 2) != order(one, 3, 1)
    assert order(one, 3, 2) != order(one, 4, 2)
    # Which rows meet in a batch, not only which batch comes first, is drawn anew.
    met = {tuple(sorted(rows)) for rows in order(one, 3, 2)} & {tuple(sorted(rows)) for rows in order(one, 3, 1)}
    assert len(met) <= 1


def test_training_goes_on_at_any_step():
    batches = Batches(feature_set(np.random.default_rng(1).integers(1, 17, 45)), 8, LENGTHS)
    rows = [batch["row"].tolist() for batch in itertools.islice(batches.training(seed=5), 20)]
    for step in (0, 1, 5, 6, 7, 13):
        later = itertools.islice(batches.training(seed=5, start_step=step), 20 - step)
        assert [batch["row"].tolist() for batch in later] == rows[step:]


def test_little_is_padding_and_short_rows_are_not_first():
    random = np.random.default_rng(2)
    sizes = np.clip(random.gamma(2.0, 8.0, 4000), 4, 128).astype(np.int32)
    features = FeatureSet(np.ones(sizes.sum(), np.int32), sizes, sizes, np.arange(len(sizes), dtype=np.int32))
    batches = Batches(features, 16, bucket_lengths(128))
    padded = [batch["input_ids"].shape[1] for batch in map(batches.cut, batches.training_order(0, 0))]
    shuffled = [sizes[some].max() for some in random.permutation(4000).reshape(-1, 16)]
    assert sum(padded) < 0.65 * sum(shuffled)  # padding to the longest of rows that meet by chance
    assert 16 * sum(padded) < 1.5 * sizes.sum()
    # Of batches that follow one another, as many are of one length as chance has it, not nearly all.
    shares = np.unique(padded, return_counts=True)[1] / len(padded)
    assert abs(np.mean(np.equal(padded[:-1], padded[1:])) - np.sum(shares**2)) < 0.12


def test_evaluation_takes_the_longest_first():
    sizes = [3, 9, 16, 1, 9, 4, 2]
    batches = Batches(feature_set(sizes), 3, LENGTHS)
    all_of_them = list(batches.evaluation())
    assert [batch["row"].tolist() for batch in all_of_them] == [[2, 1, 4], [5, 0, 6], [3, -1, -1]]
    assert [batch["input_ids"].shape[1] for batch in all_of_them] == [16, 4, 4]


@pytest.mark.parametrize(
    "longest, lengths",
    [(128, (16, 24, 32, 48, 64, 96, 128)), (100, (16, 24, 32, 48, 64, 96, 100)), (16, (16,)), (9, (9,))],
)
def test_lengths_of_buckets(longest, lengths):
    assert bucket_lengths(longest) == lengths
    assert bucket_lengths(longest, static=True) == (longest,)
    assert bucket_lengths(512)[-4:] == (192, 256, 384, 512)


@pytest.mark.parametrize("static", [False, True])
def test_datasets_give_the_same_batches(static):
    features = feature_set([5, 1, 16, 3, 7], seed=1)
    batches = Batches(features, 2, bucket_lengths(20, static=static))
    for dataset, expected in (
        (batches.evaluation_dataset(), list(batches.evaluation())),
        (
            batches.training_dataset(seed=4, start_step=2).take(4),
            list(itertools.islice(batches.training(seed=4, start_step=2), 4)),
        ),
    ):
        assert dataset.element_spec["input_ids"].shape.as_list() == [2, 20 if static else None]
        assert dataset.element_spec["table"].shape.as_list() == [2, 3]
        given_out = list(dataset.as_numpy_iterator())
        assert len(given_out) == len(expected)
        for batch, wanted in zip(given_out, expected):
            assert set(batch) == set(wanted)
            for name, array in wanted.items():
                np.testing.assert_array_equal(batch[name], array)
                assert batch[name].dtype == array.dtype


def test_what_cannot_be_cut_is_refused():
    with pytest.raises(InputError, match="16 pieces.*at most 8"):
        Batches(feature_set([16]), 2, (4, 8))
    with pytest.raises(InputError, match="batch size is 0"):
        Batches(feature_set([3]), 0, LENGTHS)
    nothing = Batches(feature_set([]), 2, LENGTHS)
    assert list(nothing.evaluation()) == []
    with pytest.raises(InputError, match="nothing to train on"):
        next(nothing.training(seed=0))
