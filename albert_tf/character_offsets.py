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
    """A text made from an original one: character i came from `original[starts[i]:ends[i]]`; int64 arrays."""

    text: str
    starts: np.ndarray
    ends: np.ndarray

    @classmethod
    def of(cls, original: str) -> AlignedText:
        """The original itself."""
        places = np.arange(len(original) + 1)
        return cls(original, places[:-1], places[1:])

    def mapped(self, function: Callable[[str], str]) -> AlignedText:
        """Each character c replaced by `function(c)`."""
        replacements = {character: function(character) for character in set(self.text)}
        if all(character == replacement for character, replacement in replacements.items()):
            return self
        text = self.text.translate({ord(character): replacement for character, replacement in replacements.items()})
        size_of = {character: len(replacement) for character, replacement in replacements.items()}
        sizes = np.fromiter(map(size_of.__getitem__, self.text), np.int64, len(self.text))
        ends = np.repeat(self.ends, sizes)
        next_places = np.cumsum(sizes)
        for at in np.flatnonzero(sizes == 0):
            if next_places[at] and unicodedata.category(self.text[at])[0] == "M":
                before = next_places[at] - 1
                ends[before] = max(ends[before], self.ends[at])  # canonical order may have changed that of marks
        return AlignedText(text, np.repeat(self.starts, sizes), ends)

    def lowered(self) -> AlignedText:
        """In lower-case. The one rule that looks at neighbours, that of the final sigma, changes no length."""
        text = self.text.lower()
        aligned = self if len(text) == len(self.text) else self.mapped(str.lower)
        return aligned._replace(text=text)

    def decomposed(self) -> AlignedText:
        """In the normal form NFD."""
        aligned = self.mapped(lambda character: unicodedata.normalize("NFD", character))
        # Canonical ordering: the marks behind each letter by their class. Only marks change places among each other.
        classes = np.fromiter(map(unicodedata.combining, aligned.text), np.int64, len(aligned.text))
        if not classes.any():
            return aligned
        order = np.lexsort((classes, np.cumsum(classes == 0)))
        return AlignedText("".join(aligned.text[at] for at in order), aligned.starts[order], aligned.ends[order])

    def normalised(self, text: str, places: Sequence[int]) -> AlignedText:
        """After SentencePiece's normaliser, which gave `text` and tells the place that each of its characters is from.

        `places` has one element more, where the last character ends. Characters from one place are from all that
        stands between it and the next place; but the mark in front of the first word is from nowhere.
        """
        bounds = np.asarray(places, np.int64)
        firsts = bounds[:-1]
        lasts = bounds[np.minimum(np.searchsorted(bounds, firsts, side="right"), len(text))]
        if text.startswith(UNDERLINE) and bounds[0] == bounds[1]:
            lasts[0] = firsts[0]
        return AlignedText(text, *self.spans(firsts, lasts))

    def spans(self, firsts: np.ndarray, lasts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The original characters of each `text[first:last]`, first ones and those behind; equal where it is empty."""
        starts = np.append(self.starts, self.ends[-1:] if len(self.ends) else 0)[firsts]
        return starts, np.where(firsts < lasts, np.append(self.ends, 0)[lasts - 1], starts)

    def encoded(self, ids: Sequence[int], bounds: Sequence[int]) -> EncodedText:
        """The pieces `ids`; `bounds` are two numbers for each: piece i is `text[bounds[2 * i] : bounds[2 * i + 1]]`."""
        starts, ends = self.spans(np.asarray(bounds[::2], np.int64), np.asarray(bounds[1::2], np.int64))
        starts = np.minimum.accumulate(starts[::-1])[::-1]
        return EncodedText(*(np.asarray(v, np.int32) for v in (ids, starts, np.maximum.accumulate(ends))))


def cleaned(text: str, do_lower_case: bool, keep_accents: bool) -> AlignedText:
    """`text_cleanup.clean`, with the places."""
    words = [match.span() for match in _WORDS.finditer(text)]
    kept = np.ones(len(text), bool)  # of each run of spaces the first one, which is from the whole run
    ends = np.arange(1, len(text) + 1)
    for before, after in zip([(0, 0), *words], [*words, (len(text), len(text))]):
        kept[before[1] : after[0]] = False
        if before[1] and after[0] < len(text):
            kept[before[1]] = True
            ends[before[1]] = after[0]
    aligned = AlignedText(" ".join(text[first:last] for first, last in words), np.flatnonzero(kept), ends[kept])
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
