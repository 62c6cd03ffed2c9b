"""Texts as a dict of arrays that a model reads: what calling a tokenizer gives.

N texts, S the length they are padded to.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from albert_tf import sequences
from albert_tf.errors import InputError
from albert_tf.tokenizer import Tokenizer

LONGEST = "longest"
_LEAST_LENGTH = 5  # [CLS] a [SEP] b [SEP]


def text_inputs(
    tokenizer: Tokenizer,
    texts: str | Sequence[str],
    pairs: str | Sequence[str] | None = None,
    *,
    max_length: int = 512,
    padding: str | int = LONGEST,
) -> dict[str, np.ndarray]:
    """`[CLS] text [SEP]`, or `[CLS] text [SEP] pair [SEP]`, cut and padded.

    Args:
        tokenizer: makes the pieces.
        texts: N texts; one text is a list of one.
        pairs: as many second texts.
        max_length: the most pieces of a sequence, special ones counted. Longer ones lose pieces from the end, a pair
            from the end of whichever text is longer at that moment, as released.
        padding: the length of the rows, or "longest" for that of the longest among them.

    Returns:
        `input_ids`, `input_mask` (1 on pieces, 0 on padding) and `segment_ids` (1 on the second text), int32 [N,S].

    Raises:
        InputError: a text is no string, there is not a second text to each, or the lengths do not fit.
    """
    first = _checked(texts, "texts")
    second: Sequence[str | None] = [None] * len(first) if pairs is None else _checked(pairs, "pairs")
    if len(first) != len(second):
        raise InputError(f"there are {len(first)} texts and {len(second)} pairs: give as many of each")
    if not isinstance(max_length, int) or max_length < _LEAST_LENGTH:
        raise InputError(f"max_length is {max_length!r}, but must be a whole number of at least {_LEAST_LENGTH}")
    made, _ = sequences.pair_sequences(first, second, tokenizer, max_length)
    longest = int(made.sizes.max(initial=0))
    length = longest if padding == LONGEST else padding
    if not isinstance(length, int) or length < longest:
        raise InputError(
            f"padding is {padding!r}, but must be {LONGEST!r} or a whole number of at least the longest sequence's "
            f"{longest} pieces"
        )
    positions = np.arange(length)
    mask = positions < made.sizes[:, None]
    input_ids = np.full(mask.shape, tokenizer.pad_id, np.int32)
    input_ids[mask] = made.input_ids
    segment_ids = mask & (positions >= made.first_sizes[:, None])
    return {
        "input_ids": input_ids,
        "input_mask": mask.astype(np.int32),
        "segment_ids": segment_ids.astype(np.int32),
    }


def _checked(texts: str | Sequence[str], name: str) -> Sequence[str]:
    rows = [texts] if isinstance(texts, str) else list(texts)
    for number, text in enumerate(rows):
        if not isinstance(text, str):
            raise InputError(f"{name}[{number}] is {text!r:.40}, but must be a text")
    return rows
