"""The encoder and the pre-training model; the models of tasks are in `task_models`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.embeddings import AlbertEmbeddings
from albert_tf.encoder import AlbertEncoder, attention_bias
from albert_tf.head_config import HeadConfig
from albert_tf.heads import MaskedLMHead, Pooler, SentenceHead
from albert_tf.layers import drawn_seed, dropout_seeds
from albert_tf.pretrained_model import Inputs, Outputs, PretrainedModel, index_input


@tf.keras.utils.register_keras_serializable("albert_tf")
class AlbertModel(PretrainedModel):
    """Embeddings, encoder and pooler (paper section 3): pieces in, vectors out.

    Args:
        with_pooler: whether there is a pooler; a head that stands on the sequence has no use for it.
        config, head, name: see `PretrainedModel`.
    """

    kind = "encoder"

    def __init__(
        self,
        config: AlbertConfig,
        head: HeadConfig | None = None,
        *,
        with_pooler: bool = True,
        name: str = "albert",
        **kwargs: Any,
    ):
        super().__init__(config, head, name=name, **kwargs)
        self.embeddings = AlbertEmbeddings(config)
        self.encoder = AlbertEncoder(config)
        self.pooler = Pooler(config) if with_pooler else None
        self.build()

    def call(self, inputs: Inputs, training: bool | None = None, dropout_seed: tf.Tensor | None = None) -> Outputs:
        """Encodes a batch.

        Args:
            inputs: `input_ids` [B,S] int32; `input_mask` [B,S] (1 on pieces; default all 1); `segment_ids` [B,S]
                (default all 0).
            training: whether dropout is on.
            dropout_seed: int32 [2] that alone decides every dropout of this call; None in training draws one from
                tf.random.

        Returns:
            A dict, all float32: `sequence_output` [B,S,H]; `pooled_output` [B,H], where there is a pooler;
            `embedding_output` [B,S,E] before and `projected_embedding` [B,S,H] after the projection;
            `all_layer_outputs`, a list of [B,S,H], one for each block in order.

        Raises:
            InputError: S is above max_position_embeddings, or an input has the name of another library.
        """
        inputs = self.encoder_inputs(inputs)
        input_ids = inputs["input_ids"]
        input_mask = inputs.get("input_mask")
        segment_ids = inputs.get("segment_ids")
        if input_mask is None:
            input_mask = tf.ones_like(input_ids)
        if segment_ids is None:
            segment_ids = tf.zeros_like(input_ids)
        rates = (self.config.hidden_dropout_prob, self.config.attention_probs_dropout_prob)
        embedding_seed, encoder_seed = dropout_seeds(drawn_seed(training, dropout_seed, *rates), 2)
        embedding, projected = self.embeddings(input_ids, segment_ids, dropout_seed=embedding_seed)
        bias = attention_bias(input_mask)
        sequence_output, all_layer_outputs = self.encoder(projected, bias, dropout_seed=encoder_seed)
        outputs = {
            "sequence_output": sequence_output,
            "embedding_output": embedding,
            "projected_embedding": tf.cast(projected, tf.float32),
            "all_layer_outputs": all_layer_outputs,
        }
        if self.pooler is not None:
            outputs["pooled_output"] = self.pooler(sequence_output)
        return outputs

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "with_pooler": self.pooler is not None}


@tf.keras.utils.register_keras_serializable("albert_tf")
class AlbertForPreTraining(PretrainedModel):
    """ALBERT with both pre-training heads: masked pieces and sentence order (paper sections 3.1 and 4.1)."""

    kind = "pretraining"
    more_inputs = ("masked_lm_positions",)

    def __init__(
        self, config: AlbertConfig, head: HeadConfig | None = None, name: str = "albert_for_pretraining", **kwargs: Any
    ):
        super().__init__(config, head, name=name, **kwargs)
        self.albert = AlbertModel(config)
        self.masked_lm = MaskedLMHead(config)
        self.sentence = SentenceHead(config)
        self.build()

    def call(self, inputs: Inputs, training: bool | None = None, dropout_seed: tf.Tensor | None = None) -> Outputs:
        """Predicts masked pieces and sentence order.

        Args:
            inputs: as for `AlbertModel`, and `masked_lm_positions` [B,P] int32; without it every position is
                predicted.
            training, dropout_seed: as for `AlbertModel`.

        Returns:
            A dict, all float32: `masked_lm_logits` [B,P,V] (or [B,S,V]); `sentence_order_logits` [B,2]; and the
            outputs of `AlbertModel`.
        """
        outputs = dict(self.albert(self.encoder_inputs(inputs), training=training, dropout_seed=dropout_seed))
        outputs["masked_lm_logits"] = self.masked_lm(
            outputs["sequence_output"],
            self.albert.embeddings.word_embeddings,
            index_input(inputs, "masked_lm_positions"),
        )
        outputs["sentence_order_logits"] = self.sentence(outputs["pooled_output"])
        return outputs
