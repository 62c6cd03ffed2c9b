"""Several texts in a row, so that batches of one fixed shape are all but free of padding.

Runtimes that compile a graph for a shape are fastest when there is one; texts are of many lengths. A packed batch has
R rows of L places, the texts one behind the other, and a model reads from it which belongs to which:

    input_ids, segment_ids   [R,L] as for a text of its own
    position_ids             [R,L] the place in the text
    text_ids                 [R,L] 1, 2, … for the texts of a row, 0 at places without one; equal ones see each other
    first_positions          [N] of each text its first place among all R*L; 0 behind the last text

All are int32. N is the same for all batches of a shape, too.

T pieces, K choices.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from albert_tf.errors import InputError
from albert_tf.feature_set import FeatureSet

POSITIONS, TEXTS, FIRST_POSITIONS = "position_ids", "text_ids", "first_positions"
ROWS, LENGTH = 4, 128  # on two cores more rows are hardly faster, and the last batch is emptier
LEAST_PIECES = 8  # what a text takes of a row, however short it is: so many texts are computed to the end at most
Arrays = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class PackedBatch:
    """One batch.

    Attributes:
        inputs: see the module.
        sequences: int64 [n], n <= N: the sequences that the first n of `first_positions` belong to.
    """

    inputs: Arrays
    sequences: np.ndarray


@dataclasses.dataclass
class _Row:
    length: int
    space: int
    sequences: list[int] = dataclasses.field(default_factory=list)


def batches(features: FeatureSet, rows: int = ROWS, length: int = LENGTH) -> Iterator[PackedBatch]:
    """Every sequence once.

    A sequence that is longer than `length` gets a row of twice that length, or four times and so on, in a batch of as
    many places, one row at least.

    Args:
        features: the sequences, those without pieces (choices that are not there) are left out.
        rows, length: R and L.

    Raises:
        InputError: one of them is below 1.
    """
    if rows < 1 or length < 1:
        raise InputError(f"packed batches of {rows} rows of {length} pieces: both must be at least 1")
    packed = _rows(features.sizes, length)
    for own_length in sorted({row.length for row in packed}, reverse=True):
        some = [row.sequences for row in packed if row.length == own_length]
        own_rows = max(1, rows * length // own_length)
        for first in range(0, len(some), own_rows):
            yield _batch(features, some[first : first + own_rows], own_rows, own_length)


def outputs(
    function: Callable[[Arrays], Arrays], features: FeatureSet, rows: int = ROWS, length: int = LENGTH
) -> dict[str, np.ndarray]:
    """What a function of packed batches gives, in the order of the sequences.

    Args:
        function: `PackedBatch.inputs` to outputs [N,…] by name.
        features, rows, length: see `batches`.

    Returns:
        Name to an array with a row for each sequence, zeros for one without pieces; nothing where there is no sequence.
    """
    found: dict[str, np.ndarray] = {}
    for batch in batches(features, rows, length):
        for name, values in function(batch.inputs).items():
            if name not in found:
                found[name] = np.zeros((len(features.sizes), *values.shape[1:]), values.dtype)
            found[name][batch.sequences] = values[: len(batch.sequences)]
    return found


def of_padded(
    function: Callable[[Arrays], Arrays], rows: int = ROWS, length: int = LENGTH
) -> Callable[[Arrays], Arrays]:
    """A function of packed batches as one of `input_ids`, `input_mask` and `segment_ids` [B,S], outputs [B,…]."""

    def answer(inputs: Arrays) -> Arrays:
        is_piece = inputs["input_mask"] > 0
        sizes = is_piece.sum(axis=1, dtype=np.int32)
        first_sizes = (is_piece & (inputs["segment_ids"] == 0)).sum(axis=1, dtype=np.int32)
        numbers = np.arange(len(sizes), dtype=np.int32)
        return outputs(function, FeatureSet(inputs["input_ids"][is_piece], sizes, first_sizes, numbers), rows, length)

    return answer


def _rows(sizes: np.ndarray, length: int) -> list[_Row]:
    """Best fit decreasing: the longest first, each into the row that it fills best, else into a new one."""
    rows: list[_Row] = []
    longest = max(length, 2 * int(sizes.max(initial=0)))
    by_space: list[list[_Row]] = [[] for _ in range(longest + 1)]  # those that take one more text
    order = np.argsort(-sizes, kind="stable")
    for sequence in order[: np.count_nonzero(sizes)].tolist():
        size = int(sizes[sequence])
        space = next((space for space in range(size, longest + 1) if by_space[space]), None)
        if space is None:
            own_length = length
            while own_length < size:
                own_length *= 2
            row = _Row(own_length, own_length)
            rows.append(row)
        else:
            row = by_space[space].pop()
        row.sequences.append(sequence)
        row.space -= size
        if len(row.sequences) < _most_texts(row.length):
            by_space[row.space].append(row)
    return rows


def _most_texts(length: int) -> int:
    return max(1, length // LEAST_PIECES)


def _batch(features: FeatureSet, packed: Sequence[Sequence[int]], rows: int, length: int) -> PackedBatch:
    """Sequences of each row to arrays."""
    sequences = np.array([sequence for row in packed for sequence in row], np.int64)
    counts = np.array([len(row) for row in packed])
    sizes = features.sizes[sequences].astype(np.int64)  # [n]
    begins = np.cumsum(sizes) - sizes
    of_row = np.repeat(np.cumsum(counts) - counts, counts)  # [n] the first sequence of its row
    firsts = np.repeat(np.arange(len(packed)) * length, counts) + begins - begins[of_row]  # [n] places among R*L

    positions = np.arange(sizes.sum()) - np.repeat(begins, sizes)  # [T]
    places = np.repeat(firsts, sizes) + positions

    def spread(values: np.ndarray) -> np.ndarray:
        out = np.zeros(rows * length, np.int32)
        out[places] = values
        return out.reshape(rows, length)

    first_positions = np.zeros(rows * _most_texts(length), np.int32)
    first_positions[: len(sequences)] = firsts
    inputs = {
        "input_ids": spread(features.input_ids[np.repeat(features.starts[sequences], sizes) + positions]),
        "segment_ids": spread(positions >= np.repeat(features.first_sizes[sequences], sizes)),
        POSITIONS: spread(positions),
        TEXTS: spread(np.repeat(np.arange(len(sequences)) - of_row + 1, sizes)),
        FIRST_POSITIONS: first_positions,
    }
    return PackedBatch(inputs, sequences)
