"""A model with any head on the encoder for inference.

B rows, S their padded length, K choices, H hidden size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from albert_tf.exporting.inference_encoder import InferenceEncoder
from albert_tf.pretrained_model import ENCODER_INPUTS, PretrainedModel

Inputs = Mapping[str, tf.Tensor]


class InferenceModel:
    """What a `PretrainedModel` answers, by the graph of `InferenceEncoder`; the head is the model's own, in float32.

    Padding is not computed: what belongs to it in outputs for every position means nothing. Of an encoder there are
    `sequence_output` and `pooled_output` alone.

    Args:
        model: with any head; the encoder's weights are taken over as they are now.
        precision: see `InferenceEncoder`.
        encoder: in its place, another one with its methods.

    Attributes:
        config, head: the model's.
        variables: what has to be saved with it beside the model's own variables.
    """

    def __init__(self, model: PretrainedModel, precision: str = "float32", *, encoder: Any = None):
        self._model: Any = model
        albert: Any = getattr(model, "albert", model)
        self._albert = albert
        self.config, self.head = model.config, model.head
        self._encoder = InferenceEncoder(albert, precision) if encoder is None else encoder
        self.variables = self._encoder.variables

    def __call__(self, inputs: Inputs, training: bool = False) -> Any:
        """What the model's `call` returns; all three inputs of the encoder are needed, [B,S] int32 each.

        Raises:
            ValueError: with `training`, for it has no gradient.
        """
        if training:
            raise ValueError("this graph is for inference; the model itself is there to be trained")
        return _HEADS[self.head.kind](self, inputs)

    def encoder_outputs(self, inputs: Inputs) -> dict[str, tf.Tensor]:
        """`sequence_output` [B,S,H] and, where there is a pooler, `pooled_output` [B,H]; float32."""
        outputs = {"sequence_output": self._sequence(inputs)}
        if self._albert.pooler is not None:
            outputs["pooled_output"] = self._albert.pooler(outputs["sequence_output"])
        return outputs

    def _sequence(self, inputs: Inputs) -> tf.Tensor:
        return self._encoder.sequence(*(inputs[name] for name in ENCODER_INPUTS))

    def _pooled(self, inputs: Inputs) -> tf.Tensor:
        first = self._encoder.first(*(inputs[name] for name in ENCODER_INPUTS))
        pooled: tf.Tensor = self._albert.pooler(first[:, tf.newaxis])
        return pooled

    def _gaps(self, sequence: tf.Tensor, inputs: Inputs) -> tf.Tensor:
        table = self._albert.embeddings.word_embeddings
        logits: tf.Tensor = self._model.masked_lm(sequence, table, inputs.get("masked_lm_positions"))
        return logits

    def _pretraining(self, inputs: Inputs) -> dict[str, tf.Tensor]:
        outputs = self.encoder_outputs(inputs)
        outputs["masked_lm_logits"] = self._gaps(outputs["sequence_output"], inputs)
        outputs["sentence_order_logits"] = self._model.sentence(outputs["pooled_output"])
        return outputs

    def _choices(self, inputs: Inputs) -> tf.Tensor:
        """[B,K,S] to [B,K]."""
        shape = tf.shape(inputs["input_ids"])
        folded = {name: tf.reshape(inputs[name], [-1, shape[2]]) for name in ENCODER_INPUTS}
        return tf.reshape(self._model.classifier(self._pooled(folded)), shape[:2])

    def _span(self, inputs: Inputs) -> dict[str, tf.Tensor]:
        start_logits, end_logits = self._model.span(self._sequence(inputs))
        return {"start_logits": start_logits, "end_logits": end_logits}

    def _answerable_span(self, inputs: Inputs) -> dict[str, tf.Tensor]:
        p_mask = inputs.get("p_mask", 1 - inputs["input_mask"])
        outputs: dict[str, tf.Tensor] = self._model.answerable_span(self._sequence(inputs), p_mask)
        return outputs


_HEADS: Mapping[str, Callable[[InferenceModel, Inputs], Any]] = {
    "encoder": InferenceModel.encoder_outputs,
    "pretraining": InferenceModel._pretraining,
    "masked_lm": lambda model, inputs: model._gaps(model._sequence(inputs), inputs),
    "classifier": lambda model, inputs: model._model.classifier(model._pooled(inputs)),
    "multiple_choice": InferenceModel._choices,
    "span": InferenceModel._span,
    "answerable_span": InferenceModel._answerable_span,
    "tagger": lambda model, inputs: model._model.tagger(model._sequence(inputs)),
}
