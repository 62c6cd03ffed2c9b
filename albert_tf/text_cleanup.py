"""The clean-up of text before SentencePiece, as the released `preprocess_text`, and the character tables behind it.

Three steps, in this order: every run of whitespace (what `str.split` calls whitespace) becomes one space and the ends
are cut; accents go (NFKD, then every character with a nonzero combining class is dropped); letters become lower-case.
The released code knows no switch for the second step; with `keep_accents` it is left out, NFKD included, so that the
text keeps its composed letters and only the SentencePiece model's own normaliser changes them.

Every rule is a function of one character, except the lower-case of a capital sigma, so the graph side
(`tokenization_graph`) is built from tables of the very functions here and cannot drift.
"""

from __future__ import annotations

import functools
import sys
import unicodedata
from collections.abc import Callable, Iterable

REPLACEMENT_CHARACTER = "\ufffd"
CAPITAL_SIGMA, SMALL_SIGMA, FINAL_SIGMA = "\u03a3", "\u03c3", "\u03c2"

_MOST_SINGLE_REPLACEMENTS = 24  # beyond this many, one pass of str.translate is cheaper than repeated str.replace


def clean(text: str, do_lower_case: bool = True, keep_accents: bool = False) -> str:
    """Cleans one text; see the module's docstring."""
    return clean_batch([text], do_lower_case, keep_accents)[0]


def clean_batch(texts: Iterable[str], do_lower_case: bool = True, keep_accents: bool = False) -> list[str]:
    """Cleans texts together, which costs less than one by one; a lone surrogate becomes U+FFFD."""
    collapsed = [" ".join(text.split()) for text in texts]
    if not collapsed:
        return []
    # No text holds a line feed any more, and none of the steps below makes one or looks across one.
    joined = "\n".join(collapsed)
    joined = map_non_ascii(joined, replace_surrogate if keep_accents else decompose_without_marks)
    return (joined.lower() if do_lower_case else joined).split("\n")


def map_non_ascii(text: str, function: Callable[[str], str]) -> str:
    """Replaces each non-ASCII character c by `function(c)`."""
    if text.isascii():
        return text
    changed = {}
    for character in set(text):
        if not character.isascii() and (replacement := function(character)) != character:
            changed[character] = replacement
    if len(changed) > _MOST_SINGLE_REPLACEMENTS:
        return text.translate({ord(character): replacement for character, replacement in changed.items()})
    # One after the other is right because no replacement holds a character that is replaced: NFKD of NFKD is NFKD.
    for character, replacement in changed.items():
        text = text.replace(character, replacement)
    return text


def replace_surrogate(character: str) -> str:
    """A lone surrogate cannot be encoded as UTF-8: U+FFFD stands for it."""
    return REPLACEMENT_CHARACTER if "\ud800" <= character <= "\udfff" else character


@functools.lru_cache(maxsize=1 << 16)
def decompose_without_marks(character: str) -> str:
    """NFKD of one character without the parts of nonzero combining class.

    For a whole text this equals NFKD, then dropping: canonical ordering moves only characters that are dropped.
    """
    decomposed = unicodedata.normalize("NFKD", replace_surrogate(character))
    return "".join(part for part in decomposed if not unicodedata.combining(part))


def lower(character: str) -> str:
    """Lower-case of one character; a capital sigma is left alone, since its lower-case depends on its neighbours."""
    return character if character == CAPITAL_SIGMA else character.lower()


def cased_and_ignorable(characters: Iterable[str]) -> tuple[set[str], set[str]]:
    """Those in which Python's rule for a final sigma sees a letter with case, and those it skips."""
    # The properties behind the rule are not public in Python, but the rule itself shows them.
    others = [character for character in characters if character != "\n"]  # which is neither, and parts them here

    def that_make_it_final(before: str) -> set[str]:
        text = "\n".join(f"{before}{character}{CAPITAL_SIGMA}" for character in others).lower()
        return {character for character, made in zip(others, text.split("\n")) if made.endswith(FINAL_SIGMA)}

    cased = that_make_it_final("")
    return cased, that_make_it_final("a") - cased


@functools.lru_cache(maxsize=1)
def whitespace_characters() -> tuple[str, ...]:
    """The characters `str.split` splits at."""
    return tuple(character for character in map(chr, range(sys.maxunicode + 1)) if character.isspace())
