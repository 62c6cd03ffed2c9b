"""Sentences that people wrote, to hold an export against its model: a file's, or those of Python's documentation."""

from __future__ import annotations

import importlib.util
import re

from albert_tf import storage
from albert_tf.errors import InputError

COUNT = 200
_LEAST_WORDS = 4
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"(])")


def real_texts(path: str | None, count: int = COUNT) -> list[str]:
    """Texts that lie evenly over a file's lines that are not empty, or over the topics of pydoc.

    Args:
        path: of a file with a text on each line; None for the documentation.
        count: how many at most.

    Raises:
        InputError: the file cannot be read or has no text, or this Python has no documentation.
    """
    if path is None:
        texts = _documentation()
    else:
        texts = [line.strip() for line in storage.read_bytes(path).decode("utf-8", "replace").splitlines()]
        texts = [text for text in texts if text]
        if not texts:
            raise InputError(f"--check_texts={path} has no text: give a file with one on each line")
    chosen = min(count, len(texts))
    return [texts[number * len(texts) // chosen] for number in range(chosen)]


def _documentation() -> list[str]:
    if importlib.util.find_spec("pydoc_data") is None or importlib.util.find_spec("pydoc_data.topics") is None:
        raise InputError("this Python has no documentation to check the export with: give --check_texts=FILE")
    from pydoc_data import topics

    texts = []
    for name in sorted(topics.topics):
        for paragraph in re.split(r"\n\s*\n", topics.topics[name]):
            if "::=" not in paragraph:  # grammar
                texts += _SENTENCE_END.split(" ".join(paragraph.split()))
    return list(dict.fromkeys(text for text in texts if len(text.split()) >= _LEAST_WORDS and text[0].isalpha()))
