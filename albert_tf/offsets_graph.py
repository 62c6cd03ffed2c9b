"""Pieces with the characters they came from inside a graph: what `Tokenizer.encode_with_offsets` gives in Python.

As in `character_offsets`, every change of a text carries along the characters of the original. N texts, T code points
of all of them together, P pieces.
"""

from __future__ import annotations

import functools
import unicodedata
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from albert_tf import text_cleanup, tokenization_graph, wordpiece
from albert_tf.character_offsets import UNDERLINE
from albert_tf.tokenization import SentencePieceTokenizer
from albert_tf.tokenization_graph import CHARACTERS, CharacterTable, CodePointTable, RowTable, character_table
from albert_tf.tokenizer import Tokenizer
from albert_tf.wordpiece import WordPieceTokenizer

_SPACE = ord(" ")


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
        values = tf.where(is_between, _SPACE, values)
        return AlignedTexts(self.code_points.with_values(values), self.starts, ends).kept(~is_space | is_between)

    def kept(self, mask: tf.Tensor) -> AlignedTexts:
        """The characters where `mask` [T] holds."""
        code_points = tf.ragged.boolean_mask(self.code_points, self.code_points.with_values(mask))
        return AlignedTexts(code_points, tf.boolean_mask(self.starts, mask), tf.boolean_mask(self.ends, mask))

    def byte_starts(self) -> tf.Tensor:
        """int64 [T+1]: where each character begins in UTF-8, all texts one behind the other; at last the length."""
        values = tokenization_graph.without_noncharacters(self.code_points.values)
        widths = 1 + sum(tf.cast(values >= limit, tf.int64) for limit in (0x80, 0x800, 0x10000))
        return tf.concat([[0], tf.cumsum(widths)], 0)

    def encoded(self, ids: tf.RaggedTensor, firsts: tf.Tensor, lasts: tf.Tensor) -> EncodedTexts:
        """The pieces `ids` [N, None], of the characters `firsts` to `lasts` - 1 [P], places among all T."""
        row_ends = tf.gather(self.code_points.row_splits, ids.value_rowids() + 1)
        all_starts, all_ends = (tf.concat([bounds, [0]], 0) for bounds in (self.starts, self.ends))
        row_last = tf.gather(all_ends, tf.maximum(row_ends - 1, 0))
        starts = tf.where(firsts < row_ends, tf.gather(all_starts, firsts), row_last)
        ends = tf.where(firsts < lasts, tf.gather(all_ends, tf.maximum(lasts - 1, 0)), starts)
        return EncodedTexts(ids, ids.with_values(starts), ids.with_values(ends))


class SentencePieceOffsets(tf.Module):
    """`SentencePieceTokenizer.encode_with_offsets` in a graph."""

    def __init__(self, tokenizer: SentencePieceTokenizer):
        super().__init__(name="sentencepiece_offsets")
        self._do_lower_case = tokenizer.do_lower_case
        self._keep_accents = tokenizer.keep_accents
        import tensorflow_text

        self._sentencepiece = tensorflow_text.SentencepieceTokenizer(model=tokenizer.model_proto, out_type=tf.int32)
        # Where the model's normaliser would put several characters for one, a piece may end among them, and the bytes
        # that TensorFlow Text tells do not: they are put there before.
        expansions = tokenizer.expansions(character for character in CHARACTERS if not _is_surrogate(character))
        self._expand = CharacterTable(lambda character: expansions.get(character, character)) if expansions else None
        self._replacements = RowTable(tokenizer.replacement_rows())
        parts = tokenizer.part_sizes()
        begins = {i: [0, *np.cumsum(sizes)[:-1].tolist()] for i, sizes in parts.items()}
        self._part_begins = RowTable([begins.get(i, [0]) for i in range(tokenizer.vocab_size)])
        pieces = tokenizer.pieces()
        self._piece_sizes = np.array([len(piece) for piece in pieces], np.int64)
        self._starts_with_space = np.array([piece.startswith(UNDERLINE) for piece in pieces])
        self._is_byte = np.isin(np.arange(tokenizer.vocab_size), tokenizer.byte_pieces())

    def __call__(self, code_points: tf.RaggedTensor) -> EncodedTexts:
        """Texts as code points [N, None] int32 to their pieces."""
        aligned = self._cleaned(code_points)
        byte_starts = aligned.byte_starts()
        strings = tokenization_graph.encode_utf8(aligned.code_points)
        ids, begins, ends = self._sentencepiece.tokenize_with_offsets(strings)
        row_bytes = tf.gather(tf.gather(byte_starts, aligned.code_points.row_splits), ids.value_rowids())
        firsts, lasts = (
            tf.searchsorted(byte_starts, row_bytes + tf.cast(places.values, tf.int64), out_type=tf.int64)
            for places in (begins, ends)
        )
        lasts = tf.where(tf.gather(self._is_byte, ids.values), tf.maximum(lasts, firsts + 1), lasts)
        return aligned.encoded(self._replacements(ids), *self._parts(ids, firsts, lasts))

    def _cleaned(self, code_points: tf.RaggedTensor) -> AlignedTexts:
        aligned = AlignedTexts.of(code_points).collapsed()
        if not self._keep_accents:
            aligned = aligned.mapped(character_table(text_cleanup.decompose_without_marks))
        if self._do_lower_case:
            aligned = aligned.lowered()
        return aligned if self._expand is None else aligned.mapped(self._expand)

    def _parts(self, ids: tf.RaggedTensor, firsts: tf.Tensor, lasts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The characters of pieces to those of the pieces that replace them."""
        sizes = self._part_begins.sizes(ids.values)
        owners = tf.repeat(tf.range(tf.size(sizes)), sizes)
        begins = tf.cast(self._part_begins(ids).values, tf.int64)
        # The mark of a space in front of the first word is from no character.
        missing = tf.gather(self._piece_sizes, ids.values) - (lasts - firsts)
        missing = tf.where(tf.gather(self._starts_with_space, ids.values), tf.maximum(missing, 0), 0)
        firsts, lasts, missing = (tf.gather(values, owners) for values in (firsts, lasts, missing))
        part_firsts = tf.minimum(firsts + tf.maximum(begins - missing, 0), lasts)
        is_last = tf.concat([owners[:-1] != owners[1:], [True]], 0)[: tf.size(owners)]
        return part_firsts, tf.where(is_last, lasts, tf.roll(part_firsts, -1, 0))


class WordPieceOffsets(tf.Module):
    """`WordPieceTokenizer.encode_with_offsets` in a graph."""

    def __init__(self, tokenizer: WordPieceTokenizer):
        super().__init__(name="wordpiece_offsets")
        self._do_lower_case = tokenizer.do_lower_case
        self._keep_accents = tokenizer.keep_accents
        self._unk_id = tokenizer.unk_id
        self._words = tokenization_graph.WordPieces(tokenizer)

    def __call__(self, code_points: tf.RaggedTensor) -> EncodedTexts:
        """Texts as code points [N, None] int32 to their pieces."""
        aligned = self._aligned(code_points)
        is_word, row_ids = aligned.code_points.values != _SPACE, aligned.code_points.value_rowids()
        is_first = tf.concat([[True], ~is_word[:-1] | (row_ids[:-1] != row_ids[1:])], 0)[: tf.size(is_word)] & is_word
        words_before = tf.cumsum(tf.cast(is_first, tf.int64))
        aligned = aligned.kept(is_word)
        word_rows = tf.boolean_mask(row_ids, is_first)
        words = tf.RaggedTensor.from_value_rowids(
            aligned.code_points.values, tf.boolean_mask(words_before, is_word) - 1, tf.size(word_rows, tf.int64)
        )
        ids, begins, ends = self._words.tokenize_with_offsets(tokenization_graph.encode_utf8(words))
        word_ids = ids.value_rowids()
        byte_starts = aligned.byte_starts()
        word_bytes = tf.gather(tf.gather(byte_starts, words.row_splits), word_ids)
        is_known = ids.values != self._unk_id
        firsts, lasts = (
            tf.where(
                is_known,
                tf.searchsorted(byte_starts, word_bytes + tf.cast(places.values, tf.int64), out_type=tf.int64),
                tf.gather(whole, word_ids),
            )
            for places, whole in ((begins, words.row_splits[:-1]), (ends, words.row_splits[1:]))
        )
        rows = tf.gather(word_rows, word_ids)
        by_text = tf.RaggedTensor.from_value_rowids(ids.values, rows, code_points.nrows(), validate=False)
        encoded = aligned.encoded(by_text, firsts, lasts)
        starts = -_running_maxima(-encoded.starts.values[::-1], rows[::-1])[::-1]
        ends = _running_maxima(encoded.ends.values, rows)
        return EncodedTexts(by_text, by_text.with_values(starts), by_text.with_values(ends))

    def _aligned(self, code_points: tf.RaggedTensor) -> AlignedTexts:
        aligned = AlignedTexts.of(code_points).mapped(character_table(wordpiece.separate_cjk))
        if self._do_lower_case:
            aligned = aligned.lowered()
            if not self._keep_accents:
                aligned = aligned.decomposed().mapped(character_table(wordpiece.drop_nonspacing_mark))
        return aligned.mapped(character_table(wordpiece.separate_punctuation))


def offsets_graph(tokenizer: Tokenizer) -> Any:
    """A tf.Module that is called with code points [N, None] and gives `EncodedTexts`; it holds the vocabulary."""
    if isinstance(tokenizer, SentencePieceTokenizer):
        return SentencePieceOffsets(tokenizer)
    assert isinstance(tokenizer, WordPieceTokenizer)
    return WordPieceOffsets(tokenizer)


@functools.cache
def spaces() -> CodePointTable:
    """1 for what `str.split` splits at."""
    return CodePointTable(dict.fromkeys(text_cleanup.whitespace_characters(), 1))


@functools.cache
def marks() -> CodePointTable:
    """1 for accents and the like, category M."""
    return CodePointTable({c: 1 for c in CHARACTERS if unicodedata.category(c).startswith("M")})


def _is_surrogate(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"


def _running_maxima(values: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """The largest of the values [P] of the same row so far; a row's values stand together."""

    def of_twice_as_many(shift: tf.Tensor, maxima: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        is_same_row = rows[shift:] == rows[:-shift]
        later = tf.where(is_same_row, tf.maximum(maxima[shift:], maxima[:-shift]), maxima[shift:])
        return 2 * shift, tf.concat([maxima[:shift], later], 0)

    count = tf.size(values)
    return tf.while_loop(
        lambda shift, _: shift < count,
        of_twice_as_many,
        (1, values),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None])),
    )[1]
