"""The tokenizers as TensorFlow graphs: strings in, the same ids as the Python side out.

TensorFlow's own lower-casing and normalisation follow other Unicode versions and other rules than Python's, so the
text is taken apart into code points and every rule is a table made from the Python functions themselves. Bytes that
are no UTF-8 become U+FFFD, as `bytes.decode("utf-8", "replace")` does it.
N is the number of texts.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

import numpy as np
import tensorflow as tf

from albert_tf import text_cleanup, wordpiece
from albert_tf.tokenization import SentencePieceTokenizer
from albert_tf.wordpiece import WordPieceTokenizer

_PAGE = 256
_CODE_POINTS = sys.maxunicode + 1
# Planes 4 to 13 are unassigned and 15 and 16 private: no rule says anything about them.
CHARACTERS = [chr(code_point) for code_point in chain(range(0x40000), range(0xE0000, 0xF0000))]
ITSELF = -1
_IGNORABLE, _CASED = 1, 2
_TEXTS = tf.TensorSpec([None], tf.string, name="texts")


class SentencePieceGraph(tf.Module):
    """`SentencePieceTokenizer` in a graph."""

    def __init__(self, tokenizer: SentencePieceTokenizer):
        super().__init__(name="sentencepiece")
        self._do_lower_case = tokenizer.do_lower_case
        self._keep_accents = tokenizer.keep_accents
        self._replacements = RowTable(tokenizer.replacement_rows())
        import tensorflow_text

        self._sentencepiece = tensorflow_text.SentencepieceTokenizer(model=tokenizer.model_proto, out_type=tf.int32)

    @tf.function(input_signature=[_TEXTS])
    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """texts [N] string -> ids [N, None] int32."""
        texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
        texts = tf.strings.strip(tf.strings.regex_replace(texts, _whitespace_pattern(), " "))
        code_points = tf.strings.unicode_decode(texts, "UTF-8")
        if not self._keep_accents:
            code_points = character_table(text_cleanup.decompose_without_marks)(code_points)
        if self._do_lower_case:
            code_points = lower(code_points)
        ids = self._sentencepiece.tokenize(encode_utf8(code_points))
        return self._replacements(ids)


class WordPieces(tf.Module):
    """Words to pieces, longest match first; W words."""

    def __init__(self, tokenizer: WordPieceTokenizer):
        super().__init__(name="pieces_of_words")
        ids = tokenizer.ids_by_piece()
        self._table = tf.lookup.StaticVocabularyTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant(list(ids)), tf.constant(list(ids.values()), tf.int64), tf.string, tf.int64
            ),
            num_oov_buckets=1,
        )
        import tensorflow_text

        self._wordpiece = tensorflow_text.WordpieceTokenizer(
            self._table,
            unknown_token=wordpiece.SPECIAL_PIECES[1],
            token_out_type=tf.int64,
            # In bytes; the limit in characters is kept below, and a character has at most four.
            max_bytes_per_word=4 * wordpiece.MAX_CHARACTERS_PER_WORD + 1,
        )

    def tokenize(self, words: tf.Tensor) -> tf.RaggedTensor:
        """Strings [W] to ids [W, None] int32."""
        return self.tokenize_with_offsets(words)[0]

    def tokenize_with_offsets(self, words: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """The ids and, [W, None] int64 each, the first byte of each piece and the one behind it, where it is known."""
        too_long = tf.strings.length(words, unit="UTF8_CHAR") > wordpiece.MAX_CHARACTERS_PER_WORD
        # No line of a vocabulary file holds a line feed, so this word is unknown.
        ids, begins, ends = self._wordpiece.tokenize_with_offsets(tf.where(too_long, "\n", words))
        return tf.cast(ids, tf.int32), begins, ends


class WordPieceGraph(tf.Module):
    """`WordPieceTokenizer` in a graph."""

    def __init__(self, tokenizer: WordPieceTokenizer):
        super().__init__(name="wordpiece")
        self._do_lower_case = tokenizer.do_lower_case
        self._keep_accents = tokenizer.keep_accents
        self._words = WordPieces(tokenizer)

    @tf.function(input_signature=[_TEXTS])
    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """texts [N] string -> ids [N, None] int32."""
        code_points = tf.strings.unicode_decode(texts, "UTF-8", errors="replace")
        code_points = character_table(wordpiece.separate_cjk)(code_points)
        if self._do_lower_case:
            code_points = lower(code_points)
            if not self._keep_accents:
                code_points = order_marks(character_table(canonical_decomposition)(code_points))
                code_points = character_table(wordpiece.drop_nonspacing_mark)(code_points)
        code_points = character_table(wordpiece.separate_punctuation)(code_points)
        words = tf.strings.split(encode_utf8(code_points))
        return words.with_values(self._words.tokenize(words.values)).merge_dims(1, 2)


class RowTable:
    """Replaces each element i of a ragged tensor by row i of a list of rows; ITSELF in a row leaves the element."""

    def __init__(self, rows: Sequence[Sequence[int]]):
        sizes = np.array([len(row) for row in rows], np.int64)
        self._sizes = sizes
        self._starts = np.cumsum(sizes) - sizes
        self._values = np.fromiter(chain.from_iterable(rows), np.int32)

    def __call__(self, ragged: tf.RaggedTensor, rows: tf.Tensor | None = None) -> tf.RaggedTensor:
        """ragged [N, None] int32 -> [N, None] int32; `rows`: which row to take, by default the element itself."""
        elements = ragged.values
        rows = elements if rows is None else rows
        sizes = tf.gather(self._sizes, rows)
        ends = tf.concat([[0], tf.cumsum(sizes)], 0)
        # Each output element is an element of a row: the row's start plus the place within the row.
        places = tf.range(ends[-1]) - tf.repeat(ends[:-1], sizes)
        values = tf.gather(self._values, tf.repeat(tf.gather(self._starts, rows), sizes) + places)
        values = tf.where(values == ITSELF, tf.repeat(elements, sizes), values)
        return tf.RaggedTensor.from_row_splits(values, tf.gather(ends, ragged.row_splits), validate=False)

    def sizes(self, rows: tf.Tensor) -> tf.Tensor:
        """How many elements each of the rows has: int32 [T] to int64 [T]."""
        return tf.gather(self._sizes, rows)


class CodePointTable:
    """A number for every code point, kept in pages, since almost all pages are alike."""

    def __init__(self, number_of: Mapping[str, int]):
        """`number_of`: the number of each character; 0 for a character that is not in it."""
        numbers = np.zeros(_CODE_POINTS, np.int32)
        numbers[[ord(character) for character in number_of]] = list(number_of.values())
        pages: dict[bytes, int] = {}
        page_of = [pages.setdefault(page.tobytes(), len(pages)) for page in numbers.reshape(-1, _PAGE)]
        self._pages = np.frombuffer(b"".join(pages), np.int32)
        self._page_of = np.array(page_of, np.int32)

    def __call__(self, code_points: tf.Tensor) -> tf.Tensor:
        """code_points int32 -> int32 of the same shape."""
        page = tf.gather(self._page_of, code_points // _PAGE)
        return tf.gather(self._pages, page * _PAGE + code_points % _PAGE)


class CharacterTable:
    """Replaces each code point of a ragged tensor by those of `function(character)`."""

    def __init__(self, function: Callable[[str], str]):
        row_of = {}
        rows = [[ITSELF]]
        for character in CHARACTERS:
            replacement = function(character)
            if replacement != character:
                row_of[character] = len(rows)
                rows.append([ord(part) for part in replacement])
        self._row_of, self._rows = CodePointTable(row_of), RowTable(rows)

    def __call__(self, code_points: tf.RaggedTensor) -> tf.RaggedTensor:
        """code_points [N, None] int32 -> [N, None] int32."""
        return self._rows(code_points, self._row_of(code_points.values))

    def sizes(self, code_points: tf.Tensor) -> tf.Tensor:
        """By how many each code point is replaced: int32 [T] to int64 [T]."""
        return self._rows.sizes(self._row_of(code_points))


@functools.cache
def character_table(function: Callable[[str], str]) -> CharacterTable:
    """The table of a function of one character, made once: it asks the function for every character there is."""
    return CharacterTable(function)


def encode_utf8(code_points: tf.RaggedTensor) -> tf.Tensor:
    """code_points [N, None] int32 -> strings [N] for a tokenizer.

    TensorFlow 2.15 writes U+FFFD for Unicode's 66 noncharacters, and models read U+FFFD as a space. A private-use
    character stands in for them: no vocabulary has either, so both are unknown.
    """
    return tf.strings.unicode_encode(code_points.with_values(without_noncharacters(code_points.values)), "UTF-8")


def without_noncharacters(values: tf.Tensor) -> tf.Tensor:
    """Code points [T] as `encode_utf8` writes them."""
    is_noncharacter = (values % 0x10000 >= 0xFFFE) | ((values >= 0xFDD0) & (values <= 0xFDEF))
    return tf.where(is_noncharacter, 0x10FFFD, values)


def lower(code_points: tf.RaggedTensor) -> tf.RaggedTensor:
    """str.lower of code points [N, None] int32."""
    return character_table(text_cleanup.lower)(_lower_sigmas(code_points))


def _lower_sigmas(code_points: tf.RaggedTensor) -> tf.RaggedTensor:
    """Lower-case of the capital sigmas: final after a cased letter and not before one, ignorable characters skipped."""
    values, row_ids = code_points.values, code_points.value_rowids()
    kind = _case_kinds()(values)
    sigmas = tf.where(values == ord(text_cleanup.CAPITAL_SIGMA))[:, 0]
    seen = tf.where(kind != _IGNORABLE)[:, 0]
    place = tf.searchsorted(seen, sigmas)

    def is_cased(neighbour: tf.Tensor) -> tf.Tensor:
        exists = (neighbour >= 0) & (neighbour < tf.size(seen))
        position = tf.gather(seen, tf.where(exists, neighbour, 0))
        return (
            exists
            & (tf.gather(row_ids, position) == tf.gather(row_ids, sigmas))
            & (tf.gather(kind, position) == _CASED)
        )

    final = is_cased(place - 1) & ~is_cased(place + 1)
    small = tf.where(final, ord(text_cleanup.FINAL_SIGMA), ord(text_cleanup.SMALL_SIGMA))
    return code_points.with_values(tf.tensor_scatter_nd_update(values, sigmas[:, tf.newaxis], small))


def order_marks(code_points: tf.RaggedTensor) -> tf.RaggedTensor:
    """Unicode's canonical ordering: each run of combining marks stably sorted by combining class."""
    return code_points.with_values(tf.gather(code_points.values, order_of_marks(code_points)))


def order_of_marks(code_points: tf.RaggedTensor) -> tf.Tensor:
    """Canonical ordering as the place that each of T code points comes from, int32 [T]."""
    combining_class = tf.cast(_combining_classes()(code_points.values), tf.int64)
    marks = tf.where(combining_class > 0)
    # Grows at every character that is no mark and at every row, so it tells runs apart.
    run = tf.cumsum(tf.cast(combining_class == 0, tf.int64)) + code_points.value_rowids()
    order = tf.argsort(tf.gather_nd(run * _PAGE + combining_class, marks), stable=True)
    places = tf.cast(tf.gather(marks[:, 0], order), tf.int32)
    return tf.tensor_scatter_nd_update(tf.range(tf.size(combining_class)), marks, places)


def canonical_decomposition(character: str) -> str:
    return unicodedata.normalize("NFD", character)


@functools.cache
def _case_kinds() -> CodePointTable:
    cased, ignorable = text_cleanup.cased_and_ignorable(CHARACTERS)
    return CodePointTable({**dict.fromkeys(cased, _CASED), **dict.fromkeys(ignorable, _IGNORABLE)})


@functools.cache
def _combining_classes() -> CodePointTable:
    return CodePointTable({character: unicodedata.combining(character) for character in CHARACTERS})


@functools.cache
def _whitespace_pattern() -> str:
    characters = "".join(re.escape(character) for character in text_cleanup.whitespace_characters())
    return f"[{characters}]+"
