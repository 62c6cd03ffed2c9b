"""Texts inside a graph whose code points know which characters of the original they came from.

As in `character_offsets`, every change of a text carries along the characters of the original. N texts, T code points
of all of them together, P pieces.
"""

from __future__ import annotations

import functools
import unicodedata
from typing import NamedTuple

import tensorflow as tf

from albert_tf import text_cleanup, tokenization_graph
from albert_tf.tokenization_graph import CHARACTERS, CharacterTable, CodePointTable, character_table

SPACE = ord(" ")


class EncodedTexts(NamedTuple):
    """As `character_offsets.EncodedText`, of many texts: three ragged int32 [N, None] with the same rows."""

    ids: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor


class AlignedTexts(NamedTuple):
    """Texts made from original ones: the code points [N, None] came from the characters `starts` to `ends` - 1 [T]."""

    code_points: tf.RaggedTensor
    starts: tf.Tensor
    ends: tf.Tensor

    @classmethod
    def of(cls, code_points: tf.RaggedTensor) -> AlignedTexts:
        """The originals themselves."""
        places = tf.cast(tf.ragged.range(code_points.row_lengths()).values, tf.int32)
        return cls(code_points, places, places + 1)

    def mapped(self, table: CharacterTable) -> AlignedTexts:
        """Each character replaced as by the table; a mark that goes belongs to the character before it."""
        values = self.code_points.values
        sizes = table.sizes(values)
        made = table(self.code_points)
        sources = tf.repeat(tf.range(tf.size(values)), sizes)
        behind = tf.cumsum(sizes)  # the place in what is made behind that of each character
        row_starts = tf.gather(made.row_splits, self.code_points.value_rowids())
        gone = tf.where((sizes == 0) & (behind > row_starts) & (marks()(values) > 0))
        ends = tf.tensor_scatter_nd_max(
            tf.gather(self.ends, sources), tf.gather(behind, gone) - 1, tf.gather_nd(self.ends, gone)
        )
        return AlignedTexts(made, tf.gather(self.starts, sources), ends)

    def lowered(self) -> AlignedTexts:
        """In lower-case, as `str.lower`."""
        mapped = self.mapped(character_table(text_cleanup.lower))
        return mapped._replace(code_points=tokenization_graph.lower(self.code_points))

    def decomposed(self) -> AlignedTexts:
        """In the normal form NFD."""
        mapped = self.mapped(character_table(tokenization_graph.canonical_decomposition))
        order = tokenization_graph.order_of_marks(mapped.code_points)
        code_points, *bounds = (tf.gather(values, order) for values in (mapped.code_points.values, *mapped[1:]))
        return AlignedTexts(mapped.code_points.with_values(code_points), *bounds)

    def collapsed(self) -> AlignedTexts:
        """Each run of spaces between words as one, which is from the whole run; none at the ends."""
        values, row_ids = self.code_points.values, self.code_points.value_rowids()
        is_space = spaces()(values) > 0
        words = tf.where(~is_space)[:, 0]
        after = tf.searchsorted(words, tf.range(tf.size(values, tf.int64), dtype=tf.int64))
        has_after = after < tf.size(words)
        next_word = tf.gather(tf.concat([words, [0]], 0), after)  # the place of the next character that is no space
        is_first = tf.concat([[False], ~is_space[:-1] & (row_ids[:-1] == row_ids[1:])], 0)
        is_between = is_space & is_first & has_after & (tf.gather(row_ids, next_word) == row_ids)
        ends = tf.where(is_between, tf.gather(self.starts, next_word), self.ends)
        values = tf.where(is_between, SPACE, values)
        return AlignedTexts(self.code_points.with_values(values), self.starts, ends).kept(~is_space | is_between)

    def kept(self, mask: tf.Tensor) -> AlignedTexts:
        """The characters where `mask` [T] holds."""
        code_points = tf.ragged.boolean_mask(self.code_points, self.code_points.with_values(mask))
        return AlignedTexts(code_points, tf.boolean_mask(self.starts, mask), tf.boolean_mask(self.ends, mask))

    def byte_starts(self) -> tf.Tensor:
        """int64 [T+1]: where each character begins in UTF-8, all texts one behind the other; at last the length."""
        return byte_starts(self.code_points.values)

    def encoded(self, ids: tf.RaggedTensor, firsts: tf.Tensor, lasts: tf.Tensor) -> EncodedTexts:
        """The pieces `ids` [N, None], of the characters `firsts` to `lasts` - 1 [P] among all T, at least one each."""
        starts, ends = tf.gather(self.starts, firsts), tf.gather(self.ends, lasts - 1)
        return EncodedTexts(ids, ids.with_values(starts), ids.with_values(ends))


@functools.cache
def spaces() -> CodePointTable:
    """1 for what `str.split` splits at."""
    return CodePointTable(dict.fromkeys(text_cleanup.whitespace_characters(), 1))


@functools.cache
def marks() -> CodePointTable:
    """1 for accents and the like, category M."""
    return CodePointTable({c: 1 for c in CHARACTERS if unicodedata.category(c).startswith("M")})


def byte_starts(values: tf.Tensor) -> tf.Tensor:
    """int64 [T+1]: where each of the code points [T] begins in UTF-8; at last the length."""
    values = tokenization_graph.without_noncharacters(values)
    widths = 1 + sum(tf.cast(values >= limit, tf.int64) for limit in (0x80, 0x800, 0x10000))
    return tf.concat([[0], tf.cumsum(widths)], 0)
