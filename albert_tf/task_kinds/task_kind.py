"""The interface that fine-tuning, prediction and the objects for notebooks ask of every kind of task.

B rows of a batch, S its padded length, K choices, C labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from albert_tf.feature_set import FeatureSet
from albert_tf.head_config import HeadConfig
from albert_tf.tasks.examples import Example, Prediction
from albert_tf.tokenizer import Tokenizer

EXAMPLE_WEIGHT = "example_weight"  # float32 [B] in a batch: 0 for a row that only fills it


class TaskKind(Protocol):
    """A kind of task with the settings it was made with (longest length, stride, …).

    Attributes:
        head: of the model.
        settings: JSON values of all that it was made with beside the head, to be kept beside the model:
            `type(kind)(kind.head, **kind.settings)` is the same kind again.
        feature_settings: those of them that decide `features`, for the key of a cache.
    """

    head: HeadConfig
    settings: Mapping[str, Any]
    feature_settings: Mapping[str, Any]

    def features(self, examples: Sequence[Example], tokenizer: Tokenizer, *, training: bool) -> FeatureSet:
        """Tokenises; with `training`, examples must have labels, and what cannot be learned from is left out.

        Raises:
            InputError: an example's label is missing in training or none of the labels; the message names its place.
        """

    def to_learn_from(self, features: FeatureSet, examples: Sequence[Example]) -> FeatureSet:
        """Of the features that were made of these examples with `training=False`, what can be learned from.

        Raises:
            InputError: an example's label is missing.
        """

    def inputs(self, batch: Mapping[str, tf.Tensor], training: bool) -> dict[str, tf.Tensor]:
        """What the model reads of a batch as `batches` cuts them: ids, mask and segments, and what this head needs."""

    def losses(self, outputs: Any, batch: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The model's outputs and the batch to float32 [B], one loss for each row; `task_losses` has the formulas."""

    def kept(self, outputs: Any, batch: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The outputs that `predictions` needs, each [B, …]; a dimension S is the last one or, with C, before it."""

    def predictions(
        self, kept: Mapping[str, Sequence[np.ndarray]], features: FeatureSet, examples: Sequence[Example]
    ) -> list[Prediction]:
        """One prediction for each example, in order.

        Args:
            kept: name to one array for each of the `len(features)` rows, in the order of the rows, cut to the row's
                own length where there was a dimension S.
            features: of these examples, made with `training=False`.
            examples: the examples.
        """

    def scores(
        self, examples: Sequence[Example], predictions: Sequence[Prediction], metrics: Sequence[str]
    ) -> dict[str, float]:
        """Metric to value, as fractions of 1, over examples with labels; with groups also "accuracy/middle" and such.

        Kinds with more to tell (a best threshold) add further names.
        """
