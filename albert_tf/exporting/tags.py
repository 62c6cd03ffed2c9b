"""Texts to a label for each word.

B texts, W the most words of a text, S the padded length, C labels, T words of all texts together.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from albert_tf import sequences, sequences_graph
from albert_tf.exporting import blocks, forward
from albert_tf.exporting.parts import HeadSignatures, Outputs, Parts, TextInput
from albert_tf.exporting.word_windows import word_windows
from albert_tf.task_kinds.arrays import label_names

_INPUTS = (TextInput("text"),)


class Words(NamedTuple):
    """The words of texts: `code_points` [T, None], and ragged [B, None] int32 the characters `starts` to `ends` - 1."""

    code_points: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor


def signatures(parts: Parts) -> HeadSignatures:
    """From ids `label_names` [B,C] and `probabilities` [B,S,C] of every position.

    From texts `words` [B,W] string, cut at spaces; `starts` and `ends` [B,W] int32, the characters of the text that
    each is, counted from 0; `labels` [B,W] string, the likeliest, and `probabilities` [B,W] float32. Behind the
    `word_counts` [B] words of a text there are "", -1 and 0. Long texts are read in windows; `is_cut` [B] bool is for
    a word that alone is too long for one.
    """
    names = tf.constant(label_names(parts.head))

    def of_ids(inputs: dict[str, tf.Tensor]) -> Outputs:
        logits = forward.head_outputs(parts.model, inputs)
        labels = tf.tile(names[tf.newaxis], [tf.shape(logits)[0], 1])
        return {"label_names": labels, "probabilities": tf.nn.softmax(logits)}

    def of_texts(texts: tf.Tensor) -> Outputs:
        words = split(tf.strings.unicode_decode(texts, "UTF-8", errors="replace"))
        logits, is_long = _word_logits(parts, words)
        best = tf.argmax(logits, axis=-1)
        probabilities = tf.reduce_max(tf.nn.softmax(logits), axis=-1)
        strings = tf.strings.unicode_encode(words.code_points, "UTF-8")
        is_cut = tf.reduce_any(words.starts.with_values(is_long), axis=1)
        return {
            "words": words.starts.with_values(strings).to_tensor(""),
            "starts": words.starts.to_tensor(-1),
            "ends": words.ends.to_tensor(-1),
            "labels": words.starts.with_values(tf.gather(names, best)).to_tensor(""),
            "probabilities": words.starts.with_values(probabilities).to_tensor(0.0),
            "word_counts": tf.cast(words.starts.row_lengths(), tf.int32),
            "is_cut": is_cut,
        }

    return HeadSignatures(of_ids, None if parts.given_tokenizer is None else of_texts, _INPUTS)


def split(code_points: tf.RaggedTensor) -> Words:
    """The words of texts [B, None], cut as by `str.split`."""
    from albert_tf.aligned_texts import spaces  # needs TensorFlow Text

    values, row_ids = code_points.values, code_points.value_rowids()
    is_word = spaces()(values) == 0
    joins = is_word[:-1] & (row_ids[:-1] == row_ids[1:])
    is_first = is_word & ~tf.concat([[False], joins], 0)[: tf.size(values)]
    places = tf.cast(tf.ragged.range(code_points.row_lengths()).values, tf.int32)
    words = tf.RaggedTensor.from_value_rowids(
        tf.boolean_mask(values, is_word),
        tf.boolean_mask(tf.cumsum(tf.cast(is_first, tf.int64)) - 1, is_word),
        tf.reduce_sum(tf.cast(is_first, tf.int64)),
    )
    starts = tf.RaggedTensor.from_value_rowids(
        tf.boolean_mask(places, is_first), tf.boolean_mask(row_ids, is_first), code_points.nrows()
    )
    return Words(words, starts, starts + tf.cast(starts.with_values(words.row_lengths()), tf.int32))


def _word_logits(parts: Parts, words: Words) -> tuple[tf.Tensor, tf.Tensor]:
    """The logits [T,C] at the first piece of each word, and where a word was too long, bool [T]."""
    from albert_tf.tokenization_graph import encode_utf8  # needs TensorFlow Text

    room = parts.kind.max_seq_length - sequences.SPECIALS_OF_ONE
    pieces = parts.tokenize(encode_utf8(words.code_points))  # [T, None]
    has_none = tf.cast(pieces.row_lengths() == 0, tf.int64)
    unknown = tf.RaggedTensor.from_row_lengths(tf.fill([tf.reduce_sum(has_none)], parts.tokenizer.unk_id), has_none)
    pieces = tf.concat([pieces, unknown], axis=1)
    kept = sequences_graph.first_pieces(pieces, tf.fill([pieces.nrows()], tf.constant(room, tf.int64)))
    windows = word_windows(words.starts.with_values(kept.row_lengths()), room, parts.kind.doc_stride)

    starts = tf.gather(kept.row_splits, windows.first)
    inside = tf.ragged.range(starts, tf.gather(kept.row_splits, windows.end))
    inputs = sequences_graph.assemble(inside.with_values(tf.gather(kept.values, inside.values)), None, parts.tokenizer)
    logits = blocks.head_outputs(parts.model, inputs)  # [windows,S,C]
    own = tf.ragged.range(windows.first_own, windows.end_own)
    rows = own.value_rowids()
    positions = 1 + tf.gather(kept.row_splits, own.values) - tf.gather(starts, rows)
    return tf.gather_nd(logits, tf.stack([rows, positions], axis=1)), kept.row_lengths() < pieces.row_lengths()
