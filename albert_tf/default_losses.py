"""The loss of each kind of head in the form that Keras' `compile` takes, for models that are trained with `fit`.

B examples, S positions, C classes; `task_losses` has the same formulas as functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.head_config import ANSWERABLE, MULTI_LABEL, REGRESSION, SPAN_KINDS, HeadConfig

IGNORED_TAG = -1  # the label of a position that has no tag
# What the span heads' labels are called, by the logits they are for.
SPAN_LABELS = {"start_logits": "start_positions", "end_logits": "end_positions", "cls_logits": "is_impossible"}


def default_loss(head: HeadConfig) -> tuple[Any, Any]:
    """The loss of a head on its logits, and the weights of its parts (None for a model with one output).

    Labels are integers of the logits' shape without the last dimension: classes [B], choices [B], pieces [B,P]; tags
    [B,S] with -1 where a position has none. A regression takes numbers [B], a multi-label classifier 0 or 1 [B,C], and
    the span heads a dict: `start_positions` and `end_positions` [B], and for SQuAD v2 `is_impossible` [B], 1 where
    there is no answer; the losses, and metrics, go by the logits' names (`SPAN_LABELS`), which labels may have too.

    Raises:
        InputError: the head is for no task.
    """
    if head.kind == "classifier":
        return _of_classifier(head), None
    if head.kind in ("multiple_choice", "masked_lm"):
        return _cross_entropy(), None
    if head.kind == "tagger":
        return _cross_entropy(ignore_class=IGNORED_TAG), None
    if head.kind in SPAN_KINDS:
        losses = {"start_logits": _cross_entropy(), "end_logits": _cross_entropy()}
        if head.kind == ANSWERABLE:
            losses["cls_logits"] = AnswerabilityLoss()
        return losses, dict.fromkeys(losses, 0.5)
    raise InputError(f"a {head.model_class} has no loss of its own: give compile() one")


def by_logits(values: Any, outputs: Mapping[str, Any]) -> Any:
    """Labels of a span head, or their weights, under the names of its logits; what is for no output is left out.

    What is no dict is given back as it is.
    """
    if not isinstance(values, Mapping):
        return values
    logits_of = {label: logits for logits, label in SPAN_LABELS.items()}
    renamed = {logits_of.get(name, name): value for name, value in values.items()}
    return {name: value for name, value in renamed.items() if name in outputs}


def check_span_labels(labels: Any, wanted: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
    """Refuses labels that a span head cannot learn from; `wanted` and `outputs` have the logits' names.

    Raises:
        InputError: the labels are no dict, one is missing, or an input that its logits depend on is.
    """
    names = [SPAN_LABELS.get(name, name) for name in wanted]
    if "end_logits" in wanted and "end_logits" not in outputs:
        raise InputError("start_positions are missing among the inputs: an end is learned given its start")
    if not isinstance(labels, Mapping):
        raise InputError(f"the labels are no dict, but must be one of {', '.join(names)}")
    missing = [SPAN_LABELS.get(name, name) for name in wanted if name not in labels]
    if missing:
        raise InputError(f"the labels have no {', '.join(missing)}: they must be a dict of {', '.join(names)}")


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
