"""The Keras model behind `Pipeline.fit`: a model of a task that learns by its kind's losses.

B rows of a batch, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional

import numpy as np
import tensorflow as tf

from albert_tf import fused, optimization
from albert_tf.pretrained_model import PretrainedModel
from albert_tf.task_kinds.task_kind import EXAMPLE_WEIGHT, TaskKind
from albert_tf.training_step import CLIP_NORM, all_reduce, dense_gradients, graph, replica_seed

Batch = Mapping[str, tf.Tensor]
# (outputs, batch) -> labels and probabilities, what Keras' metrics compare: [B] and [B,C], or of one shape
Observe = Optional[Callable[[Any, Batch], "tuple[tf.Tensor, tf.Tensor]"]]


class Learner(tf.keras.Model):
    """Trained on batches as `batches.Batches` cuts them; `fit`, callbacks and strategies are Keras' own.

    The update is that of `finetuning_step`: the loss is the mean over the real rows of the global batch, gradients are
    summed in a fixed order, dropout is drawn from (seed, step, replica). So equal seeds give equal trainings.

    Args:
        model: for the head of `kind`.
        kind: its losses and inputs.
        observe: for Keras' metrics; None where there can be none.

    Attributes:
        seed: of the dropout; after a change `make_train_function(force=True)` is needed.
    """

    def __init__(self, model: PretrainedModel, kind: TaskKind, observe: Observe = None):
        super().__init__(name="learner", dtype="float32")
        self.model = model
        self.seed = 0
        self._kind = kind
        self._observe = observe
        self._clip_norm = CLIP_NORM
        self._mean_loss = tf.keras.metrics.Mean(name="loss")
        self.built = True

    def compile_for(
        self, optimizer: Any, metrics: Sequence[Any], clip_norm: float, filling: Mapping[str, np.ndarray]
    ) -> None:
        """Keras' `compile`, with all state made; in the scope of the strategy.

        Args:
            optimizer: any Keras optimizer.
            metrics: Keras metrics of what `observe` gives, weighted by `example_weight`.
            clip_norm: largest global norm of the gradients.
            filling: a batch of rows that all have the weight 0.
        """
        self.compile(optimizer=optimizer, weighted_metrics=list(metrics) or None, jit_compile=False)
        self._clip_norm = clip_norm
        self.optimizer.build(self._variables())
        strategy = tf.distribute.get_strategy()
        if strategy.num_replicas_in_sync > 1:  # Keras 3 makes the metrics' state of distributed batches, and fails
            batch = {name: tf.convert_to_tensor(value) for name, value in filling.items()}
            graph(lambda: strategy.run(self.test_step, args=(batch,)))()

    @property
    def metrics(self) -> list[Any]:
        """What Keras shows, and resets at the beginning of an epoch; its own mean loss is never fed."""
        return [self._mean_loss, *(metric for metric in super().metrics if metric.name != self._mean_loss.name)]

    def call(self, batch: Batch, training: bool = False) -> Any:
        """The outputs of the model for a batch."""
        return self.model(self._kind.inputs(batch, training), training=training)

    def train_step(self, batch: Batch) -> dict[str, tf.Tensor]:
        """One update, in a replica context."""
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        seed = replica_seed(self.seed, self.optimizer.iterations)
        rows = tf.maximum(all_reduce(tf.reduce_sum(batch[EXAMPLE_WEIGHT]), replicas), 1.0)
        with fused.one_pass():
            outputs = self.model(self._kind.inputs(batch, True), training=True, dropout_seed=seed)
            losses = self._kind.losses(outputs, batch)
        loss = tf.reduce_sum(batch[EXAMPLE_WEIGHT] * losses) / rows
        gradients = all_reduce(dense_gradients(loss, self._variables()), replicas)
        clipped, _ = optimization.clip_by_global_norm(gradients, self._clip_norm)
        optimization.apply_summed_gradients(self.optimizer, clipped, self._variables())
        return self._report(batch, outputs, losses)

    def test_step(self, batch: Batch) -> dict[str, tf.Tensor]:
        """The losses and metrics of a batch of examples with labels, in a replica context."""
        outputs = self.model(self._kind.inputs(batch, True), training=False)
        return self._report(batch, outputs, self._kind.losses(outputs, batch))

    def _report(self, batch: Batch, outputs: Any, losses: tf.Tensor) -> dict[str, tf.Tensor]:
        weights = batch[EXAMPLE_WEIGHT]
        self._mean_loss.update_state(losses, sample_weight=weights)
        if self._observe is not None:
            self.compute_metrics(batch, *self._observe(outputs, batch), weights)
        return self.get_metrics_result()  # type: ignore[no-any-return]

    def _variables(self) -> list[Any]:
        return list(self.model.named_variables().values())
