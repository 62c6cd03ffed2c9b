"""Classes, several classes at once, or a number for a text or a pair: as released in run_classifier.py.

B rows of a batch, S its padded length, C labels, N examples.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf import metrics as measures
from albert_tf import sequences, task_losses
from albert_tf.errors import InputError
from albert_tf.feature_set import FeatureSet
from albert_tf.head_config import MULTI_LABEL, REGRESSION, HeadConfig
from albert_tf.probabilities import sigmoid, softmax
from albert_tf.task_kinds.arrays import NO_LABEL, label_id_of, label_names, model_inputs, place_of
from albert_tf.tasks.examples import TextExample, TextPrediction
from albert_tf.tokenizer import Tokenizer

LABEL_IDS = "label_ids"

_ONE_HALF = 0.5
_LEAST_LENGTH = 5  # [CLS] a [SEP] b [SEP]


class TextKind:
    """A `TaskKind` for `TextExample`s; a row of a batch is an example.

    Their labels are `label_ids` in the features: int32 [N], -1 where there is none; float32 [N] of a regression, NaN
    where there is none; float32 [N,C] of a multi-label task, 1 where a label holds and -1 where there is none.

    Args:
        head: a classifier.
        max_seq_length: the most pieces of a sequence.

    Raises:
        InputError: `max_seq_length` leaves no room for a pair.
    """

    def __init__(self, head: HeadConfig, *, max_seq_length: int):
        self.head = head
        self.max_seq_length = sequences.check_length(max_seq_length, _LEAST_LENGTH)
        self.settings: Mapping[str, Any] = {"max_seq_length": max_seq_length}
        self.feature_settings = self.settings
        self._problem = head.problem
        self._labels = label_names(head)
        self._label_ids = {label: number for number, label in enumerate(self._labels)}

    def features(self, examples: Sequence[TextExample], tokenizer: Tokenizer, *, training: bool) -> FeatureSet:
        """See `TaskKind`."""
        labels = self.label_ids(examples, training=training)
        has_pairs = any(example.text_b is not None for example in examples)
        warnings = sequences.warn_of_short_pairs(self.max_seq_length) if has_pairs else ()
        made, cut = sequences.pair_sequences(
            [example.text_a for example in examples],
            [example.text_b for example in examples],
            tokenizer,
            self.max_seq_length,
        )
        return FeatureSet(
            made.input_ids,
            made.sizes,
            made.first_sizes,
            np.arange(len(examples), dtype=np.int32),
            {LABEL_IDS: labels},
            cut=cut,
            warnings=warnings + sequences.warn_of_cut(cut, len(examples), self.max_seq_length),
        )

    def to_learn_from(self, features: FeatureSet, examples: Sequence[TextExample]) -> FeatureSet:
        """See `TaskKind`."""
        self.label_ids(examples, training=True)
        return features

    def inputs(self, batch: Mapping[str, tf.Tensor], training: bool) -> dict[str, tf.Tensor]:
        """See `TaskKind`."""
        del training
        return model_inputs(batch)

    def losses(self, outputs: tf.Tensor, batch: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Logits [B,C] to [B]; 0 where there is no label."""
        labels = batch[LABEL_IDS]
        if self._problem == REGRESSION:
            known = tf.math.is_finite(labels)
            return tf.where(known, task_losses.regression_losses(outputs, tf.where(known, labels, 0.0)), 0.0)
        if self._problem == MULTI_LABEL:
            losses = task_losses.multi_label_losses(outputs, tf.maximum(labels, 0.0))
            return tf.where(labels[:, 0] >= 0, losses, 0.0)
        return tf.where(labels >= 0, task_losses.classification_losses(outputs, tf.maximum(labels, 0)), 0.0)

    def kept(self, outputs: tf.Tensor, batch: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """`logits` [B,C]."""
        del batch
        return {"logits": outputs}

    def predictions(
        self, kept: Mapping[str, Sequence[np.ndarray]], features: FeatureSet, examples: Sequence[TextExample]
    ) -> list[TextPrediction]:
        """See `TaskKind`."""
        del features
        return [self._prediction(example.id, logits) for example, logits in zip(examples, kept["logits"])]

    def scores(
        self, examples: Sequence[TextExample], predictions: Sequence[TextPrediction], metrics: Sequence[str]
    ) -> dict[str, float]:
        """See `TaskKind`."""
        known = [(e, p) for e, p in zip(examples, predictions) if e.label is not None]
        labels = self.label_ids([example for example, _ in known], training=False)
        predicted = self.label_ids([prediction for _, prediction in known], training=False)
        return measures.compute(metrics, labels, predicted)

    def label_ids(self, examples: Sequence[TextExample | TextPrediction], *, training: bool) -> np.ndarray:
        """The labels of examples or predictions as numbers, see the class.

        Raises:
            InputError: a label is missing in training, or is none of the labels.
        """
        missing = next((example for example in examples if example.label is None), None) if training else None
        if missing is not None:
            raise InputError(f"{place_of(missing)}: there is no label, and without one nothing can be learned")
        if self._problem == REGRESSION:
            return np.array([self._number(example) for example in examples], np.float32)
        if self._problem == MULTI_LABEL:
            return np.array([self._several(example) for example in examples], np.float32).reshape(-1, len(self._labels))
        return np.array([self._class(example) for example in examples], np.int32)

    def _class(self, example: TextExample | TextPrediction) -> int:
        label = example.label
        return NO_LABEL if label is None else label_id_of(label, self._label_ids, place_of(example))

    def _several(self, example: TextExample | TextPrediction) -> list[float]:
        if example.label is None:
            return [NO_LABEL] * len(self._labels)
        if isinstance(example.label, str) or not isinstance(example.label, Sequence):
            raise InputError(f"{place_of(example)}: the labels are {example.label!r}, but must be a list of labels")
        row = [0.0] * len(self._labels)
        for label in example.label:
            row[label_id_of(label, self._label_ids, place_of(example))] = 1.0
        return row

    def _number(self, example: TextExample | TextPrediction) -> float:
        if example.label is None:
            return math.nan
        try:
            number = float(example.label)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise InputError(f"{place_of(example)}: the label is {example.label!r}, but must be a number")
        return number

    def _prediction(self, id_: str, logits: np.ndarray) -> TextPrediction:
        logits = np.asarray(logits, np.float64)
        if self._problem == REGRESSION:
            return TextPrediction(id_, float(logits[0]))
        if self._problem == MULTI_LABEL:
            probabilities = sigmoid(logits)
            chosen = tuple(label for label, p in zip(self._labels, probabilities) if p > _ONE_HALF)
            return TextPrediction(id_, chosen, probabilities.astype(np.float32))
        label = self._labels[int(np.argmax(logits))]
        return TextPrediction(id_, label, softmax(logits).astype(np.float32))
