"""From sequences to predictions: batches through a model, and what a kind of task makes of its outputs.

B rows of a batch, S its padded length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.batches import ROW, Batches, bucket_lengths
from albert_tf.distribution import fitting_batch
from albert_tf.feature_set import FeatureSet
from albert_tf.task_kinds.task_kind import TaskKind
from albert_tf.tasks.examples import Example, Prediction
from albert_tf.tokenizer import Tokenizer
from albert_tf.training_step import distribute, graph, join

Function = Any  # a tf.function


class Predictor:
    """Predicts with one model; what TensorFlow traced for one set of examples serves the next.

    Args:
        model: for the head of `kind`.
        kind: of the task.
        strategy: that of the scope the model was made in; by default none.
        batch_size: rows at a time over all replicas; more where they cannot share so many evenly.
        static: pad every batch to the longest length, as TPUs want it.
        fills: fill the last batch up, so that all have one size; else a batch costs what its rows cost, which suits
            few rows at a time. On one device alone.

    Raises:
        InputError: `batch_size` is below 1.
    """

    def __init__(
        self,
        model: Any,
        kind: TaskKind,
        strategy: tf.distribute.Strategy | None = None,
        *,
        batch_size: int = 32,
        static: bool = False,
        fills: bool = True,
    ):
        self.model = model
        self.kind = kind
        self.strategy = strategy or tf.distribute.get_strategy()
        self.batch_size = fitting_batch(batch_size, self.strategy)
        self.lengths = bucket_lengths(kind.settings["max_seq_length"], static=static)
        self._static = static
        self._fills = fills
        self._functions: dict[tuple, tuple[Function, dict[str, list[int]]]] = {}

    def predict(self, examples: Sequence[Example], tokenizer: Tokenizer) -> list[Prediction]:
        """One prediction for each example, in order."""
        return self.of_features(self.kind.features(examples, tokenizer, training=False), examples)

    def of_features(self, features: FeatureSet, examples: Sequence[Example]) -> list[Prediction]:
        """The same from the features that the kind has made of the examples with `training=False`."""
        return self.kind.predictions(self.outputs(features), features, examples)

    def outputs(self, features: FeatureSet) -> dict[str, list[np.ndarray]]:
        """Name to an array for each row, without padding: what `TaskKind.predictions` takes."""
        most = self.batch_size if self._fills else max(1, min(self.batch_size, len(features)))
        batches = Batches(features, most, self.lengths)
        function, axes = self._function(batches)
        outputs: dict[str, list[np.ndarray]] = {name: [np.zeros(0)] * len(features) for name in axes}
        for batch in batches.evaluation():
            values = join(self.strategy, function(distribute(self.strategy, batch)))
            for at, row in enumerate(batch[ROW]):
                if row < 0:
                    continue
                for name, value in values.items():
                    cut = [slice(None)] * (value.ndim - 1)
                    for axis in axes[name]:
                        cut[axis - 1] = slice(batches.row_lengths[row])
                    outputs[name][row] = value[at][tuple(cut)]
        return outputs

    def _function(self, batches: Batches) -> tuple[Function, dict[str, list[int]]]:
        """Batch to outputs, and of each output the dimensions that are S."""
        signature = batches.signature()
        if not self._fills:
            signature = {name: tf.TensorSpec((None, *spec.shape[1:]), spec.dtype) for name, spec in signature.items()}
        key = tuple((name, *spec.shape.as_list()) for name, spec in sorted(signature.items()))
        if key not in self._functions:
            function = graph(self._replica_outputs, input_signature=[signature])
            outputs = function.get_concrete_function().structured_outputs
            axes = {
                name: [axis for axis, size in enumerate(spec.shape.as_list()) if axis and size is None]
                for name, spec in outputs.items()
            }
            if self._static or self.strategy.num_replicas_in_sync > 1:
                function = graph(self._on_replicas, reduce_retracing=not self._static)
            self._functions[key] = function, axes
        return self._functions[key]

    def _on_replicas(self, batch: Any) -> Any:
        return self.strategy.run(self._replica_outputs, (batch,))

    def _replica_outputs(self, batch: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return self.kind.kept(self.model(self.kind.inputs(batch, False), training=False), batch)
