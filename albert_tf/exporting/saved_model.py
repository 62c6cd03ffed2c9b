"""A model as a SavedModel that needs nothing of this package: texts in, answers out.

Signatures, of any batch size and length, so that a batch costs what its longest row costs:

    serving_default   strings, see the module of the head; needs TensorFlow Text where it is loaded
    ids               `input_ids`, `input_mask` and `segment_ids` [B,S] int32
    embeddings        `text` [B] (for pairs `text_a` and `text_b`) to `sequence_output` and `pooled_output`

Without a tokenizer all take the inputs of `ids`, and plain TensorFlow loads the directory. The vocabulary and the
labels are inside.

The signatures are made for answering (`inference_encoder`) with weights of their own, in the precision that is chosen,
so that the directory holds the encoder's twice. The loaded object itself has `variables` and `trainable_variables` and
can be called with the inputs of `ids`; that is the model in float32, with gradients.

B rows, S their padded length.
"""

from __future__ import annotations

import copy
import os
from typing import Any, cast

import tensorflow as tf

from albert_tf import sequences, stack
from albert_tf.errors import InputError
from albert_tf.exporting import encoder
from albert_tf.exporting.catalogue import SIGNATURES
from albert_tf.exporting.inference_model import InferenceModel
from albert_tf.exporting.parts import TOP_K, HeadSignatures, Parts, TextInput
from albert_tf.pretrained_model import ENCODER_INPUTS, PretrainedModel
from albert_tf.storage import complete_directory
from albert_tf.task_kinds import catalogue as task_kinds
from albert_tf.task_kinds.task_kind import TaskKind
from albert_tf.tokenizer import Tokenizer

SERVING_DEFAULT, IDS, EMBEDDINGS = "serving_default", "ids", "embeddings"


def export_saved_model(
    directory: str | os.PathLike[str],
    model: PretrainedModel,
    tokenizer: Tokenizer | None = None,
    *,
    kind: TaskKind | None = None,
    max_seq_length: int | None = None,
    pairs: bool = False,
    top_k: int = TOP_K,
    precision: str = "float32",
) -> None:
    """Writes the directory, complete or not at all; an earlier one is replaced.

    Args:
        directory: where, a path or an address.
        model: with any head.
        tokenizer: of the model; None leaves out the signatures with texts.
        kind: of the task it was fine-tuned for, whose settings decide lengths and windows; by default one with the
            task's usual settings.
        max_seq_length: the most pieces of a sequence, in place of the kind's; by default 512, or as many as the model
            has positions.
        pairs: whether a classifier's or encoder's `serving_default` takes two texts.
        top_k: how many pieces a masked-LM head gives for each gap.
        precision: of the encoder's products in the signatures, "float32", "bfloat16" or "float16".

    Raises:
        InputError: the length is beyond the model's positions, or the directory holds other things or cannot be
            written.
    """
    parts = make_parts(model, tokenizer, kind=kind, max_seq_length=max_seq_length, pairs=pairs, top_k=top_k)
    with complete_directory(os.fspath(directory)) as aside:
        save(aside, parts, precision)


def make_parts(
    model: PretrainedModel,
    tokenizer: Tokenizer | None,
    *,
    kind: TaskKind | None = None,
    max_seq_length: int | None = None,
    pairs: bool = False,
    top_k: int = TOP_K,
) -> Parts:
    """See `export_saved_model`."""
    positions = model.config.max_position_embeddings
    settings = dict(kind.settings) if kind else {}
    length = max_seq_length or min(settings.get("max_seq_length") or sequences.LONGEST, positions)
    sequences.check_positions(length, positions)
    if model.head.kind in task_kinds.CLASSES:
        kind = task_kinds.kind_from_settings(model.head, {**settings, "max_seq_length": length})
    return Parts(model, tokenizer, kind, max_seq_length=length, pairs=pairs, top_k=top_k)


def head_signatures(parts: Parts) -> HeadSignatures:
    """The signatures of the model's head.

    Raises:
        InputError: none are made for such a head.
    """
    if parts.head.kind not in SIGNATURES:
        raise InputError(
            f"a SavedModel is made of heads of the kinds {', '.join(SIGNATURES)}, but this one is a {parts.head.kind}"
        )
    return SIGNATURES[parts.head.kind](parts)


def save(directory: str, parts: Parts, precision: str = "float32") -> InferenceModel:
    """Writes the SavedModel into an empty directory.

    Returns:
        The model that its signatures ask.
    """
    model = InferenceModel(parts.model, precision)
    parts, given = copy.copy(parts), parts
    parts.model = cast(Any, model)  # the heads' modules only call it
    head = head_signatures(parts)
    vectors = encoder.vectors(parts)
    of_ids = ids_function(head)
    served = _Served(given, model.variables)
    signatures = {IDS: of_ids, SERVING_DEFAULT: of_ids, EMBEDDINGS: ids_function(vectors)}
    if parts.given_tokenizer is not None:
        signatures[SERVING_DEFAULT] = text_function(head)
        signatures[EMBEDDINGS] = text_function(vectors)
    traced = {name: function.get_concrete_function() for name, function in signatures.items()}
    served.vocabularies = list(parts.modules)
    tf.saved_model.save(served, directory, traced)
    return model


def samples(parts: Parts) -> dict[str, dict[str, Any]]:
    """Inputs of one row for each signature that a warm-up calls, by the signature's name."""
    ids = {name: [[1] * 8] for name in ENCODER_INPUTS}
    if parts.given_tokenizer is None:
        return {SERVING_DEFAULT: ids, IDS: ids}
    texts = {text.name: [text.sample] for text in head_signatures(parts).text_inputs}
    return {SERVING_DEFAULT: texts, IDS: ids}


class _Served(tf.Module):
    """What the directory holds beside the signatures.

    The variables stand here by themselves: Keras would save its model's whole tree of layers, each with functions of
    its own.
    """

    # In place of the properties of tf.Module, which a loaded object would not have.
    variables: Any = ()
    trainable_variables: Any = ()
    vocabularies: Any = ()

    def __init__(self, parts: Parts, variables_of_signatures: list[tf.Variable]):
        super().__init__(name="albert")
        self.variables = [stack.native_variable(variable) for variable in parts.model.named_variables().values()]
        self.trainable_variables = list(self.variables)
        self.variables_of_signatures = variables_of_signatures
        self.__call__ = ids_function(head_signatures(parts))


def ids_function(signatures: HeadSignatures) -> Any:
    """`of_ids` as a tf.function that is traced once."""
    specs = [tf.TensorSpec([None, None], tf.int32, name=name) for name in ENCODER_INPUTS]

    def answer_ids(input_ids: tf.Tensor, input_mask: tf.Tensor, segment_ids: tf.Tensor) -> Any:
        return signatures.of_ids({"input_ids": input_ids, "input_mask": input_mask, "segment_ids": segment_ids})

    return tf.function(answer_ids, input_signature=specs, autograph=False)


def text_function(signatures: HeadSignatures) -> Any:
    """`of_texts` as a tf.function that is traced once."""

    def answer_texts(*texts: tf.Tensor) -> Any:
        assert signatures.of_texts is not None
        return signatures.of_texts(*texts)

    specs = [_spec(text) for text in signatures.text_inputs]
    return tf.function(answer_texts, input_signature=specs, autograph=False)


def _spec(text: TextInput) -> tf.TensorSpec:
    return tf.TensorSpec([None] * text.rank, tf.string, name=text.name)
