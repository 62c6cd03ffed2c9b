"""What files for other runtimes answer to ids, and the function of the Keras model that answers the same.

Everything that the signature `ids` of a SavedModel without texts gives as numbers, under the same names, and of
classifiers and taggers also the logits:

    encoder                  sequence_output [B,S,H], pooled_output [B,H] where there is a pooler
    classifier               logits, probabilities [B,C], probability [B] of the likeliest
      with several labels    logits, probabilities [B,C], is_label [B,C] bool
      regression             value [B]
    multiple choice          logits [B], each row an option
    tagger                   logits, probabilities [B,S,C]
    span                     start_logits, end_logits [B,S]
    answerable span          start_logits [B,S], cls_logits [B], start_top_log_probs and start_top_index [B,k1],
                             end_top_log_probs and end_top_index [B,k1*k2]
    masked LM, pre-training  masked_lm_logits [B,S,V]

B rows, S their padded length, H hidden size, C labels, V vocabulary; float32, `…_index` int32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.exporting import classifier, forward, saved_model
from albert_tf.head_config import ANSWERABLE, MULTI_LABEL, REGRESSION
from albert_tf.pretrained_model import ENCODER_INPUTS, PretrainedModel

_Shapes = dict[str, list[Any]]  # sizes of each output, None where they differ


def keras_function(model: PretrainedModel | Any, with_vectors: bool = False) -> Any:
    """A tf.function of `input_ids`, `input_mask` and `segment_ids` [B,S] int32 to the outputs by name.

    Args:
        model: a `PretrainedModel` or an `InferenceModel`, with any head.
        with_vectors: beside the head's outputs those of the encoder, as the signature `embeddings` gives them.
    """
    parts = saved_model.make_parts(model, None)
    of_ids = saved_model.head_signatures(parts).of_ids

    def answer(input_ids: tf.Tensor, input_mask: tf.Tensor, segment_ids: tf.Tensor) -> dict[str, tf.Tensor]:
        inputs = {"input_ids": input_ids, "input_mask": input_mask, "segment_ids": segment_ids}
        if model.head.kind == "classifier":
            logits = forward.head_outputs(model, inputs)
            outputs = {**classifier.outputs_of_logits(model.head, logits), "logits": logits}
        elif model.head.kind == "tagger":
            logits = forward.head_outputs(model, inputs)
            outputs = {"probabilities": tf.nn.softmax(logits), "logits": logits}
        else:
            outputs = of_ids(inputs)
        if with_vectors:
            outputs = {**outputs, **forward.encoder_outputs(model, inputs)}
        of_a_number = ("logits",) if model.head.problem == REGRESSION else ()
        return {name: value for name, value in outputs.items() if value.dtype != tf.string and name not in of_a_number}

    specs = [tf.TensorSpec([None, None], tf.int32, name=name) for name in ENCODER_INPUTS]
    return tf.function(answer, input_signature=specs, autograph=False)


def as_arrays(function: Any) -> Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]:
    """A function of tensors as one of arrays: inputs by name to outputs by name."""
    return lambda inputs: {name: value.numpy() for name, value in function(**inputs).items()}


def output_specs(model: PretrainedModel, packed: bool = False, with_vectors: bool = False) -> dict[str, tf.TensorSpec]:
    """Of each output of `keras_function` its type and shape, which no function is traced for; None for B and S.

    Args:
        model: with any head.
        packed: those alone that have one row for a text, as files with several texts in a row give them.
        with_vectors: see `keras_function`.
    """
    types = {"is_label": tf.bool, "start_top_index": tf.int32, "end_top_index": tf.int32}
    return {
        name: tf.TensorSpec(shape, types.get(name, tf.float32))
        for name, shape in {**_shapes(model), **(_vector_shapes(model) if with_vectors else {})}.items()
        if not (packed and None in shape[1:])
    }


def _shapes(model: Any) -> _Shapes:
    head, config = model.head, model.config
    if head.kind == "encoder":
        return _vector_shapes(model)
    if head.kind == "classifier":
        if head.problem == REGRESSION:
            return {"value": [None]}
        of_labels = [None, head.num_labels]
        more: _Shapes = {"is_label": of_labels} if head.problem == MULTI_LABEL else {"probability": [None]}
        return {"logits": of_labels, "probabilities": of_labels, **more}
    if head.kind == "multiple_choice":
        return {"logits": [None]}
    if head.kind == "tagger":
        return dict.fromkeys(("logits", "probabilities"), [None, None, head.num_labels])
    if head.kind == "span":
        return dict.fromkeys(("start_logits", "end_logits"), [None, None])
    if head.kind == ANSWERABLE:
        starts, ends = model.answerable_span.start_n_top, model.answerable_span.end_n_top
        return {
            "start_logits": [None, None],
            "cls_logits": [None],
            **dict.fromkeys(("start_top_log_probs", "start_top_index"), [None, starts]),
            **dict.fromkeys(("end_top_log_probs", "end_top_index"), [None, starts * ends]),
        }
    return {"masked_lm_logits": [None, None, config.vocab_size]}


def _vector_shapes(model: Any) -> _Shapes:
    width = model.config.hidden_size
    pooled: _Shapes = {} if getattr(model, "albert", model).pooler is None else {"pooled_output": [None, width]}
    return {"sequence_output": [None, None, width], **pooled}
