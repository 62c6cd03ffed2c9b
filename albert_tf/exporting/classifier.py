"""Texts or pairs to classes, several classes at once, or a number.

B texts, C labels.
"""

from __future__ import annotations

import tensorflow as tf

from albert_tf.exporting import forward
from albert_tf.exporting.parts import HeadSignatures, Outputs, Parts, text_inputs
from albert_tf.head_config import MULTI_LABEL, REGRESSION, HeadConfig
from albert_tf.task_kinds.arrays import label_names


def signatures(parts: Parts) -> HeadSignatures:
    """`outputs_of_logits`; from texts also `is_cut` [B] bool, where a text was longer than the limit."""

    def of_ids(inputs: dict[str, tf.Tensor]) -> Outputs:
        return outputs_of_logits(parts.head, forward.head_outputs(parts.model, inputs))

    def of_texts(*texts: tf.Tensor) -> Outputs:
        packed = parts.pack(*texts)
        return {**of_ids(packed.inputs), "is_cut": packed.is_cut}

    return HeadSignatures(of_ids, None if parts.given_tokenizer is None else of_texts, text_inputs(parts.pairs))


def outputs_of_logits(head: HeadConfig, logits: tf.Tensor) -> Outputs:
    """What a classifier answers, each output with a row for each row of logits [B,C].

    Returns:
        `labels` [B,C] string, the same in every row, and `probabilities` [B,C] float32 in their order; of one class
        out of several also `label` [B] and `probability` [B], the likeliest, and of a multi-label head `is_label` [B,C]
        bool, where the probability is above one half. A regression has `value` [B] float32 alone.
    """
    if head.problem == REGRESSION:
        return {"value": logits[:, 0]}
    names = tf.constant(label_names(head))
    labels = tf.tile(names[tf.newaxis], [tf.shape(logits)[0], 1])
    if head.problem == MULTI_LABEL:
        probabilities = tf.sigmoid(logits)
        return {"labels": labels, "probabilities": probabilities, "is_label": probabilities > 0.5}
    probabilities = tf.nn.softmax(logits)
    best = tf.argmax(logits, axis=-1, output_type=tf.int32)
    return {
        "labels": labels,
        "probabilities": probabilities,
        "label": tf.gather(names, best),
        "probability": tf.reduce_max(probabilities, axis=-1),
    }
