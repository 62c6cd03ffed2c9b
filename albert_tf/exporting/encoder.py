"""Texts to vectors.

B texts, S the padded length, H hidden size.
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from albert_tf.exporting import forward
from albert_tf.exporting.parts import HeadSignatures, Outputs, Parts, text_inputs


def signatures(parts: Parts) -> HeadSignatures:
    """From ids all vectors; from texts `pooled_output` [B,H] (without a pooler `sequence_output`) and `is_cut` [B]."""

    def of_texts(*texts: tf.Tensor) -> Outputs:
        outputs = vectors_of_texts(parts)(*texts)
        left_out = ("sequence_output", "input_mask") if "pooled_output" in outputs else ()
        return {name: value for name, value in outputs.items() if name not in left_out}

    return HeadSignatures(
        lambda inputs: forward.encoder_outputs(parts.model, inputs),
        None if parts.given_tokenizer is None else of_texts,
        text_inputs(parts.pairs),
    )


def vectors(parts: Parts) -> HeadSignatures:
    """The signature `embeddings`: `sequence_output` [B,S,H] and, where there is a pooler, `pooled_output` [B,H].

    From texts also `input_mask` [B,S] int32, 1 on pieces and 0 on padding, and `is_cut` [B] bool.
    """
    return HeadSignatures(
        lambda inputs: forward.encoder_outputs(parts.model, inputs),
        None if parts.given_tokenizer is None else vectors_of_texts(parts),
        text_inputs(parts.pairs),
    )


def vectors_of_texts(parts: Parts) -> Callable[..., Outputs]:
    """The function of `vectors` for texts."""

    def of_texts(*texts: tf.Tensor) -> Outputs:
        packed = parts.pack(*texts)
        outputs = forward.encoder_outputs(parts.model, packed.inputs)
        return {**outputs, "input_mask": packed.inputs["input_mask"], "is_cut": packed.is_cut}

    return of_texts
