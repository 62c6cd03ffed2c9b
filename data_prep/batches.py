"""Instances as matrices: the rows [CLS] A [SEP] B [SEP] before masking.

N is the number of records at hand, S the sequence length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from data_prep.segments import EncodedDocument, Instance


class SpecialIds(NamedTuple):
    """The ids a record needs besides the text's."""

    pad: int
    cls: int
    sep: int
    mask: int


class Batch(NamedTuple):
    """Records before masking.

    Attributes:
        input_ids: int32 [N, S].
        first_lengths: int32 [N], pieces of A.
        second_lengths: int32 [N], pieces of B; 0 where there is no B.
        labels: int32 [N], the sentence label.
    """

    input_ids: np.ndarray
    first_lengths: np.ndarray
    second_lengths: np.ndarray
    labels: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """int32 [N], pieces with the special ones."""
        return self.first_lengths + self.second_lengths + np.where(self.second_lengths > 0, 3, 2).astype(np.int32)


def assemble(
    documents: Sequence[EncodedDocument], instances: Sequence[Instance], max_seq_length: int, special: SpecialIds
) -> Batch:
    """Copies the pieces of each instance into its row."""
    ids = np.full((len(instances), max_seq_length), special.pad, np.int32)
    ids[:, 0] = special.cls
    first_lengths = np.zeros(len(instances), np.int32)
    second_lengths = np.zeros(len(instances), np.int32)
    labels = np.array([instance.label for instance in instances], np.int32)
    for row, (first, second, _) in enumerate(instances):
        end = 1 + first.end - first.start
        ids[row, 1:end] = documents[first.document].pieces[first.start : first.end]
        ids[row, end] = special.sep
        first_lengths[row] = end - 1
        if second is not None:
            start, end = end + 1, end + 1 + second.end - second.start
            ids[row, start:end] = documents[second.document].pieces[second.start : second.end]
            ids[row, end] = special.sep
            second_lengths[row] = end - start
    return Batch(ids, first_lengths, second_lengths, labels)
