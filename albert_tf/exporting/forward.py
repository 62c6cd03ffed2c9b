"""The one place where a model is called for a signature.

B rows, S their padded length, H hidden size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from albert_tf.exporting.inference_model import InferenceModel
from albert_tf.models import AlbertModel
from albert_tf.pretrained_model import PretrainedModel

_VECTORS = ("sequence_output", "pooled_output")


def head_outputs(model: PretrainedModel | InferenceModel, inputs: Mapping[str, tf.Tensor]) -> Any:
    """What the model's `call` returns for `input_ids`, `input_mask`, `segment_ids` [B,S] and what its head reads."""
    return model(inputs, training=False)


def encoder_outputs(model: PretrainedModel | InferenceModel, inputs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """`sequence_output` [B,S,H] and, of a model with a pooler, `pooled_output` [B,H]; float32."""
    if isinstance(model, InferenceModel):
        return model.encoder_outputs(inputs)
    encoder = model if isinstance(model, AlbertModel) else model.albert
    outputs = encoder(inputs, training=False)
    return {name: outputs[name] for name in _VECTORS if name in outputs}
