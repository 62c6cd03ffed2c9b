"""What all objects for strings share: model, tokenizer and kind of task; how they learn, answer and are kept."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from albert_tf import finetuning_source, metrics, optimization, sequences, task_model
from albert_tf.batches import Batches, bucket_lengths
from albert_tf.distribution import fitting_batch, per_replica_batch
from albert_tf.errors import InputError
from albert_tf.feature_set import FeatureSet
from albert_tf.formats.reading import read_checkpoint
from albert_tf.head_config import HeadConfig
from albert_tf.pipelines.learner import Batch, Learner
from albert_tf.predicting import Predictor
from albert_tf.pretrained_model import PretrainedModel
from albert_tf.schedules import LearningRateSchedule
from albert_tf.task_file import PAIRS
from albert_tf.task_kinds import catalogue
from albert_tf.task_kinds.task_kind import TaskKind
from albert_tf.tasks.examples import Example
from albert_tf.tasks.recipes import Recipe, find_recipe
from albert_tf.tokenizer import Tokenizer
from albert_tf.training_step import CLIP_NORM

PREDICTION_BATCH = 32
_HOLDS_AFTER_TRAINING = ("task", "title", "metrics", PAIRS)  # scores and the like were those of other weights


class Pipeline:
    """A model of a task with all that it takes to go from strings to answers.

    Made under a `tf.distribute` strategy's scope it learns and answers on all of its replicas.

    Args:
        model, tokenizer, kind: what belongs together.
        about: JSON values that `save` keeps beside them.
    """

    heads: ClassVar[tuple[str, ...]]  # kinds of heads that a subclass works with
    begins_with: ClassVar[str] = "new_head=True"  # the argument of `from_pretrained` for a new head
    recipe_name: ClassVar[str]  # in `tasks.recipes`: where rate, warm-up, dropout and lengths come from
    metric_names: ClassVar[tuple[str, ...]] = tuple(metrics.METRICS)

    def __init__(
        self, model: PretrainedModel, tokenizer: Tokenizer, kind: TaskKind, about: Mapping[str, Any] | None = None
    ):
        if kind.head.kind not in self.heads:
            raise InputError(
                f"{type(self).__name__} works with a head of the kind {' or '.join(self.heads)}, but this model's is "
                f"{kind.head.kind!r}"
            )
        self.model = model
        self.tokenizer = tokenizer
        self.kind = kind
        self.about = dict(about or {})
        self.recipe: Recipe = find_recipe(self.recipe_name, model.config)
        self._strategy = tf.distribute.get_strategy()
        self._learner = Learner(model, kind, self._observed if self._can_observe() else None)
        self._predictors: dict[int, Predictor] = {}
        self.compile()

    @classmethod
    def _load(cls, path: str | os.PathLike[str], settings: Mapping[str, Any]) -> Any:
        """The fine-tuned model at `path`, with some settings of its kind changed."""
        try:
            return cls(*task_model.load(path, **settings))
        except task_model.NoHead as error:
            raise InputError(
                f"{error}; {cls.__name__}.from_pretrained(..., {cls.begins_with}) begins with a head that has yet to "
                "learn"
            ) from error

    @classmethod
    def _begin(
        cls, path: str | os.PathLike[str], head: HeadConfig, tokenizer: Tokenizer | None, settings: Mapping[str, Any]
    ) -> Any:
        """An object that has yet to learn: the encoder of any ALBERT, its head too where that is the very same.

        Raises:
            InputError: nothing can be read there, it does not tell its sizes or its vocabulary, or it has fewer
                positions than `max_seq_length`.
        """
        given = os.fspath(path)
        checkpoint = read_checkpoint(task_model.find(given) or given)
        if checkpoint.config is None:
            raise InputError(f"{given} does not tell the sizes of its model: put an albert_config.json beside it")
        if tokenizer is None:
            if checkpoint.vocabulary is None:
                raise InputError(f"{given} has no vocabulary beside it: give tokenizer=albert_tf.load_tokenizer(FILE)")
            tokenizer = checkpoint.vocabulary.tokenizer()
        tokenizer.check_config(checkpoint.config.vocab_size)
        recipe = find_recipe(cls.recipe_name, checkpoint.config)
        kind = catalogue.kind_from_settings(head, {"max_seq_length": recipe.max_seq_length, **settings})
        sequences.check_positions(kind.settings["max_seq_length"], checkpoint.config.max_position_embeddings)
        source = finetuning_source.Source(checkpoint.config, tokenizer, checkpoint)
        model = finetuning_source.make_model(source, head, recipe.config(checkpoint.config))
        return cls(model, tokenizer, kind)

    def compile(
        self,
        optimizer: Any = None,
        *,
        learning_rate: float | None = None,
        metrics: Sequence[Any] | None = None,
        clip_norm: float = CLIP_NORM,
    ) -> None:
        """Says how to learn; what is not said, and what is said of an object that was never compiled, is the recipe's.

        Args:
            optimizer: any Keras optimizer. By default AdamW as released, whose rate rises in the recipe's share of the
                steps and then falls to zero over those of one `fit`; each `fit` begins anew.
            learning_rate: that optimizer's peak; by default the recipe's for a model of this size.
            metrics: names of metrics, computed over all examples at once as the official scripts do; and Keras
                metrics, computed batch by batch in training too. By default those of the task.
            clip_norm: largest global norm of the gradients.

        Raises:
            InputError: there is no such metric, or a rate is given for an optimizer that has one.
        """
        if optimizer is not None and learning_rate is not None:
            raise InputError("learning_rate is the default optimizer's: give the rate to the optimizer itself")
        of_task = self.about.get("metrics") or self._default_metrics()
        chosen = list(of_task if metrics is None else metrics)
        self._names = [metric for metric in chosen if isinstance(metric, str)]
        unknown = [name for name in self._names if self.metric_names and name not in self.metric_names]
        if unknown:
            raise InputError(f"there is no metric {unknown[0]!r}: there are {', '.join(self.metric_names)}")
        self._keras_metrics = [metric for metric in chosen if not isinstance(metric, str)]
        if self._keras_metrics and not self._can_observe():
            raise InputError(f"{type(self).__name__} takes metrics by name, not Keras' {self._keras_metrics[0]!r}")
        self._optimizer = optimizer
        self._learning_rate = learning_rate
        self._clip_norm = clip_norm
        self._is_compiled = False

    def _default_metrics(self) -> Sequence[str]:
        raise NotImplementedError

    def _can_observe(self) -> bool:
        """Whether Keras' metrics can be computed."""
        return False

    def _observed(self, outputs: Any, batch: Batch) -> tuple[tf.Tensor, tf.Tensor]:
        """Labels and probabilities for Keras' metrics."""
        raise NotImplementedError

    def _training_metrics(self) -> list[Any]:
        """Keras metrics that show in training what a name among the metrics shows in validation."""
        return []

    def fit_examples(
        self,
        examples: Sequence[Example],
        validation: Sequence[Example] | None = None,
        *,
        epochs: int | None = None,
        batch_size: int | None = None,
        seed: int = 0,
        callbacks: Sequence[Any] = (),
        verbose: Any = "auto",
    ) -> Any:
        """Learns; equal seeds give equal trainings (a new head's is Keras' own, `tf.keras.utils.set_random_seed`).

        Args:
            examples: as a task's `read` gives them, with labels.
            validation: others to be measured on after each epoch.
            epochs: how often all examples are passed; by default the recipe's, and more often where they are few.
            batch_size: rows of one update, over all replicas; by default the recipe's.
            seed: of order and dropout.
            callbacks: Keras callbacks, ModelCheckpoint with `save_weights_only` alone; they see `loss`, and with
                validation `val_loss` and `val_<metric>`.
            verbose: as for Keras' `fit`.

        Returns:
            Keras' History.

        Raises:
            InputError: a label is missing or wrong, there is nothing to learn from, the replicas cannot share a batch
                evenly, or a callback would save the whole Keras model.
        """
        _check_callbacks(callbacks)
        if self.model.get_config()["policy"] == "mixed_float16":
            raise InputError(
                "this model computes in float16, in which small gradients vanish unless the loss is scaled, and fit "
                "has no loss scale: load it under the policy mixed_bfloat16 or float32 to train it (it can predict as "
                "it is), or use albert_tf.run_finetuning --mixed_precision=float16, which has one"
            )
        batch_size = batch_size or self.recipe.train_batch_size
        batches = self._batches(examples, batch_size)
        if not len(batches.features):
            raise InputError("there is nothing to learn from: no example gave a sequence")
        steps = batches.steps_per_epoch
        if epochs is None:
            of_recipe = self.recipe.steps_for(len(examples), len(batches.features), batch_size)
            epochs = math.ceil(of_recipe.num_train_steps / steps)
        self.about = {name: value for name, value in self.about.items() if name in _HOLDS_AFTER_TRAINING}
        learner = self._compiled(batches, epochs * steps)
        if learner.seed != seed:
            learner.seed = seed
            learner.make_train_function(force=True)
        arguments: dict[str, Any] = {}
        if validation:
            labelled, score = self._measures(validation, batch_size)
            arguments["validation_data"] = _dataset(labelled)
            callbacks = [_Scores(score), *callbacks]
        return learner.fit(
            batches.training_dataset(seed=seed),
            epochs=epochs,
            steps_per_epoch=steps,
            shuffle=False,  # the batches are
            callbacks=list(callbacks),
            verbose=verbose,
            **arguments,
        )

    def evaluate_examples(self, examples: Sequence[Example], *, batch_size: int = PREDICTION_BATCH) -> dict[str, float]:
        """The loss, Keras' metrics, and the scores by name."""
        batch_size = fitting_batch(batch_size, self._strategy)
        batches, score = self._measures(examples, batch_size)
        measured = self._compiled(batches).evaluate(_dataset(batches), verbose=0, return_dict=True)
        return {**{name: float(value) for name, value in measured.items()}, **score()}

    def predict_examples(self, examples: Sequence[Example], *, batch_size: int = PREDICTION_BATCH) -> list[Any]:
        """One `Prediction` for each example, in order."""
        return self._predictor(batch_size).predict(examples, self.tokenizer) if examples else []

    def _predictor(self, batch_size: int) -> Predictor:
        if batch_size not in self._predictors:
            self._predictors[batch_size] = Predictor(self.model, self.kind, self._strategy, batch_size=batch_size)
        return self._predictors[batch_size]

    def _measures(self, examples: Sequence[Example], batch_size: int) -> tuple[Batches, Callable[[], dict[str, float]]]:
        """Of examples with labels, tokenised once: batches to measure the loss on, and what gives the scores by name.

        Raises:
            InputError: a label is missing or wrong, or the replicas cannot share a batch evenly.
        """
        per_replica_batch(batch_size, self._strategy)
        predictor, names = self._predictor(batch_size), self._names
        features = self.kind.features(examples, self.tokenizer, training=False)
        batches = self._cut(self.kind.to_learn_from(features, examples), batch_size)
        return batches, lambda: self.kind.scores(examples, predictor.of_features(features, examples), names)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Writes the directory that `from_pretrained` and the commands read; an earlier one is replaced.

        Raises:
            InputError: the directory holds other things, or cannot be written.
        """
        task_model.save(os.fspath(directory), self.model, self.tokenizer, self.kind, self.about)

    def _batches(self, examples: Sequence[Example], batch_size: int) -> Batches:
        """Of examples with labels.

        Raises:
            InputError: a label is missing or wrong, or the replicas cannot share a batch evenly.
        """
        per_replica_batch(batch_size, self._strategy)
        return self._cut(self.kind.features(examples, self.tokenizer, training=True), batch_size)

    def _cut(self, features: FeatureSet, batch_size: int) -> Batches:
        return Batches(features, batch_size, bucket_lengths(self.kind.settings["max_seq_length"]))

    def _compiled(self, batches: Batches, total_steps: int | None = None) -> Learner:
        """The learner with its optimizer; the default one is made anew for a training of so many steps."""
        if not self._is_compiled or (self._optimizer is None and total_steps is not None):
            with self._strategy.scope():
                optimizer = self._optimizer or self._default_optimizer(total_steps or 1)
                metrics = [*self._training_metrics(), *self._keras_metrics]
                self._learner.compile_for(optimizer, metrics, self._clip_norm, batches.cut(np.zeros(0, np.int32)))
            self._is_compiled = True
        return self._learner

    def _default_optimizer(self, total_steps: int) -> Any:
        rate = self.recipe.learning_rate if self._learning_rate is None else self._learning_rate
        schedule = LearningRateSchedule(rate, total_steps, round(self.recipe.warmup_proportion * total_steps))
        return optimization.create_optimizer("adamw", schedule, self.model.named_variables())


def _check_callbacks(callbacks: Sequence[Any]) -> None:
    for callback in callbacks:
        if isinstance(callback, tf.keras.callbacks.ModelCheckpoint) and not callback.save_weights_only:
            raise InputError(
                "ModelCheckpoint would save the whole model, which only save() can: give it save_weights_only=True, or "
                "EarlyStopping(restore_best_weights=True) in its place and call save() after fit"
            )


class _Scores(tf.keras.callbacks.Callback):
    """Adds the scores by name to what Keras tells of validation, before any other callback looks at it."""

    def __init__(self, score: Callable[[], dict[str, float]]):
        super().__init__()
        self._score = score

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if logs is not None:
            logs.update({f"val_{name}": value for name, value in self._score().items()})


def _dataset(batches: Batches) -> tf.data.Dataset:
    """Every row once; Keras asks a dataset for its size."""
    return batches.evaluation_dataset().apply(tf.data.experimental.assert_cardinality(batches.steps_per_epoch))
