"""The losses of fine-tuning, as released: one value for each example, whose mean is the loss of a batch.

Letters: B examples, S positions, C classes or choices. Float32 throughout.
"""

from __future__ import annotations

import tensorflow as tf


def classification_losses(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Cross entropy: logits [B,C], labels [B] or [B,1] integer, to [B] (released run_classifier.py and run_race.py)."""
    labels = tf.reshape(labels, tf.shape(logits)[:1])
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.cast(logits, tf.float32))


def regression_losses(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Squared error on the label as it is: logits [B,1], labels [B] or [B,1], to [B] (STS-B in run_classifier.py)."""
    predictions = tf.cast(tf.squeeze(logits, axis=-1), tf.float32)
    return tf.square(predictions - tf.reshape(tf.cast(labels, tf.float32), tf.shape(predictions)))


def multi_label_losses(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Sigmoid cross entropy, the mean over the labels: logits [B,C], labels [B,C] of 0 and 1, to [B].

    As Hugging Face's multi-label classification, whose loss is the mean over both dimensions.
    """
    labels = tf.cast(labels, tf.float32)
    return tf.reduce_mean(
        tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=tf.cast(logits, tf.float32)), axis=-1
    )


def tagging_losses(logits: tf.Tensor, labels: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Cross entropy of tags, the mean over the positions that count: to [B], 0 where a row has none.

    Args:
        logits: [B,S,C].
        labels: [B,S] integer, 0 to C - 1 everywhere.
        weights: [B,S], 1 at the positions that count, else 0.
    """
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.cast(logits, tf.float32))
    weights = tf.cast(weights, tf.float32)
    return tf.math.divide_no_nan(tf.reduce_sum(weights * losses, axis=-1), tf.reduce_sum(weights, axis=-1))


def span_losses(
    start_logits: tf.Tensor, end_logits: tf.Tensor, start_positions: tf.Tensor, end_positions: tf.Tensor
) -> tf.Tensor:
    """Half the cross entropy of the start and half that of the end: logits [B,S], positions [B] or [B,1], to [B]."""
    return 0.5 * (
        classification_losses(start_logits, start_positions) + classification_losses(end_logits, end_positions)
    )


def answerable_span_losses(
    start_logits: tf.Tensor,
    end_logits: tf.Tensor,
    cls_logits: tf.Tensor,
    start_positions: tf.Tensor,
    end_positions: tf.Tensor,
    is_impossible: tf.Tensor,
) -> tf.Tensor:
    """`span_losses` plus half the sigmoid cross entropy of "there is no answer" (released squad_utils.py).

    Args:
        start_logits, end_logits: [B,S], masked.
        cls_logits: [B].
        start_positions, end_positions: [B] or [B,1] integer, both 0 where there is no answer.
        is_impossible: [B] or [B,1], 1 where there is no answer.

    Returns:
        [B].
    """
    labels = tf.reshape(tf.cast(is_impossible, tf.float32), tf.shape(cls_logits))
    answerability = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=tf.cast(cls_logits, tf.float32))
    return span_losses(start_logits, end_logits, start_positions, end_positions) + 0.5 * answerability
