"""Sequences of many examples in a few flat arrays: what tokenisation gives, a file can cache and batches are cut from.

N sequences, T pieces in all of them together, K sequences to a multiple-choice example.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np


@dataclasses.dataclass(frozen=True)
class FeatureSet:
    """Sequences `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]` without padding.

    Attributes:
        input_ids: int32 [T], the sequences one behind the other.
        sizes: int32 [N], pieces of each; 0 is a place without a sequence (a choice that an example does not have).
        first_sizes: int32 [N], the pieces of segment 0 at the beginning: `[CLS] A [SEP]`.
        example_indices: int32 [N], to which example each belongs, ascending. An example may have several sequences
            (windows of a long context, choices).
        per_sequence: further arrays [N, …], such as `label_ids` or `start_positions`.
        per_piece: further arrays [T], such as `tag_ids`.
        choices: K; the sequences of a multiple-choice example are neighbours, K for each. 1 for all other tasks.
        cut: how many examples were longer than the limit and lost pieces.
        warnings: what was logged when they were made, to be said again when they come from a file.
    """

    input_ids: np.ndarray
    sizes: np.ndarray
    first_sizes: np.ndarray
    example_indices: np.ndarray
    per_sequence: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    per_piece: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    choices: int = 1
    cut: int = 0
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        """How many rows a batch can be cut from: N, or N / K where K sequences make one row."""
        return len(self.sizes) // self.choices

    @property
    def starts(self) -> np.ndarray:
        """int64 [N]: where each sequence begins in the arrays of all pieces."""
        return np.cumsum(self.sizes, dtype=np.int64) - self.sizes

    def of_rows(self, chosen: np.ndarray) -> FeatureSet:
        """Those rows alone, int [R], in their order; `cut` and `warnings` are left as of all."""
        sequences = (chosen[:, None] * self.choices + np.arange(self.choices)).ravel()
        sizes = self.sizes[sequences]
        begins = np.cumsum(sizes, dtype=np.int64) - sizes
        places = np.arange(sizes.sum()) + np.repeat(self.starts[sequences] - begins, sizes)
        return dataclasses.replace(
            self,
            input_ids=self.input_ids[places],
            sizes=sizes,
            first_sizes=self.first_sizes[sequences],
            example_indices=self.example_indices[sequences],
            per_sequence={name: values[sequences] for name, values in self.per_sequence.items()},
            per_piece={name: values[places] for name, values in self.per_piece.items()},
        )
