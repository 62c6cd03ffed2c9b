"""Texts to sequences of piece ids: `[CLS] A [SEP]` and `[CLS] A [SEP] B [SEP]`, many examples at once.

N texts or sequences, T pieces of all of them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from absl import logging

from albert_tf.errors import InputError
from albert_tf.tokenizer import Tokenizer

LONGEST = 512  # pieces of a sequence, where nobody says and the model has so many positions
SHORT_FOR_PAIRS = 16
SPECIALS_OF_ONE, SPECIALS_OF_PAIR = 2, 3


class Pieces(NamedTuple):
    """Runs of one array: run i is `ids[starts[i] : starts[i] + sizes[i]]`.

    Attributes:
        ids: int32, any length.
        starts: int64 [N].
        sizes: int64 [N].
    """

    ids: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray

    def places(self) -> np.ndarray:
        """int64 [T]: the places in `ids` of all runs, one run behind the other."""
        ends = np.cumsum(self.sizes)
        return np.arange(ends[-1] if len(ends) else 0) + np.repeat(self.starts - (ends - self.sizes), self.sizes)

    def take(self, indices: np.ndarray) -> Pieces:
        """Some of the runs, in the order of `indices`."""
        return Pieces(self.ids, self.starts[indices], self.sizes[indices])

    def first(self, sizes: np.ndarray) -> Pieces:
        """The first `sizes` [N] pieces of each run."""
        return self._replace(sizes=np.minimum(self.sizes, sizes))

    def last(self, sizes: np.ndarray) -> Pieces:
        """The last `sizes` [N] pieces of each run."""
        kept = np.minimum(self.sizes, sizes)
        return self._replace(starts=self.starts + self.sizes - kept, sizes=kept)


def encode(texts: Sequence[str], tokenizer: Tokenizer) -> Pieces:
    """The pieces of each text; a text that comes several times is encoded once."""
    numbers: dict[str, int] = {}
    indices = np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)
    ids, sizes = tokenizer.encode_batch(list(numbers))
    sizes = sizes.astype(np.int64)
    return Pieces(ids, np.cumsum(sizes) - sizes, sizes).take(indices)


def join(parts: Sequence[Pieces]) -> tuple[np.ndarray, np.ndarray]:
    """Runs side by side: run i of every part, one behind the other.

    Returns:
        The ids int32 [T] and the sizes int32 [N].
    """
    part_sizes = np.stack([part.sizes for part in parts], axis=1)  # [N, parts]
    starts = (np.cumsum(part_sizes) - part_sizes.ravel()).reshape(part_sizes.shape)
    joined = np.empty(int(part_sizes.sum()), np.int32)
    for column, part in enumerate(parts):
        joined[Pieces(joined, starts[:, column], part.sizes).places()] = part.ids[part.places()]
    return joined, part_sizes.sum(axis=1).astype(np.int32)


class Sequences(NamedTuple):
    """Sequences without padding, as a `FeatureSet` has them: `input_ids` [T], `sizes` [N], `first_sizes` [N] int32."""

    input_ids: np.ndarray
    sizes: np.ndarray
    first_sizes: np.ndarray


def assemble(first: Pieces, second: Pieces, has_second: np.ndarray, tokenizer: Tokenizer) -> Sequences:
    """`[CLS] A [SEP]`, and `B [SEP]` behind it where `has_second` [N]; the pieces are cut before."""
    count = len(has_second)
    specials = np.array([tokenizer.cls_id, tokenizer.sep_id], np.int32)
    ones = np.ones(count, np.int64)
    cls = Pieces(specials, 0 * ones, ones)
    sep = Pieces(specials, ones, ones)
    ids, sizes = join([cls, first, sep, second.first(has_second * second.sizes), sep.first(has_second * ones)])
    return Sequences(ids, sizes, (first.sizes + 2).astype(np.int32))


def pair_sequences(
    texts_a: Sequence[str], texts_b: Sequence[str | None], tokenizer: Tokenizer, max_seq_length: int
) -> tuple[Sequences, int]:
    """Texts and pairs of texts to sequences, cut as the released run_classifier.py does.

    Args:
        texts_a: N texts.
        texts_b: N second texts, None where there is none.
        tokenizer: makes the pieces.
        max_seq_length: the most pieces of a sequence, special ones counted.

    Returns:
        The sequences, and how many of them lost pieces.
    """
    has_second = np.array([text is not None for text in texts_b], bool)
    texts = encode([*texts_a, *(text or "" for text in texts_b)], tokenizer)
    first, second = texts.take(np.arange(len(texts_a))), texts.take(np.arange(len(texts_a), 2 * len(texts_a)))
    room = max_seq_length - np.where(has_second, SPECIALS_OF_PAIR, SPECIALS_OF_ONE)
    sizes_a, sizes_b = sizes_of_pair(first.sizes, second.sizes, room)
    cut = int(np.count_nonzero((sizes_a < first.sizes) | (sizes_b < second.sizes)))
    return assemble(first.first(sizes_a), second.first(sizes_b), has_second, tokenizer), cut


def sizes_of_pair(first: np.ndarray, second: np.ndarray, room: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
    """How many pieces of A and of B stay where both together have `room`.

    As released, pieces leave one by one from the end of the longer text, and of B where both are equally long. What
    that comes to: a text that takes no more than half the room keeps all of its pieces.

    Args:
        first, second: pieces there are, int64 [N] each; 0 for a second text that is not there.
        room: the most that may stay, [N] or one number.

    Returns:
        Two arrays int64 [N].
    """
    kept = np.minimum(first, np.maximum(room - second, (room + 1) // 2))
    return kept, np.minimum(second, room - kept)


def check_length(max_seq_length: int, least: int) -> int:
    """`max_seq_length`, if it is a whole number that leaves room for text.

    Raises:
        InputError: it is not, or is below `least`.
    """
    if isinstance(max_seq_length, bool) or not isinstance(max_seq_length, int) or max_seq_length < least:
        raise InputError(f"max_seq_length is {max_seq_length!r}, but must be a whole number of at least {least}")
    return max_seq_length


def check_positions(max_seq_length: int, positions: int) -> None:
    """Refuses a length that the model has no positions for.

    Raises:
        InputError: there are fewer.
    """
    if max_seq_length > positions:
        raise InputError(
            f"max_seq_length is {max_seq_length}, but the model has {positions} positions: give at most that many"
        )


def warn_of_short_pairs(max_seq_length: int) -> tuple[str, ...]:
    """Warns of a length that hardly holds a pair: the value of a smoke test that was never set right.

    Returns:
        What it said, as the `warnings` of a `FeatureSet`; nothing where there is nothing to say.
    """
    if max_seq_length >= SHORT_FOR_PAIRS:
        return ()
    return warn(
        f"max_seq_length is {max_seq_length}, which leaves each text of a pair about "
        f"{max(0, max_seq_length - SPECIALS_OF_PAIR) // 2} pieces: a model hardly learns from that; 128 is usual"
    )


def warn_of_cut(cut: int, examples: int, max_seq_length: int) -> tuple[str, ...]:
    """Says how many examples were longer than the limit, if any were; returns what it said."""
    if not cut:
        return ()
    share = 100 * cut / examples
    return warn(
        f"{cut} of {examples} examples ({share:.1f} %) are longer than max_seq_length {max_seq_length} and were cut"
    )


def warn(*messages: str) -> tuple[str, ...]:
    """Logs each message as a warning, and returns them."""
    for message in messages:
        logging.warning("%s", message)
    return messages
