"""Masked-LM and sentence-order losses as sums and counts, weighted over the global batch in one place.

A replica sees a part of the batch, and a micro-batch a part of that. Means of means would depend on the division, so
every function here gives a sum; the denominators come from the labels of the whole batch, before the backward pass:

    loss = sum(w * l) / (sum(w) + 1e-5) + sum(l_sentence) / B        (paper section 3.1; released run_pretraining.py)

Letters: B examples, P prediction slots, V vocabulary. Float32 throughout, static shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import tensorflow as tf

from albert_tf import record_spec

# The released denominator: a batch without a masked piece has loss 0.
MASKED_LM_EPSILON = 1e-5


class LossDenominators(NamedTuple):
    """What the sums are divided by; add those of all micro-batches and replicas. Float32 scalars."""

    masked_lm: tf.Tensor  # sum of the prediction weights
    sentence_order: tf.Tensor  # number of examples


class LossSums(NamedTuple):
    """Sums over some examples; add those of all micro-batches and replicas. Float32 scalars."""

    masked_lm_loss: tf.Tensor
    masked_lm_correct: tf.Tensor
    masked_lm_weight: tf.Tensor
    sentence_order_loss: tf.Tensor
    sentence_order_correct: tf.Tensor
    sentence_order_weight: tf.Tensor


def _cross_entropy(logits: tf.Tensor, labels: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    # A label without weight may be anything; out of the range it would give NaN, and NaN times 0 stays NaN.
    labels = tf.where(weights > 0.0, labels, tf.zeros_like(labels))
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.cast(logits, tf.float32))


def masked_lm_loss_sum(logits: tf.Tensor, ids: tf.Tensor, weights: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """(sum of w * cross entropy, sum of w) for logits [B,P,V], ids [B,P] integer, weights [B,P] float."""
    weights = tf.cast(weights, tf.float32)
    return tf.reduce_sum(weights * _cross_entropy(logits, ids, weights)), tf.reduce_sum(weights)


def masked_lm_accuracy_sum(logits: tf.Tensor, ids: tf.Tensor, weights: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """(sum of w where the largest logit is the masked piece, sum of w); arguments as in `masked_lm_loss_sum`."""
    weights = tf.cast(weights, tf.float32)
    return tf.reduce_sum(weights * _hits(logits, ids)), tf.reduce_sum(weights)


def sentence_order_loss_sum(
    logits: tf.Tensor, labels: tf.Tensor, example_weights: tf.Tensor | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
    """(sum of cross entropy, number of examples) for logits [B,2], labels [B] or [B,1] integer.

    `example_weights` [B], 1 or 0, leaves out the examples that only fill a batch.
    """
    labels, weights = _sentence_labels(logits, labels, example_weights)
    return tf.reduce_sum(weights * _cross_entropy(logits, labels, weights)), tf.reduce_sum(weights)


def sentence_order_accuracy_sum(
    logits: tf.Tensor, labels: tf.Tensor, example_weights: tf.Tensor | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
    """(number right, number of examples); arguments as in `sentence_order_loss_sum`."""
    labels, weights = _sentence_labels(logits, labels, example_weights)
    return tf.reduce_sum(weights * _hits(logits, labels)), tf.reduce_sum(weights)


def _sentence_labels(
    logits: tf.Tensor, labels: tf.Tensor, example_weights: tf.Tensor | None
) -> tuple[tf.Tensor, tf.Tensor]:
    labels = tf.reshape(labels, tf.shape(logits)[:1])
    if example_weights is None:
        return labels, tf.ones_like(labels, tf.float32)
    return labels, tf.cast(tf.reshape(example_weights, tf.shape(labels)), tf.float32)


def _hits(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.equal(tf.argmax(logits, axis=-1, output_type=labels.dtype), labels), tf.float32)


def pretraining_denominators(
    labels: Mapping[str, tf.Tensor], example_weights: tf.Tensor | None = None
) -> LossDenominators:
    """The denominators of some examples, from their record features alone (`record_spec` names)."""
    sentence_labels = labels[record_spec.SENTENCE_ORDER_LABEL]
    if example_weights is None:
        examples = tf.cast(tf.shape(sentence_labels)[0], tf.float32)
    else:
        examples = tf.reduce_sum(tf.cast(example_weights, tf.float32))
    return LossDenominators(
        masked_lm=tf.reduce_sum(tf.cast(labels[record_spec.MASKED_LM_WEIGHTS], tf.float32)), sentence_order=examples
    )


def pretraining_sums(
    outputs: Mapping[str, tf.Tensor],
    labels: Mapping[str, tf.Tensor],
    example_weights: tf.Tensor | None = None,
) -> LossSums:
    """All sums of some examples.

    Args:
        outputs: `masked_lm_logits` [B,P,V] and `sentence_order_logits` [B,2].
        labels: the record features `masked_lm_ids` and `masked_lm_weights` [B,P], `sentence_order_label` [B] or [B,1].
        example_weights: [B], 1 or 0; an example of weight 0 needs masked_lm_weights of 0 as well.
    """
    masked = (
        outputs["masked_lm_logits"],
        labels[record_spec.MASKED_LM_IDS],
        labels[record_spec.MASKED_LM_WEIGHTS],
    )
    sentence = (outputs["sentence_order_logits"], labels[record_spec.SENTENCE_ORDER_LABEL], example_weights)
    masked_loss, masked_weight = masked_lm_loss_sum(*masked)
    masked_correct, _ = masked_lm_accuracy_sum(*masked)
    sentence_loss, sentence_weight = sentence_order_loss_sum(*sentence)
    sentence_correct, _ = sentence_order_accuracy_sum(*sentence)
    return LossSums(masked_loss, masked_correct, masked_weight, sentence_loss, sentence_correct, sentence_weight)


def pretraining_loss(sums: LossSums, denominators: LossDenominators, sentence_objective: bool = True) -> tf.Tensor:
    """This part's share of the batch's loss: the shares of all parts add up to it, and so do their gradients."""
    loss = sums.masked_lm_loss / (denominators.masked_lm + MASKED_LM_EPSILON)
    if not sentence_objective:
        return loss
    return loss + tf.math.divide_no_nan(sums.sentence_order_loss, denominators.sentence_order)


def pretraining_metrics(sums: LossSums) -> dict[str, tf.Tensor]:
    """Loss and accuracy of both objectives from sums over all examples; 0 where there is nothing to count."""
    masked_weight = sums.masked_lm_weight + MASKED_LM_EPSILON
    return {
        "masked_lm_loss": sums.masked_lm_loss / masked_weight,
        "masked_lm_accuracy": sums.masked_lm_correct / masked_weight,
        "sentence_order_loss": tf.math.divide_no_nan(sums.sentence_order_loss, sums.sentence_order_weight),
        "sentence_order_accuracy": tf.math.divide_no_nan(sums.sentence_order_correct, sums.sentence_order_weight),
    }
