"""The models of tasks: the encoder with one head for masked pieces, classes, choices, answer spans or tags.

Letters: B examples, S positions, P predictions, K choices, C classes, V vocabulary. A model with one output gives a
tensor, so that it can be compiled with any Keras loss; one with several gives a dict. Every logit is float32.

In all of them the inputs are those of `AlbertModel`, and `training` and `dropout_seed` mean the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.default_losses import by_logits, check_span_labels, default_loss
from albert_tf.errors import InputError
from albert_tf.head_config import HeadConfig
from albert_tf.heads import MaskedLMHead
from albert_tf.layers import drawn_seed, dropout_seeds
from albert_tf.models import AlbertModel
from albert_tf.pretrained_model import Inputs, Outputs, PretrainedModel, index_input
from albert_tf.task_heads import AnswerableSpanHead, ClassifierHead, SpanHead, TaggerHead


class _TaskModel(PretrainedModel):
    """An encoder, with a pooler where the head stands on it, and one head behind a dropout of its own."""

    def __init__(self, config: AlbertConfig, head: HeadConfig | None, name: str, **kwargs: Any):
        super().__init__(config, head, name=name, **kwargs)
        self.albert = AlbertModel(config, with_pooler=self.head.has_pooler)

    def compile(self, optimizer: Any, loss: Any = "auto", **arguments: Any) -> None:
        """Keras' `compile`; the loss need not be told, but the optimizer must.

        Args:
            optimizer: such as `finetuning_adamw`; Keras' own default is too fast for weights that know something.
            loss: "auto" is the head's own, `default_losses.default_loss`.
            **arguments: the others of Keras' `compile`.
        """
        if isinstance(loss, str) and loss == "auto":
            loss, arguments["loss_weights"] = default_loss(self.head)
        super().compile(optimizer=optimizer, loss=loss, **arguments)

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles a loaded model as it was when it was saved; Keras leaves that to a class with its own `compile`."""
        self.compile(**tf.keras.utils.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def _num_labels(self) -> int:
        assert self.head.num_labels is not None  # HeadConfig has seen to it
        return self.head.num_labels

    def _encode(self, inputs: Inputs, training: bool | None, seed: tf.Tensor | None) -> tuple[Outputs, Any]:
        """The outputs of `AlbertModel`, and the seed of the head's dropout."""
        rate = self.config.classifier_dropout_prob
        rates = (self.config.hidden_dropout_prob, self.config.attention_probs_dropout_prob, rate)
        albert_seed, head_seed = dropout_seeds(drawn_seed(training, seed, *rates), 2)
        return self.albert(self.encoder_inputs(inputs), training=training, dropout_seed=albert_seed), head_seed


@tf.keras.utils.register_keras_serializable("albert_tf")
class AlbertForMaskedLM(_TaskModel):
    """Predicts masked pieces; there is no pooler."""

    kind = "masked_lm"
    more_inputs = ("masked_lm_positions",)

    def __init__(
        self, config: AlbertConfig, head: HeadConfig | None = None, name: str = "albert_for_masked_lm", **kwargs: Any
    ):
        super().__init__(config, head, name, **kwargs)
        self.masked_lm = MaskedLMHead(config)
        self.build()

    def call(self, inputs: Inputs, training: bool | None = None, dropout_seed: tf.Tensor | None = None) -> tf.Tensor:
        """To [B,P,V] logits at `masked_lm_positions` [B,P] int32 of the inputs; without them to [B,S,V]."""
        outputs = self.albert(self.encoder_inputs(inputs), training=training, dropout_seed=dropout_seed)
        table = self.albert.embeddings.word_embeddings
        return self.masked_lm(outputs["sequence_output"], table, index_input(inputs, "masked_lm_positions"))


@tf.keras.utils.register_keras_serializable("albert_tf")
class AlbertForSequenceClassification(_TaskModel):
    """One score for each of C classes on the pooled vector; regression with C = 1 (GLUE, paper appendix A.3)."""

    kind = "classifier"

    def __init__(
        self,
        config: AlbertConfig,
        head: HeadConfig | None = None,
        name: str = "albert_for_sequence_classification",
        **kwargs: Any,
    ):
        super().__init__(config, head, name, **kwargs)
        self.classifier = ClassifierHead(config, self._num_labels())
        self.build()

    def call(self, inputs: Inputs, training: bool | None = None, dropout_seed: tf.Tensor | None = None) -> tf.Tensor:
        """To [B,C] logits."""
        outputs, head_seed = self._encode(inputs, training, dropout_seed)
        return self.classifier(outputs["pooled_output"], dropout_seed=head_seed)


@tf.keras.utils.register_keras_serializable("albert_tf")
class AlbertForMultipleChoice(_TaskModel):
    """One score for each of K choices, each read as a sequence of its own (RACE, paper appendix A.3)."""

    kind = "multiple_choice"

    def __init__(
        self,
        config: AlbertConfig,
        head: HeadConfig | None = None,
        name: str = "albert_for_multiple_choice",
        **kwargs: Any,
    ):
        super().__init__(config, head, name, **kwargs)
        self.classifier = ClassifierHead(config, 1)
        self.build()

    def call(self, inputs: Inputs, training: bool | None = None, dropout_seed: tf.Tensor | None = None) -> tf.Tensor:
        """The inputs [B,K,S] to [B,K] logits.

        Raises:
            InputError: the inputs have no dimension for the choices.
        """
        inputs = self.encoder_inputs(inputs)
        ids = inputs["input_ids"]
        if ids.shape.rank != 3:
            raise InputError(
                f"input_ids has shape {ids.shape}, but a multiple-choice model reads [batch, choices, length]"
            )
        shape = tf.shape(ids)
        length = ids.shape[2] or shape[2]
        folded = {name: tf.reshape(value, [-1, length]) for name, value in inputs.items()}
        outputs, head_seed = self._encode(folded, training, dropout_seed)
        logits = self.classifier(outputs["pooled_output"], dropout_seed=head_seed)
        return tf.reshape(logits, [-1, ids.shape[1] or shape[1]])


class _SpanModel(_TaskModel):
    """A model whose labels in `fit` are a dict, under the names of `default_losses.SPAN_LABELS`."""

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, **arguments: Any
    ) -> tf.Tensor:
        """Keras' own, which goes by the names of the outputs."""
        y, sample_weight = by_logits(y, y_pred), by_logits(sample_weight, y_pred)
        if isinstance(self.loss, Mapping):
            check_span_labels(y, self.loss, y_pred)
        return super().compute_loss(x, y, y_pred, sample_weight, **arguments)

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> dict[str, Any]:
        """Keras' own, which goes by the names of the outputs, and in Keras 3 by their number."""
        y, sample_weight = by_logits(y, y_pred), by_logits(sample_weight, y_pred)
        if isinstance(y, Mapping):
            y_pred = {name: y_pred[name] for name in y}
        return super().compute_metrics(x, y, y_pred, sample_weight)  # type: ignore[no-any-return]


@tf.keras.utils.register_keras_serializable("albert_tf")
class AlbertForQuestionAnswering(_SpanModel):
    """Start and end of an answer that is always there (SQuAD v1, as released)."""

    kind = "span"

    def __init__(
        self,
        config: AlbertConfig,
        head: HeadConfig | None = None,
        name: str = "albert_for_question_answering",
        **kwargs: Any,
    ):
        super().__init__(config, head, name, **kwargs)
        self.span = SpanHead(config)
        self.build()

    def call(self, inputs: Inputs, training: bool | None = None, dropout_seed: tf.Tensor | None = None) -> Outputs:
        """To a dict of `start_logits` and `end_logits`, [B,S] each, over all positions, padding and question too."""
        outputs = self.albert(self.encoder_inputs(inputs), training=training, dropout_seed=dropout_seed)
        start_logits, end_logits = self.span(outputs["sequence_output"])
        return {"start_logits": start_logits, "end_logits": end_logits}


@tf.keras.utils.register_keras_serializable("albert_tf")
class AlbertForAnswerableQuestionAnswering(_SpanModel):
    """Start, end given the start, and whether there is an answer at all (SQuAD v2, as released).

    Args:
        start_n_top, end_n_top: k1 and k2 of the search, see `AnswerableSpanHead`.
        config, head, name: see `PretrainedModel`.
    """

    kind = "answerable_span"
    more_inputs = ("p_mask", "start_positions")

    def __init__(
        self,
        config: AlbertConfig,
        head: HeadConfig | None = None,
        *,
        start_n_top: int = 5,
        end_n_top: int = 5,
        name: str = "albert_for_answerable_question_answering",
        **kwargs: Any,
    ):
        super().__init__(config, head, name, **kwargs)
        self.answerable_span = AnswerableSpanHead(config, start_n_top, end_n_top)
        self.build()

    def call(self, inputs: Inputs, training: bool | None = None, dropout_seed: tf.Tensor | None = None) -> Outputs:
        """Scores answers.

        Args:
            inputs: as for `AlbertModel`, and `p_mask` [B,S], 1 where an answer can neither start nor end (without it,
                only padding); `start_positions` [B], the true starts, which the loss of the end needs.
            training, dropout_seed: as for `AlbertModel`.

        Returns:
            The outputs of `AnswerableSpanHead`; `end_logits` is among them where `start_positions` is given. In a
            tf.function that does not use those of the search, they are not computed.
        """
        outputs, head_seed = self._encode(inputs, training, dropout_seed)
        start_positions, p_mask = index_input(inputs, "start_positions"), index_input(inputs, "p_mask")
        if p_mask is None and inputs.get("input_mask") is not None:
            p_mask = 1 - inputs["input_mask"]
        if p_mask is None:
            p_mask = tf.zeros_like(inputs["input_ids"])
        return self.answerable_span(outputs["sequence_output"], p_mask, start_positions, dropout_seed=head_seed)

    def get_config(self) -> dict[str, Any]:
        head = self.answerable_span
        return {**super().get_config(), "start_n_top": head.start_n_top, "end_n_top": head.end_n_top}


@tf.keras.utils.register_keras_serializable("albert_tf")
class AlbertForTokenClassification(_TaskModel):
    """One score for each of C tags at every position; there is no pooler."""

    kind = "tagger"

    def __init__(
        self,
        config: AlbertConfig,
        head: HeadConfig | None = None,
        name: str = "albert_for_token_classification",
        **kwargs: Any,
    ):
        super().__init__(config, head, name, **kwargs)
        self.tagger = TaggerHead(config, self._num_labels())
        self.build()

    def call(self, inputs: Inputs, training: bool | None = None, dropout_seed: tf.Tensor | None = None) -> tf.Tensor:
        """To [B,S,C] logits."""
        outputs, head_seed = self._encode(inputs, training, dropout_seed)
        return self.tagger(outputs["sequence_output"], dropout_seed=head_seed)
