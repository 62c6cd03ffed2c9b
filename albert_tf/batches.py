"""Batches of one size cut from a `FeatureSet`, rows of like length together, so that little of them is padding.

The order of training is a pure function of (seed, epoch), and each epoch visits every row once: therefore a step
number is a data position, and nothing else needs to be saved to go on where a run was stopped.

B rows of a batch, S its padded length, K choices, N sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.feature_set import FeatureSet
from albert_tf.task_kinds.task_kind import EXAMPLE_WEIGHT

Batch = dict[str, np.ndarray]

ROW = "row"  # int32 [B] in a batch: the index in the FeatureSet, -1 for a row that only fills the batch
SHORTEST_LENGTH = 16
MOST_BATCHES_IN_A_POOL = 64
LEAST_POOLS = 4


def bucket_lengths(max_seq_length: int, *, static: bool = False) -> tuple[int, ...]:
    """The lengths that batches are padded to, ascending; the last one is `max_seq_length`.

    16, 24, 32, 48, 64, 96 and so on: each length is a shape that TensorFlow traces and compiles anew, so there are few.

    Args:
        max_seq_length: the longest row there can be.
        static: one length for all, as TPUs want it.
    """
    lengths = []
    length = SHORTEST_LENGTH
    while not static and length < max_seq_length:
        lengths += [length, length * 3 // 2]
        length *= 2
    return (*(length for length in lengths if length < max_seq_length), max_seq_length)


class Batches:
    """The batches of one `FeatureSet`.

    A batch is a dict of arrays: `input_ids`, `input_mask`, `segment_ids` int32 [B,S] ([B,K,S] with choices);
    `example_weight` float32 [B], 0 on rows that only fill it; `row` int32 [B], -1 on those; each array of
    `per_sequence` [B,…] ([B,K,…]) and of `per_piece` [B,S] ([B,K,S]). All of it is 0 in padding and in rows that fill.
    S is the smallest of the lengths that holds the longest row.

    Args:
        features: the sequences.
        batch_size: B.
        lengths: ascending, from `bucket_lengths`.

    Raises:
        InputError: the batch size is no whole number of at least 1, or a row is longer than the last length.
    """

    def __init__(self, features: FeatureSet, batch_size: int, lengths: Sequence[int]):
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise InputError(f"the batch size is {batch_size!r}, but must be a whole number of at least 1")
        self.features = features
        self.batch_size = batch_size
        self.lengths = np.asarray(lengths, np.int64)
        self._starts = features.starts
        row_sizes = features.sizes.reshape(len(features), features.choices)
        self.row_lengths = row_sizes.max(1, initial=0)  # [rows]
        longest = int(self.row_lengths.max(initial=0))
        if longest > self.lengths[-1]:
            raise InputError(f"a sequence has {longest} pieces, but batches hold at most {self.lengths[-1]}")

    @property
    def steps_per_epoch(self) -> int:
        """How many batches hold every row once; the last one may be filled up."""
        return -(-len(self.features) // self.batch_size)

    def training_order(self, seed: int, epoch: int) -> list[np.ndarray]:
        """The rows of each batch of an epoch, int32 arrays, all of B rows but one.

        Rows are shuffled and dealt into pools, in each pool those that are padded to the same length come together,
        the pools are cut into batches and the batches shuffled. Which rows meet is thus drawn anew in every epoch.
        """
        random = np.random.default_rng([seed, epoch])
        rows = random.permutation(len(self.features)).astype(np.int32)
        pool = max(1, min(MOST_BATCHES_IN_A_POOL, self.steps_per_epoch // LEAST_POOLS)) * self.batch_size
        batches = []
        for start in range(0, len(rows), pool):
            some = rows[start : start + pool]
            by_bucket = some[np.argsort(self._buckets(some), kind="stable")]
            batches += [by_bucket[at : at + self.batch_size] for at in range(0, len(some), self.batch_size)]
        return [batches[at] for at in random.permutation(len(batches))]

    def evaluation_order(self) -> list[np.ndarray]:
        """The rows of each batch of one pass, the longest first: what does not fit in memory fails at once."""
        rows = np.argsort(-self.row_lengths, kind="stable").astype(np.int32)
        return [rows[at : at + self.batch_size] for at in range(0, len(rows), self.batch_size)]

    def training(self, *, seed: int, start_step: int = 0) -> Iterator[Batch]:
        """Batches for ever, epoch after epoch, from `start_step` on.

        Raises:
            InputError: there is no row.
        """
        if not len(self.features):
            raise InputError("there is nothing to train on: no example gave a sequence")
        epoch, done = divmod(start_step, self.steps_per_epoch)
        while True:
            for rows in self.training_order(seed, epoch)[done:]:
                yield self.cut(rows)
            epoch, done = epoch + 1, 0

    def evaluation(self) -> Iterator[Batch]:
        """Every row once."""
        return map(self.cut, self.evaluation_order())

    def training_dataset(self, *, seed: int, start_step: int = 0) -> tf.data.Dataset:
        """`training` as a dataset."""
        return self._dataset(lambda: self.training(seed=seed, start_step=start_step))

    def evaluation_dataset(self) -> tf.data.Dataset:
        """`evaluation` as a dataset."""
        return self._dataset(self.evaluation)

    def cut(self, rows: np.ndarray) -> Batch:
        """The batch of at most B rows, filled up to B."""
        features, choices = self.features, self.features.choices
        length = int(self.lengths[self._buckets(rows).max(initial=0)])
        shape = (self.batch_size,) if choices == 1 else (self.batch_size, choices)
        fill = self.batch_size - len(rows)
        sequences = (rows[:, None] * choices + np.arange(choices)).ravel()
        sizes = np.pad(features.sizes[sequences], (0, fill * choices))[:, None]
        first_sizes = np.pad(features.first_sizes[sequences], (0, fill * choices))[:, None]
        positions = np.arange(length)
        mask = positions < sizes
        places = np.pad(self._starts[sequences], (0, fill * choices))[:, None] + positions

        def padded(pieces: np.ndarray) -> np.ndarray:
            out = np.zeros(mask.shape, pieces.dtype)
            out[mask] = pieces[places[mask]]
            return out.reshape(*shape, length)

        def filled(values: np.ndarray) -> np.ndarray:
            out = np.zeros((len(mask), *values.shape[1:]), values.dtype)
            out[: len(sequences)] = values[sequences]
            return out.reshape(*shape, *values.shape[1:])

        return {
            "input_ids": padded(features.input_ids),
            "input_mask": mask.astype(np.int32).reshape(*shape, length),
            "segment_ids": (mask & (positions >= first_sizes)).astype(np.int32).reshape(*shape, length),
            EXAMPLE_WEIGHT: np.pad(np.ones(len(rows), np.float32), (0, fill)),
            ROW: np.pad(rows.astype(np.int32), (0, fill), constant_values=-1),
            **{name: filled(values) for name, values in features.per_sequence.items()},
            **{name: padded(pieces) for name, pieces in features.per_piece.items()},
        }

    def _buckets(self, rows: np.ndarray) -> np.ndarray:
        """Of each row, the index of the length it is padded to."""
        return np.searchsorted(self.lengths, self.row_lengths[rows])

    def signature(self, length: int | None = None) -> dict[str, tf.TensorSpec]:
        """What a batch looks like, with `length` for S: all other dimensions are the same in all batches."""
        of_pieces = {"input_ids", "input_mask", "segment_ids", *self.features.per_piece}
        return {
            name: tf.TensorSpec((*array.shape[:-1], length) if name in of_pieces else array.shape, array.dtype)
            for name, array in self.cut(np.zeros(0, np.int32)).items()
        }

    def _dataset(self, make: Callable[[], Iterator[Batch]]) -> tf.data.Dataset:
        signature = self.signature(int(self.lengths[0]) if len(self.lengths) == 1 else None)
        return tf.data.Dataset.from_generator(make, output_signature=signature).prefetch(tf.data.AUTOTUNE)
