"""Which characters of a text its pieces came from: every change of the text carries the places along.

The clean-up and the normaliser of SentencePiece replace a character, or a few neighbours, by none, one or several
others. So each character of what comes out belongs to known characters of the text that went in, and there is nothing
to be guessed by aligning two texts. A dropped accent belongs to the letter before it.

N pieces of a text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from albert_tf.text_cleanup import decompose_without_marks, replace_surrogate

UNDERLINE = "\u2581"  # SentencePiece's mark for a space

_WORDS = re.compile(r"\S+")  # a space is here what it is for str.split


class EncodedText(NamedTuple):
    """The pieces of a text and where they stand in it.

    Attributes:
        ids: int32 [N].
        starts: int32 [N], the first character of each, counted in the text as it was given; never descending. A space
            in front of a word belongs to the word's first piece.
        ends: int32 [N], the character behind the last of each; never descending. Equal to the start for a piece that
            marks the beginning of a word where no space stands.
    """

    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray


class AlignedText(NamedTuple):
    """A text made from an original one: character i came from `original[starts[i]:ends[i]]`."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    @classmethod
    def of(cls, original: str) -> AlignedText:
        """The original itself."""
        return cls(original, range(len(original)), range(1, len(original) + 1))

    def mapped(self, function: Callable[[str], str]) -> AlignedText:
        """Each character c replaced by `function(c)`."""
        replacements = {character: function(character) for character in set(self.text)}
        parts: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        for character, start, end in zip(self.text, self.starts, self.ends):
            replacement = replacements[character]
            if replacement:
                parts.append(replacement)
                starts += [start] * len(replacement)
                ends += [end] * len(replacement)
            elif ends and unicodedata.category(character)[0] == "M":
                ends[-1] = end
        return AlignedText("".join(parts), starts, ends)

    def lowered(self) -> AlignedText:
        """In lower-case. The one rule that looks at neighbours, that of the final sigma, changes no length."""
        text = self.text.lower()
        aligned = self if len(text) == len(self.text) else self.mapped(str.lower)
        return aligned._replace(text=text)

    def decomposed(self) -> AlignedText:
        """In the normal form NFD."""
        aligned = self.mapped(lambda character: unicodedata.normalize("NFD", character))
        # Canonical ordering: the marks behind each letter by their class. Only marks change places among each other.
        classes = np.array([unicodedata.combining(character) for character in aligned.text], np.int64)
        order = np.lexsort((classes, np.cumsum(classes == 0)))
        if (np.diff(order) > 0).all():
            return aligned
        text, starts, ends = ([values[at] for at in order] for values in aligned)
        return AlignedText("".join(map(str, text)), [int(at) for at in starts], [int(at) for at in ends])

    def normalised(self, text: str, places: Sequence[int]) -> AlignedText:
        """After SentencePiece's normaliser, which gave `text` and tells the place that each of its characters is from.

        `places` has one element more, where the last character ends. Characters from one place are from all that
        stands between it and the next place; but the mark in front of the first word is from nowhere.
        """
        starts: list[int] = []
        ends: list[int] = []
        end = next_place = places[-1]
        for place in reversed(places[:-1]):
            if place < next_place:
                end, next_place = next_place, place
            starts.append(self.span(place, end)[0])
            ends.append(self.span(place, end)[1])
        starts.reverse()
        ends.reverse()
        if text.startswith(UNDERLINE) and places[0] == places[1]:
            ends[0] = starts[0]
        return AlignedText(text, starts, ends)

    def span(self, first: int, last: int) -> tuple[int, int]:
        """The original characters of `text[first:last]`; no character where there is none."""
        if first < last:
            return self.starts[first], self.ends[last - 1]
        at = self.starts[first] if first < len(self.starts) else self.ends[-1] if self.ends else 0
        return at, at

    def encoded(self, ids: Sequence[int], bounds: Sequence[tuple[int, int]]) -> EncodedText:
        """The pieces `ids`, of which piece i is `text[slice(*bounds[i])]`."""
        spans = np.array([self.span(*bound) for bound in bounds], np.int32).reshape(-1, 2)
        starts = np.minimum.accumulate(spans[::-1, 0])[::-1]
        return EncodedText(np.asarray(ids, np.int32), starts, np.maximum.accumulate(spans[:, 1]))


def cleaned(text: str, do_lower_case: bool, keep_accents: bool) -> AlignedText:
    """`text_cleanup.clean`, with the places."""
    words: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for word in _WORDS.finditer(text):
        first, last = word.span()
        if words:
            starts.append(ends[-1])
            ends.append(first)
        words.append(word.group())
        starts.extend(range(first, last))
        ends.extend(range(first + 1, last + 1))
    aligned = AlignedText(" ".join(words), starts, ends)
    if not aligned.text.isascii():
        aligned = aligned.mapped(replace_surrogate if keep_accents else decompose_without_marks)
    return aligned.lowered() if do_lower_case else aligned


def part_sizes(piece: str, parts: Sequence[str]) -> list[int]:
    """How many characters of a piece each of the parts has that it was taken apart into.

    The parts spell the piece but for the marks of spaces, which belong to the part behind them.
    """
    sizes = []
    at = 0
    for part in parts[:-1]:
        end = at
        while piece[end : end + 1] == UNDERLINE:
            end += 1
        end = min(end + len(part.replace(UNDERLINE, "")), len(piece))
        sizes.append(end - at)
        at = end
    return [*sizes, len(piece) - at]
