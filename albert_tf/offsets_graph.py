"""Pieces with the characters they came from inside a graph: what `Tokenizer.encode_with_offsets` gives in Python.

N texts, P pieces of all of them together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf import sentencepiece_rules, text_cleanup, tokenization_graph, wordpiece
from albert_tf.aligned_texts import SPACE, AlignedTexts, EncodedTexts
from albert_tf.normalizer_graph import NormalizerGraph
from albert_tf.tokenization import SentencePieceTokenizer
from albert_tf.tokenization_graph import RowTable, character_table
from albert_tf.tokenizer import Tokenizer
from albert_tf.wordpiece import WordPieceTokenizer


class SentencePieceOffsets(tf.Module):
    """`SentencePieceTokenizer.encode_with_offsets` in a graph.

    TensorFlow Text would tell bytes of the text before the model's normaliser, too coarse where that puts several
    characters for one. So the text is normalised before.
    """

    def __init__(self, tokenizer: SentencePieceTokenizer):
        super().__init__(name="sentencepiece_offsets")
        self._do_lower_case = tokenizer.do_lower_case
        self._keep_accents = tokenizer.keep_accents
        import tensorflow_text

        model = tokenizer.model_proto
        self._normalized = NormalizerGraph(sentencepiece_rules.normalizer_rules(model))
        self._sentencepiece = tensorflow_text.SentencepieceTokenizer(
            model=sentencepiece_rules.without_normalizer(model), out_type=tf.int32
        )
        self._replacements = RowTable(tokenizer.replacement_rows())
        parts = tokenizer.part_sizes()
        begins = {i: [0, *np.cumsum(sizes)[:-1].tolist()] for i, sizes in parts.items()}
        self._part_begins = RowTable([begins.get(i, [0]) for i in range(tokenizer.vocab_size)])
        self._is_byte = np.isin(np.arange(tokenizer.vocab_size), tokenizer.byte_pieces())

    def __call__(self, code_points: tf.RaggedTensor) -> EncodedTexts:
        """Texts as code points [N, None] int32 to their pieces."""
        aligned = self._normalized(self._cleaned(code_points))
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
        return aligned.lowered() if self._do_lower_case else aligned

    def _parts(self, ids: tf.RaggedTensor, firsts: tf.Tensor, lasts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The characters of pieces to those of the pieces that replace them."""
        sizes = self._part_begins.sizes(ids.values)
        owners = tf.repeat(tf.range(tf.size(sizes)), sizes)
        begins = tf.cast(self._part_begins(ids).values, tf.int64)
        firsts, lasts = tf.gather(firsts, owners) + begins, tf.gather(lasts, owners)
        is_last = tf.concat([owners[:-1] != owners[1:], [True]], 0)[: tf.size(owners)]
        return firsts, tf.where(is_last, lasts, tf.roll(firsts, -1, 0))


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
        is_word, row_ids = aligned.code_points.values != SPACE, aligned.code_points.value_rowids()
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
