"""Which pieces go into which record: packing the sentences of a document into [CLS] A [SEP] B [SEP].

A record takes sentences until its target length is reached; what goes beyond the longest length is cut, and the next
record begins where text is missing, so that none is lost. For SOP either segment may be the one whose end is cut (as in
the released code, which cuts the longer one): were it always the later one, that would tell the order.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from albert_tf.errors import InputError

Span = tuple[int, int]

# A cut costs a repetition in the next record, so this share of a record is rather left empty.
_ROOM_LEFT = 1 / 8
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
    """Two segments of the document that follow each other, swapped half the time (label 1) (paper, section 3.1).

    A document whose text cannot be split in two gives nothing.
    """
    document = documents[index]
    target = _draw_target(packing, rng)
    instances = []
    start, size = 0, len(document.pieces)
    while start < size:
        where, coin, which = rng.random(3).tolist()
        pair, start = _consecutive_pair(document, index, start, target, packing.max_pieces, where, which)
        if pair is not None:
            first, second = pair
            instances.append(Instance(second, first, 1) if coin < 0.5 else Instance(first, second, 0))
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


def _consecutive_pair(
    document: EncodedDocument, index: int, start: int, target: int, max_pieces: int, where: float, which: float
) -> tuple[tuple[Segment, Segment] | None, int]:
    """Two segments that follow each other, each beginning with a sentence, and where the next record begins.

    A last sentence is taken together with the one before it. A sentence that fills the record alone is split between
    its words, and so is a document of one sentence; there are no segments if it cannot be split.
    """
    ends = document.sentence_ends
    first, last = bisect_right(ends, start), min(bisect_left(ends, start + target), len(ends) - 1)
    begin = start
    if first == last == len(ends) - 1 and first > 0 and ends[first - 1] == start:
        first -= 1
        begin = ends[first - 1] if first else 0
    elif first == last < len(ends) - 1 and ends[last] - start <= max_pieces // 2:
        last += 1
    if first < last and ends[last] - begin <= max_pieces:
        split, end = ends[first + int(where * (last - first))], ends[last]
        return (Segment(index, begin, split), Segment(index, split, end)), end
    spans = _filled_pair(document, start, max_pieces, where, which) if begin == start and first < last else None
    if spans is not None:
        missing = spans[0][1] if spans[0][1] < spans[1][0] else spans[1][1]
        return (Segment(index, *spans[0]), Segment(index, *spans[1])), _begin_before(
            document, missing, start, max_pieces
        )
    begin, split_or_none, end, following = _pair(document, start, target, max_pieces, where)
    if split_or_none is None:
        return None, following
    return (Segment(index, begin, split_or_none), Segment(index, split_or_none, end)), following


def _filled_pair(
    document: EncodedDocument, start: int, max_pieces: int, where: float, which: float
) -> tuple[Span, Span] | None:
    """Two segments of `max_pieces` together: a longer one whose end is cut to fill the record, and whole sentences.

    Either may come first in the text, equally often and with the same sizes, so that these do not tell the order.
    Nothing is cut where whole sentences nearly fill the record, or where only one order has room. None if there is no
    room for a whole sentence beside another segment.
    """
    ends = document.sentence_ends
    first, last = bisect_right(ends, start), bisect_right(ends, start + max_pieces) - 1
    split = ends[first + int(where * (last - first))]
    if first < last and start + max_pieces - ends[last] <= _ROOM_LEFT * max_pieces:
        return (start, split), (split, ends[last])
    wanted = where * max_pieces / 2
    whole = _whole_sentences(ends, start, wanted, max_pieces - 1)
    cut_last = None if whole is None else (whole, (whole[1], min(start + max_pieces, ends[-1])))
    cut_first = None
    for sentence in range(bisect_right(ends, start + max_pieces - wanted), len(ends) - 1):
        whole = _whole_sentences(ends, ends[sentence], wanted, start + max_pieces - ends[first])
        if whole is None:
            break
        cut = start + max_pieces - (whole[1] - whole[0])
        if cut < whole[0]:
            cut_first = (start, cut), whole
            break
    if cut_last and cut_first:
        return cut_first if which < 0.5 else cut_last
    return ((start, split), (split, ends[last])) if first < last else cut_last


def _whole_sentences(ends: Sequence[int], begin: int, wanted: float, most: int) -> Span | None:
    """From `begin` the sentences, one at least, whose size is nearest to `wanted` and at most `most`; None if none."""
    above = min(bisect_left(ends, begin + wanted), len(ends) - 1)
    sizes = [ends[place] - begin for place in (above - 1, above) if place >= 0]
    fitting = [size for size in sizes if 0 < size <= most]
    return (begin, begin + min(fitting, key=lambda size: abs(size - wanted))) if fitting else None


def _begin_before(document: EncodedDocument, missing: int, start: int, max_pieces: int) -> int:
    """Where a record begins so that the piece `missing` is in it: at its sentence, or at its word if that is long."""
    ends = document.sentence_ends
    sentence = bisect_right(ends, missing)
    sentence_start = ends[sentence - 1] if sentence else 0
    if sentence_start > start and ends[sentence] - sentence_start < max_pieces:
        return sentence_start
    return _word_start(document, missing, start)


def _word_start(document: EncodedDocument, place: int, start: int) -> int:
    """Where the word at `place` begins, if that is behind `start` and not too far back; else `place`."""
    for begin in range(place, max(start, place - _LONGEST_REPEAT), -1):
        if document.starts_word[begin]:
            return begin
    return place


def _chunk(document: EncodedDocument, start: int, target: int, max_pieces: int) -> tuple[int, int]:
    """The end of the record that begins at `start`, and where the next one begins."""
    ends = document.sentence_ends
    reached = bisect_left(ends, start + target)
    end = ends[reached] if reached < len(ends) else ends[-1]
    if end - start <= max_pieces:
        return end, end
    end = start + max_pieces
    return end, _word_start(document, end, start)


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
