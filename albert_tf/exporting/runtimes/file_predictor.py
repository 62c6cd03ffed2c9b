"""From sequences to predictions through a function of ids, as `albert_tf.predicting` does through a model.

B rows of a batch, S its padded length, K choices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_tf.exporting.runtimes.check_inputs import BATCH_SIZE, Arrays, Function, batches, outputs_of
from albert_tf.feature_set import FeatureSet
from albert_tf.head_config import REGRESSION, SPAN_KINDS
from albert_tf.tasks.examples import Example, Prediction
from albert_tf.tokenizer import Tokenizer


class FilePredictor:
    """Predicts with a function; `predict` and `of_features` are those of `Predictor`.

    Args:
        kind: of the task.
        function: padded batches to what `ids_outputs` names.
        batch_size: rows at a time; None for all there are, which one that packs them wants.
    """

    def __init__(self, kind: Any, function: Function, batch_size: int | None = BATCH_SIZE):
        self._kind = kind
        self._function = function
        self._batch_size = batch_size

    def predict(self, examples: Sequence[Example], tokenizer: Tokenizer) -> list[Prediction]:
        """One prediction for each example, in order."""
        return self.of_features(self._kind.features(examples, tokenizer, training=False), examples)

    def of_features(self, features: FeatureSet, examples: Sequence[Example]) -> list[Prediction]:
        """The same from the features that the kind has made of the examples with `training=False`."""
        kept: dict[str, list[np.ndarray]] = {}
        sizes = features.sizes.reshape(len(features), features.choices).max(axis=1, initial=0)
        for batch in batches(features, self._kind.settings["max_seq_length"], self._batch_size):
            outputs = self._kind.kept(self._model_outputs(outputs_of(self._function, batch), batch), batch)
            for name, values in outputs.items():
                rows = kept.setdefault(name, [np.zeros(0)] * len(features))
                is_long = name in ("start_logits", "end_logits") or self._kind.head.kind == "tagger"
                for row, value in zip(batch["row"], np.asarray(values)):
                    if row >= 0:
                        rows[row] = value[: sizes[row]] if is_long else value
        predictions: list[Prediction] = self._kind.predictions(kept, features, examples)
        return predictions

    def _model_outputs(self, outputs: Arrays, batch: Arrays) -> Any:
        """What the Keras model gives: of one output the array itself."""
        head = self._kind.head
        if head.kind in SPAN_KINDS:
            return outputs
        if head.problem == REGRESSION:
            return outputs["value"][:, np.newaxis]
        if head.kind == "multiple_choice":
            return outputs["logits"].reshape(batch["input_ids"].shape[:2])
        return outputs["logits"]
