"""Entity F1 of sequence labelling, in the manner of seqeval: an entity counts if its type and both ends are right.

A sentence is a list of tags, one for each word: "O", or a prefix, "-" and a type ("B-PER").
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

Tags = Sequence[Sequence[str]]

OUTSIDE = "O"
_PREFIXES = {"B": "B", "I": "I", "M": "I", "E": "E", "L": "E", "S": "S", "U": "S"}


class Entity(NamedTuple):
    """Words `first` to `last`, both counted, of sentence `sentence`."""

    sentence: int
    type: str
    first: int
    last: int


class Counts(NamedTuple):
    """Entities that are in the labels, in the predictions, and in both."""

    labels: int
    predictions: int
    right: int

    @property
    def precision(self) -> float:
        """0 where nothing was predicted."""
        return self.right / self.predictions if self.predictions else 0.0

    @property
    def recall(self) -> float:
        """0 where there is no entity."""
        return self.right / self.labels if self.labels else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both, 0 where both are 0."""
        total = self.labels + self.predictions
        return 2 * self.right / total if total else 0.0


def entities(sentences: Tags) -> set[Entity]:
    """The entities of tags in any scheme: IOB1, IOB2, IOE, BIOES, BILOU, BMES, or types alone.

    As conlleval and seqeval do by default: B and S begin an entity, so does anything behind E, S, O or another type;
    an entity ends before what begins one and before O.
    """
    found = set()
    for number, tags in enumerate(sentences):
        first, before, type_before = 0, OUTSIDE, ""
        for place, (prefix, type_) in enumerate([*map(split, tags), (OUTSIDE, "")]):
            begins = prefix in ("B", "S") or before in ("E", "S", OUTSIDE) or type_ != type_before
            if before != OUTSIDE and (begins or prefix == OUTSIDE):
                found.add(Entity(number, type_before, first, place - 1))
            if begins:
                first = place
            before, type_before = prefix, type_
    return found


def strict_entities(sentences: Tags, scheme: str) -> set[Entity]:
    """The entities of tags in one scheme; tags that break its rules are none.

    Args:
        sentences: the tags.
        scheme: "IOB1" (I+, and B I* right behind an entity of the same type), "IOB2" (B I*) or "BIOES" (B I* E, or
            S alone).
    """
    found = set()
    for number, tags in enumerate(sentences):
        parts = [(OUTSIDE, ""), *map(split, tags)]
        place = 1
        while place < len(parts):
            end = _end_of_strict(parts, place, scheme)
            if end > place:
                found.add(Entity(number, parts[place][1], place - 1, end - 2))
            place = max(end, place + 1)
    return found


def scheme_of(sentences: Tags) -> str:
    """The scheme that tags without errors are in, of those `strict_entities` knows."""
    prefixes = {split(tag)[0] for tags in sentences for tag in tags}
    if prefixes & {"E", "S"}:
        return "BIOES"
    begun = {(entity.sentence, entity.first) for entity in entities(sentences)}
    has_b = all(split(sentences[sentence][first])[0] == "B" for sentence, first in begun)
    return "IOB2" if has_b else "IOB1"


def split(tag: str) -> tuple[str, str]:
    """Prefix (B, I, E, S or O) and type of a tag; L is E, U is S, M is I, and a type alone has I."""
    if tag == OUTSIDE:
        return OUTSIDE, ""
    if tag in _PREFIXES:
        return _PREFIXES[tag], "_"
    prefix, dash, type_ = tag.partition("-")
    return (_PREFIXES[prefix], type_) if dash and prefix in _PREFIXES else ("I", tag)


def counts(labels: Tags, predictions: Tags, *, strict: bool = False) -> dict[str, Counts]:
    """Entities counted by type, in the order of the alphabet.

    Args:
        labels, predictions: tags of the same words.
        strict: take both by the rules of the scheme that the labels are in.
    """
    if [len(tags) for tags in labels] != [len(tags) for tags in predictions]:
        raise ValueError("labels and predictions are not of the same words")
    if strict:
        scheme = scheme_of(labels)
        true, predicted = strict_entities(labels, scheme), strict_entities(predictions, scheme)
    else:
        true, predicted = entities(labels), entities(predictions)
    by_type = [collections.Counter(entity.type for entity in some) for some in (true, predicted, true & predicted)]
    return {type_: Counts(*(counter[type_] for counter in by_type)) for type_ in sorted({*by_type[0], *by_type[1]})}


def total(by_type: Mapping[str, Counts]) -> Counts:
    """All types together, which makes the scores micro averages."""
    return Counts(*map(sum, zip(*by_type.values()))) if by_type else Counts(0, 0, 0)


def _end_of_strict(parts: Sequence[tuple[str, str]], place: int, scheme: str) -> int:
    """Where the entity ends that begins at `place`, or `place` if none does."""
    (prefix, type_), type_before = parts[place], parts[place - 1][1]
    end = place + 1
    while end < len(parts) and parts[end] == ("I", type_):
        end += 1
    if scheme == "BIOES":
        if prefix == "S":
            return place + 1
        closed = end < len(parts) and parts[end] == ("E", type_)
        return end + 1 if prefix == "B" and closed else place
    if prefix == "B":
        return end if scheme == "IOB2" or type_ == type_before else place
    return end if prefix == "I" and scheme == "IOB1" else place


def _score(name: str, strict: bool = False) -> Callable[[Tags, Tags], float]:
    def score(labels: Tags, predictions: Tags) -> float:
        return float(getattr(total(counts(labels, predictions, strict=strict)), name))

    return score


ENTITY_METRICS: Mapping[str, Callable[[Tags, Tags], float]] = {
    "entity_f1": _score("f1"),
    "entity_precision": _score("precision"),
    "entity_recall": _score("recall"),
    "strict_entity_f1": _score("f1", strict=True),
}
