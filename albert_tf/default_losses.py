"""The loss of each kind of head in the form that Keras' `compile` takes, for models that are trained with `fit`.

B examples, S positions, C classes; `task_losses` has the same formulas as functions.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.head_config import MULTI_LABEL, REGRESSION, HeadConfig

IGNORED_TAG = -1  # the label of a position that has no tag


def default_loss(head: HeadConfig) -> tuple[Any, Any]:
    """The loss of a head on its logits, and the weights of its parts (None for a model with one output).

    Labels are integers of the logits' shape without the last dimension: classes [B], choices [B], pieces [B,P]; tags
    [B,S] with -1 where a position has none. A regression takes numbers [B], a multi-label classifier 0 or 1 [B,C], and
    the span heads a dict under the names of their logits: positions `start_logits` and `end_logits` [B], and for SQuAD
    v2 `cls_logits` [B], 1 where there is no answer.

    Raises:
        InputError: the head is for no task.
    """
    if head.kind == "classifier":
        return _of_classifier(head), None
    if head.kind in ("multiple_choice", "masked_lm"):
        return _cross_entropy(), None
    if head.kind == "tagger":
        return _cross_entropy(ignore_class=IGNORED_TAG), None
    if head.kind in ("span", "answerable_span"):
        losses = {"start_logits": _cross_entropy(), "end_logits": _cross_entropy()}
        if head.kind == "answerable_span":
            losses["cls_logits"] = AnswerabilityLoss()
        return losses, dict.fromkeys(losses, 0.5)
    raise InputError(f"a {head.model_class} has no loss of its own: give compile() one")


@tf.keras.utils.register_keras_serializable("albert_tf")
class AnswerabilityLoss(tf.keras.losses.Loss):
    """Sigmoid cross entropy of one logit an example, [B] to [B].

    Keras' own takes the mean over the last dimension, which here is that of the examples: weights of examples have then
    nothing to stand on, and Keras 3, which divides by the replicas where it averages, leaves it undivided.
    """

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        logits = tf.cast(y_pred, tf.float32)
        labels = tf.reshape(tf.cast(y_true, tf.float32), tf.shape(logits))
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)


def _cross_entropy(**arguments: Any) -> Any:
    return tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, **arguments)


def _of_classifier(head: HeadConfig) -> Any:
    if head.problem == MULTI_LABEL:
        return tf.keras.losses.BinaryCrossentropy(from_logits=True)
    if head.problem == REGRESSION:
        return tf.keras.losses.MeanSquaredError()
    return _cross_entropy()
