"""Which pieces go into which record: packing the sentences of a document into [CLS] A [SEP] B [SEP].

The released code truncates what does not fit. Here a record takes sentences until its target length is reached; what
goes beyond the longest length opens the next record, so that no text is lost.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from albert_tf.errors import InputError

# A word cut by the end of a record is repeated whole at the start of the next one, unless it is longer than this.
_LONGEST_REPEAT = 16
# A sentence that is a single word is split for A and B only from this many pieces on.
_SHORTEST_SPLIT_WORD = 8


@dataclasses.dataclass(frozen=True)
class EncodedDocument:
    """A document as pieces.

    Attributes:
        key: (file index, offset), what its random draws depend on.
        pieces: int32 [n].
        sentence_ends: ascending, the last one is n; no sentence is empty.
        starts_word: bool [n].
    """

    key: tuple[int, int]
    pieces: np.ndarray
    sentence_ends: list[int]
    starts_word: np.ndarray


class Segment(NamedTuple):
    """Pieces `start` to `end` of a document (its place in the list of documents at hand)."""

    document: int
    start: int
    end: int


class Instance(NamedTuple):
    """A record before masking; `second` is None under the objective "none". Label 1: swapped (sop) or random (nsp)."""

    first: Segment
    second: Segment | None
    label: int


class Packing(NamedTuple):
    """What is fixed for a run: longest number of pieces without special ones, and the share of shorter targets."""

    max_pieces: int
    short_seq_prob: float


def special_count(sentence_objective: str) -> int:
    """How many of [CLS] and [SEP] a record has."""
    return 2 if sentence_objective == "none" else 3


def pack_sop(
    documents: Sequence[EncodedDocument], index: int, packing: Packing, rng: np.random.Generator
) -> list[Instance]:
    """Two consecutive segments of the document, swapped half the time (label 1) (paper, section 3.1).

    A document whose text cannot be split in two gives nothing.
    """
    document = documents[index]
    target = _draw_target(packing, rng)
    instances = []
    start, size = 0, len(document.pieces)
    while start < size:
        where, coin = rng.random(2).tolist()
        start, split, end, following = _pair(document, start, target, packing.max_pieces, where)
        if split is not None:
            first, second = Segment(index, start, split), Segment(index, split, end)
            instances.append(Instance(second, first, 1) if coin < 0.5 else Instance(first, second, 0))
        start = following
    return instances


def pack_nsp(
    documents: Sequence[EncodedDocument], index: int, packing: Packing, rng: np.random.Generator
) -> list[Instance]:
    """A segment and what follows it (label 0), or half the time a segment of another document (label 1), as BERT.

    After a random B the text goes on where A ended. Among a single document every label is 0.
    """
    document = documents[index]
    target = _draw_target(packing, rng)
    instances = []
    start, size = 0, len(document.pieces)
    while start < size:
        where, coin, which, place = rng.random(4).tolist()
        start, split, end, following = _pair(document, start, target, packing.max_pieces, where)
        if coin < 0.5 and len(documents) > 1:
            # A short sentence that stands alone is A as it is; the random B leaves none of it over.
            if split is None or (_is_one_sentence(document, start, end) and 2 * (end - start) <= packing.max_pieces):
                split = min(end, start + packing.max_pieces - 1)
            other = _random_segment(documents, index, which, place, target - (split - start), packing, start, split)
            instances.append(Instance(Segment(index, start, split), other, 1))
            following = following if split >= end else split
        elif split is not None:
            instances.append(Instance(Segment(index, start, split), Segment(index, split, end), 0))
        start = following
    return instances


def pack_none(
    documents: Sequence[EncodedDocument], index: int, packing: Packing, rng: np.random.Generator
) -> list[Instance]:
    """One segment, [CLS] A [SEP], label 0: masked pieces are the only thing to learn."""
    document = documents[index]
    target = _draw_target(packing, rng)
    instances = []
    start, size = 0, len(document.pieces)
    while start < size:
        end, following = _chunk(document, start, target, packing.max_pieces)
        instances.append(Instance(Segment(index, start, end), None, 0))
        start = following
    return instances


PackFunction = Callable[[Sequence[EncodedDocument], int, Packing, np.random.Generator], "list[Instance]"]
SENTENCE_OBJECTIVES: dict[str, PackFunction] = {"sop": pack_sop, "nsp": pack_nsp, "none": pack_none}


def pack_function(sentence_objective: str) -> PackFunction:
    """The function of an objective.

    Raises:
        InputError: no such objective.
    """
    if sentence_objective not in SENTENCE_OBJECTIVES:
        raise InputError(f"--sentence_objective={sentence_objective}: choose one of {', '.join(SENTENCE_OBJECTIVES)}")
    return SENTENCE_OBJECTIVES[sentence_objective]


def _draw_target(packing: Packing, rng: np.random.Generator) -> int:
    """The length to reach, drawn once per document and pass as the released code does."""
    short, length = rng.random(2).tolist()
    if short >= packing.short_seq_prob:
        return packing.max_pieces
    return 2 + int(length * (packing.max_pieces - 1))


def _chunk(document: EncodedDocument, start: int, target: int, max_pieces: int) -> tuple[int, int]:
    """The end of the record that begins at `start`, and where the next one begins."""
    ends = document.sentence_ends
    reached = bisect_left(ends, start + target)
    end = ends[reached] if reached < len(ends) else ends[-1]
    if end - start <= max_pieces:
        return end, end
    end = start + max_pieces
    for following in range(end, max(start, end - _LONGEST_REPEAT), -1):
        if document.starts_word[following]:
            return end, following
    return end, end


def _pair(
    document: EncodedDocument, start: int, target: int, max_pieces: int, where: float
) -> tuple[int, int | None, int, int]:
    """Start of A, its end, the end of B, and where the next record begins.

    A word that stands alone is taken together with the sentence behind or before it. In a document that has no more
    than that word the end of A is None.
    """
    end, following = _chunk(document, start, target, max_pieces)
    split = _split(document, start, end, where, max_pieces)
    if split is None and following < len(document.pieces):
        end, following = _chunk(document, start, end - start + 1, max_pieces)
        split = _split(document, start, end, where, max_pieces)
    elif split is None and start > 0:
        start = _start_before(document, start, end, max_pieces)
        split = _split(document, start, end, where, max_pieces)
    return start, split, end, following


def _is_one_sentence(document: EncodedDocument, start: int, end: int) -> bool:
    ends = document.sentence_ends
    return bisect_right(ends, start) == bisect_left(ends, end)


def _split(document: EncodedDocument, start: int, end: int, where: float, max_pieces: int) -> int | None:
    """Where A ends: between two sentences, else between two words, else inside a long word; None if it is too short."""
    ends = document.sentence_ends
    first, last = bisect_right(ends, start), bisect_left(ends, end)
    if first < last:
        return ends[first + int(where * (last - first))]
    words = np.flatnonzero(document.starts_word[start + 1 : end])
    if len(words):
        return start + 1 + int(words[int(where * len(words))])
    if end - start >= min(_SHORTEST_SPLIT_WORD, max_pieces):
        return start + 1 + int(where * (end - start - 1))
    return None


def _start_before(document: EncodedDocument, start: int, end: int, max_pieces: int) -> int:
    """Where the sentence before `start` begins, or the first of its words that fits."""
    ends = document.sentence_ends
    sentence = bisect_left(ends, start)
    earliest = max(ends[sentence - 1] if sentence else 0, end - max_pieces)
    words = np.flatnonzero(document.starts_word[earliest:start])
    return earliest + int(words[0]) if len(words) else earliest


def _random_segment(
    documents: Sequence[EncodedDocument],
    index: int,
    which: float,
    place: float,
    wanted: int,
    packing: Packing,
    start: int,
    split: int,
) -> Segment:
    """A segment of another document: whole sentences until `wanted` pieces, no more than the record has room for."""
    other = int(which * (len(documents) - 1))
    other += other >= index
    ends = documents[other].sentence_ends
    sentence = int(place * len(ends))
    begin = ends[sentence - 1] if sentence else 0
    reached = bisect_left(ends, begin + max(1, wanted))
    end = ends[reached] if reached < len(ends) else ends[-1]
    return Segment(other, begin, min(end, begin + packing.max_pieces - (split - start)))
