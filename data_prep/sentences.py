"""Paragraphs to sentences, for text that has a paragraph a line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from albert_tf.errors import InputError

# A sentence of Chinese or Japanese ends behind these, and behind the quotes or brackets that close after them.
_CJK_END = re.compile(r"[。！？!?｡…]*[。！？｡][。！？!?｡…]*[”’」』）】》〉)\]\"']*\s*")


class SentenceSplitter:
    """Splits paragraphs: TensorFlow Text's StateBasedSentenceBreaker, and first the full stops of Chinese and Japanese.

    Raises:
        InputError: tensorflow-text is not installed.
    """

    def __init__(self) -> None:
        try:
            import tensorflow_text
        except ImportError as error:
            raise InputError(
                "--split_sentences needs tensorflow-text, which cannot be imported here "
                f"({error}): install it, or give text with one sentence a line"
            ) from error
        self._breaker: Any = tensorflow_text.StateBasedSentenceBreaker()

    def split(self, paragraphs: Sequence[str]) -> list[list[str]]:
        """The sentences of each paragraph, in order, without the blanks between them."""
        parts = [split_cjk(paragraph) for paragraph in paragraphs]
        flat = [part for of_paragraph in parts for part in of_paragraph]
        if not flat:
            return [[] for _ in paragraphs]
        broken = iter(self._breaker.break_sentences(flat).to_list())
        return [
            [text for _ in of_paragraph for sentence in next(broken) if (text := sentence.decode("utf-8").strip())]
            for of_paragraph in parts
        ]


def split_cjk(paragraph: str) -> list[str]:
    """Cuts behind the sentence punctuation of Chinese and Japanese; other text comes back whole."""
    pieces, start = [], 0
    for end in _CJK_END.finditer(paragraph):
        pieces.append(paragraph[start : end.end()])
        start = end.end()
    pieces.append(paragraph[start:])
    return [text for piece in pieces if (text := piece.strip())]
