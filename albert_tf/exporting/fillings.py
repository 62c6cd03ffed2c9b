"""Texts with [MASK] to the likeliest pieces for each gap.

B texts, S the padded length, G the most gaps of a text, K pieces for each, V the vocabulary.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from albert_tf import sequences_graph
from albert_tf.character_offsets import UNDERLINE
from albert_tf.exporting import forward
from albert_tf.exporting.parts import HeadSignatures, Outputs, Parts, TextInput
from albert_tf.tokenization import SPECIAL_PIECES

_GAP = SPECIAL_PIECES[-1]
_INPUTS = (TextInput("text", sample=f"Albert Einstein was {_GAP} in Ulm."),)


def signatures(parts: Parts) -> HeadSignatures:
    """`pieces` [B,G,K] string and `probabilities` [B,G,K] float32, best first; `piece_ids` and `positions` int32.

    `positions` [B,G] are those of the gaps among the pieces. A text with fewer gaps than another has `gaps` [B] of
    them; behind these there are "", 0, the id of padding and -1. From texts also `is_cut` [B] bool.
    """

    def of_texts(texts: tf.Tensor) -> Outputs:
        packed = sequences_graph.pack(_with_gaps(parts, texts), None, parts.tokenizer, parts.max_seq_length)
        return {**_filled(parts, packed.inputs), "is_cut": packed.is_cut}

    if parts.given_tokenizer is None:
        return HeadSignatures(lambda inputs: _logits(parts, inputs), None, _INPUTS)
    return HeadSignatures(lambda inputs: _filled(parts, inputs), of_texts, _INPUTS)


def _logits(parts: Parts, inputs: dict[str, tf.Tensor]) -> Outputs:
    """`masked_lm_logits` at every position, [B,S,V]: without a vocabulary it is not known what a gap is."""
    outputs = forward.head_outputs(parts.model, inputs)
    return {"masked_lm_logits": outputs["masked_lm_logits"] if isinstance(outputs, dict) else outputs}


def _with_gaps(parts: Parts, texts: tf.Tensor) -> tf.RaggedTensor:
    """The pieces [B, None] of texts, as `fill_mask` reads them without [CLS] and [SEP]."""
    from albert_tf.aligned_texts import spaces  # needs TensorFlow Text

    between = tf.strings.split(texts, _GAP)  # [B, None]
    pieces = parts.tokenize(between.values)  # [P, None]
    is_after_gap = tf.ragged.range(between.row_lengths()).values > 0
    first = tf.strings.unicode_decode(tf.strings.substr(between.values, 0, 1, unit="UTF8_CHAR"), "UTF-8")
    begins_with_space = tf.reduce_any(first.with_values(spaces()(first.values) > 0), axis=1)
    # A piece that is the mark of a space alone stands for none where the text goes on right behind the gap.
    is_mark = np.array([piece == UNDERLINE for piece in parts.tokenizer.pieces()])
    first_ids = pieces[:, :1]
    starts_with_mark = tf.reduce_any(first_ids.with_values(tf.gather(is_mark, first_ids.values)), axis=1)
    left_out = tf.cast(is_after_gap & ~begins_with_space & starts_with_mark, tf.int64)
    pieces = sequences_graph.last_pieces(pieces, pieces.row_lengths() - left_out)
    mask = tf.RaggedTensor.from_row_lengths(
        tf.fill([tf.reduce_sum(tf.cast(is_after_gap, tf.int32))], parts.tokenizer.mask_id),
        tf.cast(is_after_gap, tf.int64),
    )
    return between.with_values(tf.concat([mask, pieces], axis=1)).merge_dims(1, 2)


def _filled(parts: Parts, inputs: dict[str, tf.Tensor]) -> Outputs:
    tokenizer = parts.tokenizer
    is_gap = (inputs["input_ids"] == tokenizer.mask_id) & (inputs["input_mask"] > 0)
    gaps = tf.reduce_sum(tf.cast(is_gap, tf.int32), axis=1)
    columns = tf.cast(tf.where(is_gap)[:, 1], tf.int32)
    positions = tf.RaggedTensor.from_row_lengths(columns, gaps).to_tensor(-1)  # [B,G]
    outputs = forward.head_outputs(parts.model, {**inputs, "masked_lm_positions": tf.maximum(positions, 0)})
    logits = outputs["masked_lm_logits"] if isinstance(outputs, dict) else outputs  # [B,G,V]
    is_special = np.isin(np.arange(tokenizer.vocab_size), tokenizer.special_ids)
    likely = tf.where(is_special, 0.0, tf.nn.softmax(logits[:, :, : tokenizer.vocab_size]))
    top_k = min(parts.top_k, tokenizer.vocab_size - len(tokenizer.special_ids))
    probabilities, piece_ids = tf.math.top_k(likely, top_k)
    is_there = (positions >= 0)[:, :, tf.newaxis]
    return {
        "pieces": tf.where(is_there, tf.gather(tf.constant(tokenizer.pieces()), piece_ids), ""),
        "piece_ids": tf.where(is_there, piece_ids, tokenizer.pad_id),
        "probabilities": tf.where(is_there, probabilities, 0.0),
        "positions": positions,
        "gaps": gaps,
    }
