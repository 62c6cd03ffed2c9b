"""A fine-tuned classifier as a SavedModel that needs nothing of this package: texts in, named probabilities out.

Signatures, of any batch size and length, so that a batch costs what its longest row costs:

    serving_default   `text` [B] string, or for pairs `text_a` and `text_b`; needs TensorFlow Text where it is loaded
    ids               `input_ids`, `input_mask` and `segment_ids` [B,S] int32

Both give the outputs of `head_outputs`; from texts also `is_cut` bool [B], where a text was longer than the limit.
Without a tokenizer `serving_default` is `ids`, and plain TensorFlow loads the directory. The vocabulary and the labels
are inside; the loaded object has `variables` and `trainable_variables` and can be called with the inputs of `ids`.

B rows, S their padded length, C labels.
"""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf

from albert_tf import sequences_graph, stack
from albert_tf.errors import InputError
from albert_tf.head_config import MULTI_LABEL, REGRESSION, HeadConfig
from albert_tf.pretrained_model import ENCODER_INPUTS, PretrainedModel
from albert_tf.storage import complete_directory
from albert_tf.task_kinds.arrays import label_names
from albert_tf.tokenizer import Tokenizer

SERVING_DEFAULT, IDS = "serving_default", "ids"
Outputs = dict[str, tf.Tensor]


def export_saved_model(
    directory: str | os.PathLike[str],
    model: PretrainedModel,
    tokenizer: Tokenizer | None = None,
    *,
    max_seq_length: int | None = None,
    pairs: bool = False,
) -> None:
    """Writes the directory, complete or not at all; an earlier one is replaced.

    Args:
        directory: where, a path or an address.
        model: a classifier of any problem type.
        tokenizer: of the model; None leaves out the signature with texts.
        max_seq_length: where texts are cut; by default at the model's last position.
        pairs: whether `serving_default` takes two texts.

    Raises:
        InputError: the model has another head, or the directory holds other things or cannot be written.
    """
    if model.head.kind != "classifier":
        raise InputError(f"a SavedModel is made of a classifier, but this model is a {type(model).__name__}")
    answer_ids = _ids_function(model)
    served = _Served(model, answer_ids)
    signatures = {SERVING_DEFAULT: answer_ids, IDS: answer_ids}
    if tokenizer is not None:
        served.tokenize = tokenizer.to_graph()
        longest = max_seq_length or model.config.max_position_embeddings
        signatures[SERVING_DEFAULT] = _text_function(model, tokenizer, served.tokenize, longest, pairs)
    with complete_directory(os.fspath(directory)) as aside:
        tf.saved_model.save(served, aside, signatures)


def head_outputs(head: HeadConfig, logits: tf.Tensor) -> Outputs:
    """What a classifier answers, each output with a row for each row of logits [B,C].

    Returns:
        `labels` [B,C] string, the same in every row, and `probabilities` [B,C] float32 in their order; of one class
        out of several also `label` [B] and `probability` [B], the likeliest, and of a multi-label head `is_label` [B,C]
        bool, where the probability is above one half. A regression has `value` [B] float32 alone.
    """
    if head.problem == REGRESSION:
        return {"value": logits[:, 0]}
    names = tf.constant(label_names(head))
    labels = tf.tile(names[tf.newaxis], [tf.shape(logits)[0], 1])
    if head.problem == MULTI_LABEL:
        probabilities = tf.sigmoid(logits)
        return {"labels": labels, "probabilities": probabilities, "is_label": probabilities > 0.5}
    probabilities = tf.nn.softmax(logits)
    best = tf.argmax(logits, axis=-1, output_type=tf.int32)
    return {
        "labels": labels,
        "probabilities": probabilities,
        "label": tf.gather(names, best),
        "probability": tf.reduce_max(probabilities, axis=-1),
    }


class _Served(tf.Module):
    """What the directory holds beside the signatures.

    The variables stand here by themselves: Keras would save its model's whole tree of layers, each with functions of
    its own.
    """

    # In place of the properties of tf.Module, which a loaded object would not have.
    variables: Any = ()
    trainable_variables: Any = ()
    tokenize: tf.Module | None = None  # with the vocabulary

    def __init__(self, model: PretrainedModel, answer_ids: Any):
        super().__init__(name="albert")
        self.variables = [stack.native_variable(variable) for variable in model.named_variables().values()]
        self.trainable_variables = list(self.variables)
        self.__call__ = answer_ids


def _ids_function(model: PretrainedModel) -> Any:
    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.int32, name=name) for name in ENCODER_INPUTS], autograph=False
    )
    def answer_ids(input_ids: tf.Tensor, input_mask: tf.Tensor, segment_ids: tf.Tensor) -> Outputs:
        inputs = {"input_ids": input_ids, "input_mask": input_mask, "segment_ids": segment_ids}
        return head_outputs(model.head, model(inputs, training=False))

    return answer_ids


def _text_function(
    model: PretrainedModel, tokenizer: Tokenizer, tokenize: Any, max_seq_length: int, pairs: bool
) -> Any:
    names = ("text_a", "text_b") if pairs else ("text",)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name=name) for name in names], autograph=False)
    def answer_texts(first: tf.Tensor, second: tf.Tensor | None = None) -> Outputs:
        pieces = tokenize(first), None if second is None else tokenize(second)
        packed = sequences_graph.pack(*pieces, tokenizer, max_seq_length)
        return {**head_outputs(model.head, model(packed.inputs, training=False)), "is_cut": packed.is_cut}

    return answer_texts
