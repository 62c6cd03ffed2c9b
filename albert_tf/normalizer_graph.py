"""SentencePiece's normaliser inside a graph, with the characters that each one of the outcome came from.

N texts, T code points of all of them together, Q bytes, M code points of what comes out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from albert_tf.aligned_texts import SPACE, AlignedTexts, byte_starts
from albert_tf.character_offsets import UNDERLINE
from albert_tf.sentencepiece_rules import NormalizerRules
from albert_tf.tokenization_graph import ITSELF, RowTable, encode_utf8

_MARK = ord(UNDERLINE)
_LEAF, _VALUE, _LABEL = 1 << 8, (1 << 31) - 1, 1 << 31 | 0xFF  # parts of a unit of the double array


class _Made(NamedTuple):
    """Characters [M] that came out, the rows they are in, and where in all T the rule was applied that gave them."""

    values: tf.Tensor
    rows: tf.Tensor
    places: tf.Tensor

    def kept(self, mask: tf.Tensor) -> _Made:
        """Those where `mask` [M] holds."""
        return _Made(*(tf.boolean_mask(values, mask) for values in self))

    def is_first(self, values: tf.Tensor) -> tf.Tensor:
        """Where `values` [M] differ from those of the character before, bool [M]."""
        return tf.concat([[True], values[1:] != values[:-1]], 0)[: tf.size(values)]


class NormalizerGraph:
    """`SentencePieceProcessor.normalize` in a graph; see `sentencepiece_rules`."""

    def __init__(self, rules: NormalizerRules):
        self._rules = rules
        self._units = rules.units.astype(np.int64)
        texts = rules.texts.split(b"\0")[:-1]
        begins = np.cumsum([0, *(len(text) + 1 for text in texts)])[:-1]
        self._row_of = np.zeros(len(rules.texts), np.int64)
        self._row_of[begins] = np.arange(1, len(texts) + 1)
        self._replacements = RowTable([[ITSELF], *([ord(character) for character in text.decode()] for text in texts)])

    def __call__(self, aligned: AlignedTexts) -> AlignedTexts:
        """Texts to what the model finds pieces in, where a mark stands for each space."""
        texts = aligned.code_points
        made, first_places = self._applied(texts)
        behind = texts.row_splits[1:]  # the place behind what a text is read to
        if self._rules.remove_extra_whitespaces:
            made = _without_repeated_spaces(made)
        else:
            first_places = texts.row_starts()
        made = made._replace(values=tf.where(made.values == SPACE, _MARK, made.values))
        if self._rules.add_dummy_prefix:
            made = _with_marks_in_front(made, texts, first_places)
        if self._rules.remove_extra_whitespaces:
            made, behind = _without_marks_at_the_end(made, behind)
        lasts = _places_behind(made, behind)
        starts = tf.gather(aligned.starts, made.places)
        ends = tf.gather(aligned.ends, tf.maximum(lasts - 1, 0))
        return AlignedTexts(
            tf.RaggedTensor.from_value_rowids(made.values, made.rows, texts.nrows(), validate=False),
            starts,
            tf.where(made.places < lasts, ends, starts),
        )

    def _applied(self, texts: tf.RaggedTensor) -> tuple[_Made, tf.Tensor]:
        """What the rules give, and where in each text [N] the first one was applied that does not give a space."""
        found, sizes = self._longest_keys(texts)
        symbol_sizes = self._longest_symbols(texts)
        found = tf.where(symbol_sizes > 0, tf.zeros_like(found), found)
        sizes = tf.where(symbol_sizes > 0, symbol_sizes, sizes)
        places = tf.boolean_mask(tf.range(tf.size(sizes, tf.int64)), _reached(texts, sizes))
        found, rows = tf.gather(found, places), tf.gather(texts.value_rowids(), places)
        # A symbol is as many characters as it has; all else is one row of the table.
        counts = tf.maximum(tf.gather(symbol_sizes, places), 1)
        sources = tf.repeat(places, counts) + tf.ragged.range(counts).values
        made = self._replacements(
            tf.RaggedTensor.from_row_lengths(tf.gather(texts.values, sources), counts, validate=False),
            tf.repeat(found, counts),
        )
        owners = made.value_rowids()
        is_space = (made.row_lengths() == 1) & (tf.gather(tf.concat([made.values, [0]], 0), made.row_starts()) == SPACE)
        firsts = tf.math.unsorted_segment_min(
            tf.boolean_mask(places, ~is_space), tf.boolean_mask(rows, ~is_space), texts.nrows()
        )
        return _Made(made.values, tf.gather(rows, owners), tf.gather(places, owners)), firsts

    def _longest_keys(self, texts: tf.RaggedTensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Of the longest key that begins with each character [T]: the row of its replacement, and its characters."""
        values = texts.values
        if not self._units.size:
            return tf.zeros_like(values, tf.int64), tf.ones_like(values, tf.int64)
        strings = encode_utf8(texts)
        data = tf.cast(tf.io.decode_raw(tf.strings.reduce_join(strings), tf.uint8), tf.int64)
        begins = byte_starts(values)
        row_ends = tf.gather(tf.gather(begins, texts.row_splits), texts.value_rowids() + 1)
        begins, units = begins[:-1], tf.constant(self._units)

        def step(size, alive, nodes, best, value):  # type: ignore[no-untyped-def]
            places = tf.gather(begins, alive) + size
            inside = places < tf.gather(row_ends, alive)
            alive, nodes, places = (tf.boolean_mask(v, inside) for v in (alive, nodes, places))
            byte = tf.gather(data, places)
            nodes = tf.bitwise.bitwise_xor(nodes, byte)
            unit = tf.gather(units, nodes)
            fits = tf.bitwise.bitwise_and(unit, _LABEL) == byte
            alive, nodes, unit = (tf.boolean_mask(v, fits) for v in (alive, nodes, unit))
            nodes = tf.bitwise.bitwise_xor(nodes, _offset(unit))
            is_leaf = tf.bitwise.bitwise_and(unit, _LEAF) > 0
            ends = tf.boolean_mask(alive, is_leaf)[:, tf.newaxis]
            found = tf.bitwise.bitwise_and(tf.gather(units, tf.boolean_mask(nodes, is_leaf)), _VALUE)
            best = tf.tensor_scatter_nd_update(best, ends, tf.fill([tf.size(found)], size + 1))
            return size + 1, alive, nodes, best, tf.tensor_scatter_nd_update(value, ends, found)

        nothing = tf.zeros_like(values, tf.int64)
        alive = tf.range(tf.size(values, tf.int64))
        any_size = tf.TensorShape([None])
        _, _, _, sizes, value = tf.while_loop(
            lambda size, alive, *_: tf.size(alive) > 0,
            step,
            (tf.constant(0, tf.int64), alive, nothing + _offset(units[0]), nothing, nothing),
            shape_invariants=(tf.TensorShape([]), any_size, any_size, any_size, any_size),
        )
        found = tf.where(sizes > 0, tf.gather(self._row_of, value), nothing)
        behind = tf.searchsorted(tf.concat([begins, row_ends[-1:]], 0), begins + sizes, out_type=tf.int64)
        return found, tf.where(sizes > 0, behind - tf.range(tf.size(values, tf.int64)), nothing + 1)

    def _longest_symbols(self, texts: tf.RaggedTensor) -> tf.Tensor:
        """How many characters the longest symbol has that begins with each character, int64 [T]; 0 for none."""
        places = tf.range(tf.size(texts.values, tf.int64))
        left = tf.gather(texts.row_splits, texts.value_rowids() + 1) - places
        sizes = tf.zeros_like(places)
        for size in sorted({len(symbol) for symbol in self._rules.symbols}):
            symbols = np.array([list(map(ord, s)) for s in self._rules.symbols if len(s) == size], np.int32)
            ahead = tf.stack([tf.roll(texts.values, -shift, 0) for shift in range(size)], 1)
            fits = tf.reduce_any(tf.reduce_all(ahead[:, tf.newaxis] == symbols, 2), 1) & (left >= size)
            sizes = tf.where(fits, tf.constant(size, tf.int64), sizes)
        return sizes


def _offset(units: tf.Tensor) -> tf.Tensor:
    """The double array's step from units [.] to their children."""
    is_far = tf.bitwise.bitwise_and(units, tf.constant(1 << 9, tf.int64))
    offsets = tf.bitwise.right_shift(units, tf.constant(10, tf.int64))
    return tf.bitwise.left_shift(offsets, tf.bitwise.right_shift(is_far, tf.constant(6, tf.int64)))


def _reached(texts: tf.RaggedTensor, sizes: tf.Tensor) -> tf.Tensor:
    """Where a reader comes by who begins each text and steps on by `sizes` [T], bool [T]."""
    total = tf.size(sizes, tf.int64)
    following = tf.concat([tf.range(total) + sizes, [total]], 0)
    begins = tf.boolean_mask(texts.row_starts(), texts.row_lengths() > 0)
    reached = tf.scatter_nd(begins[:, tf.newaxis], tf.ones_like(begins), [total + 1])

    def twice_as_far(steps: tf.Tensor, following: tf.Tensor, reached: tf.Tensor) -> tuple[tf.Tensor, ...]:
        reached = tf.tensor_scatter_nd_max(reached, following[:, tf.newaxis], reached)
        return 2 * steps, tf.gather(following, following), reached

    # With nothing but single steps all is reached, which is most of the texts.
    steps = tf.where(tf.reduce_all(sizes == 1), total, tf.ones_like(total))
    reached = tf.while_loop(lambda steps, *_: steps < total, twice_as_far, (steps, following, reached))[2]
    return (reached[:-1] > 0) | tf.reduce_all(sizes == 1)


def _without_repeated_spaces(made: _Made) -> _Made:
    """Without the spaces that a rule gives first where nothing, or a space, was before."""
    is_space = made.values == SPACE
    words = tf.cumsum(tf.cast(~is_space, tf.int64), exclusive=True)
    is_new = made.is_first(made.places)
    firsts = tf.gather(tf.where(is_new)[:, 0], tf.cumsum(tf.cast(is_new, tf.int64)) - 1)
    follows = made.is_first(made.rows) | tf.concat([[True], is_space[:-1]], 0)[: tf.size(is_space)]
    return made.kept(~(is_space & (words == tf.gather(words, firsts)) & tf.gather(follows, firsts)))


def _with_marks_in_front(made: _Made, texts: tf.RaggedTensor, places: tf.Tensor) -> _Made:
    """With a mark in front of each text that has characters, as if from `places` [N]."""
    has_any = texts.row_lengths() > 0
    rows = tf.where(has_any)[:, 0]
    marks = tf.RaggedTensor.from_row_lengths(rows, tf.cast(has_any, tf.int64), validate=False)
    others = tf.RaggedTensor.from_value_rowids(made.rows, made.rows, texts.nrows(), validate=False)

    def joined(of_marks: tf.Tensor, of_others: tf.Tensor) -> tf.Tensor:
        return tf.concat([marks.with_values(of_marks), others.with_values(of_others)], axis=1).values

    return _Made(
        joined(tf.fill([tf.size(rows)], _MARK), made.values),
        joined(rows, made.rows),
        joined(tf.gather(places, rows), made.places),
    )


def _without_marks_at_the_end(made: _Made, behind: tf.Tensor) -> tuple[_Made, tf.Tensor]:
    """Without the marks that end a text, and where in it [N] they begin, `behind` where there are none."""
    numbers = tf.range(tf.size(made.rows, tf.int64))
    is_word, count = made.values != _MARK, tf.size(behind, tf.int64)
    last_words = tf.math.unsorted_segment_max(
        tf.boolean_mask(numbers, is_word), tf.boolean_mask(made.rows, is_word), count
    )
    is_kept = numbers <= tf.gather(last_words, made.rows)
    left = made.kept(~is_kept)
    return made.kept(is_kept), tf.minimum(behind, tf.math.unsorted_segment_min(left.places, left.rows, count))


def _places_behind(made: _Made, behind: tf.Tensor) -> tf.Tensor:
    """The place behind those that each character is from [M]: up to the next rule that gave any.

    The mark in front of the first word is from nowhere, unless something was left out there.
    """
    following = tf.searchsorted(made.places, made.places, side="right")
    lasts = tf.minimum(tf.gather(tf.concat([made.places, [tf.int64.max]], 0), following), tf.gather(behind, made.rows))
    same_as_next = tf.concat([made.places[1:] == made.places[:-1], [False]], 0)[: tf.size(lasts)]
    is_empty = made.is_first(made.rows) & (made.values == _MARK) & same_as_next
    return tf.where(is_empty, made.places, lasts)
