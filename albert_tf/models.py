"""The Keras models people use."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from albert_tf import portable, weight_names
from albert_tf.config import AlbertConfig
from albert_tf.embeddings import AlbertEmbeddings
from albert_tf.encoder import AlbertEncoder, attention_bias
from albert_tf.errors import InputError
from albert_tf.heads import MaskedLMHead, Pooler, SentenceHead
from albert_tf.layers import build_child, dropout_seeds
from albert_tf.tokenizer import Tokenizer

Inputs = Mapping[str, tf.Tensor]
Outputs = dict[str, Any]


class _SavedModel(tf.keras.Model):
    """What all models have in common: a config, weights from the start, and the portable directory."""

    def __init__(self, config: AlbertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.config = config

    def named_variables(self) -> dict[str, Any]:
        """Released name (`bert/embeddings/word_embeddings`, …) to variable, for every variable, in a fixed order."""
        return weight_names.named_variables(self)

    def save_pretrained(self, directory: str | os.PathLike[str], tokenizer: Tokenizer | None = None) -> None:
        """Writes the portable directory: config, model.safetensors and, with a tokenizer, its file."""
        portable.save(directory, self.config, self.named_variables(), tokenizer)

    @classmethod
    def from_pretrained(cls, path: str | os.PathLike[str]) -> Any:
        """Makes the model of a portable directory, with its weights.

        Raises:
            InputError: the directory is not a portable model, or a weight is missing or of another shape.
        """
        model = cls(portable.read_config(path))
        report = portable.load(path, model.named_variables())
        if report.missing:
            raise InputError(f"{os.fspath(path)} has no weights for {', '.join(report.missing)} of {cls.__name__}")
        return model

    def get_config(self) -> dict[str, Any]:
        return {"config": self.config.to_dict(), "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        return cls(AlbertConfig.from_dict(config["config"]), name=config["name"])


@tf.keras.utils.register_keras_serializable("albert_tf")
class AlbertModel(_SavedModel):
    """Embeddings, encoder and pooler (paper section 3): pieces in, vectors out."""

    def __init__(self, config: AlbertConfig, name: str = "albert", **kwargs: Any):
        super().__init__(config, name=name, **kwargs)
        self.embeddings = AlbertEmbeddings(config)
        self.encoder = AlbertEncoder(config)
        self.pooler = Pooler(config)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        for child in (self.embeddings, self.encoder, self.pooler):
            build_child(child)
        self.built = True

    def call(self, inputs: Inputs, training: bool | None = None, dropout_seed: tf.Tensor | None = None) -> Outputs:
        """Encodes a batch.

        Args:
            inputs: `input_ids` [B,S] int32; `input_mask` [B,S] (1 on pieces; default all 1); `segment_ids` [B,S]
                (default all 0).
            training: whether dropout is on.
            dropout_seed: int32 [2] that alone decides every dropout of this call; None in training draws one from
                tf.random.

        Returns:
            A dict, all float32: `sequence_output` [B,S,H]; `pooled_output` [B,H]; `embedding_output` [B,S,E] before
            and `projected_embedding` [B,S,H] after the projection; `all_layer_outputs`, a list of [B,S,H], one for
            each block in order.

        Raises:
            InputError: S is above max_position_embeddings.
        """
        input_ids = inputs["input_ids"]
        input_mask = inputs.get("input_mask")
        segment_ids = inputs.get("segment_ids")
        if input_mask is None:
            input_mask = tf.ones_like(input_ids)
        if segment_ids is None:
            segment_ids = tf.zeros_like(input_ids)
        embedding_seed, encoder_seed = dropout_seeds(self._dropout_seed(training, dropout_seed), 2)
        embedding, projected = self.embeddings(input_ids, segment_ids, dropout_seed=embedding_seed)
        bias = attention_bias(input_mask)
        sequence_output, all_layer_outputs = self.encoder(projected, bias, dropout_seed=encoder_seed)
        return {
            "sequence_output": sequence_output,
            "pooled_output": self.pooler(sequence_output),
            "embedding_output": embedding,
            "projected_embedding": tf.cast(projected, tf.float32),
            "all_layer_outputs": all_layer_outputs,
        }

    def _dropout_seed(self, training: bool | None, seed: tf.Tensor | None) -> tf.Tensor | None:
        rates = (self.config.hidden_dropout_prob, self.config.attention_probs_dropout_prob)
        if not training or not any(rates):
            return None
        if seed is None:
            return tf.random.uniform([2], maxval=2**31 - 1, dtype=tf.int32)
        return seed


@tf.keras.utils.register_keras_serializable("albert_tf")
class AlbertForPreTraining(_SavedModel):
    """ALBERT with both pre-training heads: masked pieces and sentence order (paper sections 3.1 and 4.1)."""

    def __init__(self, config: AlbertConfig, name: str = "albert_for_pretraining", **kwargs: Any):
        super().__init__(config, name=name, **kwargs)
        self.albert = AlbertModel(config)
        self.masked_lm = MaskedLMHead(config)
        self.sentence = SentenceHead(config)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        for child in (self.masked_lm, self.sentence):
            build_child(child)
        self.built = True

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
        outputs = dict(self.albert(inputs, training=training, dropout_seed=dropout_seed))
        outputs["masked_lm_logits"] = self.masked_lm(
            outputs["sequence_output"], self.albert.embeddings.word_embeddings, inputs.get("masked_lm_positions")
        )
        outputs["sentence_order_logits"] = self.sentence(outputs["pooled_output"])
        return outputs
