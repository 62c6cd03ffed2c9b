"""What all models have in common: a config, a head, weights from the start, and how they are kept and given back."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import tensorflow as tf
from absl import logging

from albert_tf import loading, weight_names
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.formats import portable
from albert_tf.formats.checkpoint import Checkpoint, Vocabulary
from albert_tf.formats.head_names import ALIKE
from albert_tf.formats.reading import read_checkpoint
from albert_tf.head_config import LABELLED_KINDS, HeadConfig
from albert_tf.layers import build_child
from albert_tf.tokenizer import Tokenizer

ENCODER_INPUTS = ("input_ids", "input_mask", "segment_ids")
# What transformers and tf-models call such inputs: passed over, they would silently give other numbers.
_OTHER_NAMES = {
    "attention_mask": " (it is called input_mask here)",
    "token_type_ids": " (it is called segment_ids here)",
    "input_word_ids": " (it is called input_ids here)",
    "input_type_ids": " (it is called segment_ids here)",
    "position_ids": " (positions are always 0, 1, 2, …)",
    "inputs_embeds": "",
    "head_mask": "",
}
Inputs = Mapping[str, tf.Tensor]
Outputs = dict[str, Any]


class PretrainedModel(tf.keras.Model):
    """The base of all models.

    A subclass names its `kind` of head (`head_config.KINDS`), makes its parts in the constructor and calls
    `self.build()` at the constructor's end, so that every weight exists before the first batch.

    Args:
        config: the sizes.
        head: the head; None makes it of the three arguments behind.
        num_labels: C, for a head with labels.
        labels: what the labels are called, in order.
        problem_type: of a classifier, see `HeadConfig`.
        name: of the Keras model, and the first part of its own variables' paths.

    Attributes:
        config, head: as given.
        vocabulary: the tokenizer's file that came with the weights, None where there was none.
        load_report: what `from_pretrained` matched; None in a model that began at random.

    Raises:
        InputError: the head is of another kind, or does not fit together.
    """

    kind: ClassVar[str]
    more_inputs: ClassVar[tuple[str, ...]] = ()  # what a class reads beside the inputs of the encoder

    def __init__(
        self,
        config: AlbertConfig,
        head: HeadConfig | None = None,
        *,
        num_labels: int | None = None,
        labels: Sequence[str] = (),
        problem_type: str | None = None,
        name: str | None = None,
        **kwargs: Any,
    ):
        super().__init__(name=name, **kwargs)
        self.config = config
        self.head = _checked_head(type(self), head, num_labels, labels, problem_type)
        self.vocabulary: Vocabulary | None = None
        self.load_report: loading.LoadReport | None = None
        self._policy_name = tf.keras.mixed_precision.global_policy().name

    def build(self, input_shape: Any = None) -> None:
        """Creates the weights of the parts; the config alone decides their shapes."""
        with tf.name_scope(self.name):
            for layer in self.layers:
                build_child(layer)
        self.built = True

    def encoder_inputs(self, inputs: Inputs) -> dict[str, tf.Tensor]:
        """Those of a model's inputs that the encoder reads: `input_ids`, and `input_mask` and `segment_ids` if given.

        Further features of a record are passed over.

        Raises:
            InputError: the inputs are no dict with `input_ids`, or have one under the name of another library.
        """
        known = (*ENCODER_INPUTS, *self.more_inputs)
        for name in inputs if isinstance(inputs, Mapping) else ():
            if name in _OTHER_NAMES:
                raise InputError(
                    f"{type(self).__name__} reads no input of the name {name!r}{_OTHER_NAMES[name]}; it reads "
                    f"{', '.join(known)}"
                )
        if not isinstance(inputs, Mapping) or "input_ids" not in inputs:
            raise InputError(
                f"{type(self).__name__} reads a dict with input_ids, and of {', '.join(known[1:])} what there is"
            )
        return {name: index_input(inputs, name) for name in ENCODER_INPUTS if inputs.get(name) is not None}

    def named_variables(self) -> dict[str, Any]:
        """Released name (`bert/embeddings/word_embeddings`, …) to variable, for every variable, in a fixed order."""
        return weight_names.named_variables(self)

    def save_pretrained(self, directory: str | os.PathLike[str], tokenizer: Tokenizer | None = None) -> None:
        """Writes the portable directory (`formats.portable`): configs, model.safetensors and the vocabulary.

        Args:
            directory: appears complete or not at all; an earlier one is replaced.
            tokenizer: whose vocabulary to write; by default the one that came with `from_pretrained`.

        Raises:
            InputError: the directory holds other things than a model, or cannot be written.
        """
        vocabulary = self.vocabulary if tokenizer is None else Vocabulary.of(tokenizer)
        portable.save(directory, self.config, self.named_variables(), self.head, vocabulary)

    @classmethod
    def from_pretrained(
        cls,
        path: str | os.PathLike[str],
        *,
        config: AlbertConfig | None = None,
        num_labels: int | None = None,
        labels: Sequence[str] = (),
        problem_type: str | None = None,
        new_head: bool = False,
        max_position_embeddings: int | None = None,
        **arguments: Any,
    ) -> Any:
        """Makes a model with the weights of any ALBERT; `model.load_report` tells what matched.

        Args:
            path: whatever `formats.reading.read_checkpoint` reads: a directory, file or archive of any form, or the
                name of a public model such as "albert_base_v2".
            config: sizes and rates in place of the source's; it may share less and have other dropout, and a source
                that does not tell its sizes needs it.
            num_labels, labels, problem_type: of the head, where the source does not tell them or has no such head.
            new_head: leave the source's head and begin with a random one.
            max_position_embeddings: cut the table of positions, or extend it (`loading.with_positions`).
            **arguments: further ones of the class, such as `name`.

        Raises:
            InputError: nothing that can be read is there; a weight of the encoder is missing, of another shape, or
                without a place; the number of labels is not known, or is not that of the source's head; the source's
                head is of another kind with weights that look the same. A head that is missing begins at random with a
                warning.
        """
        checkpoint = read_checkpoint(path, config)
        if max_position_embeddings is not None:
            checkpoint = loading.with_positions(checkpoint, max_position_embeddings)
        sizes = config or checkpoint.config
        if sizes is None:
            raise InputError(f"{checkpoint.path} does not tell the sizes of its model: give them as config=")
        if max_position_embeddings is not None:
            sizes = sizes.replace(max_position_embeddings=max_position_embeddings)
        if new_head:
            checkpoint = checkpoint.replace(weights=_encoder_alone(checkpoint.weights))
        said = {"num_labels": num_labels, "labels": labels, "problem_type": problem_type}
        head = _head_to_load(
            cls, checkpoint, {key: value for key, value in said.items() if value not in (None, (), [])}, new_head
        )
        model = cls.from_checkpoint(checkpoint, head, sizes, **arguments)
        if model.load_report.missing:
            missing = ", ".join(model.load_report.missing)
            logging.warning("%s has no weights for %s: they begin at random", checkpoint.path, missing)
        return model

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint, head: HeadConfig, config: AlbertConfig, **arguments: Any) -> Any:
        """Makes a model of these sizes with this head, and gives it the weights that a checkpoint has for it.

        `model.load_report` tells what matched; a head that is missing begins at random.

        Raises:
            InputError: a weight of the encoder is missing, of another shape, or without a place.
        """
        checkpoint = loading.with_fitting_vocabulary(checkpoint, config)
        model = cls(config, head, **arguments)
        model.load_report = loading.load(checkpoint, model.named_variables(), config)
        model.vocabulary = checkpoint.vocabulary
        return model

    def get_config(self) -> dict[str, Any]:
        """Everything the constructor needs, and the precision policy under which the parts were made."""
        return {
            "config": self.config.to_dict(),
            "head": self.head.to_dict(),
            "name": self.name,
            "policy": self._policy_name,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        arguments = dict(config)
        sizes = AlbertConfig.from_dict(arguments.pop("config"))
        head = HeadConfig.from_dict(arguments.pop("head"), source=f"the head of {cls.__name__}")
        with global_policy(arguments.pop("policy")):
            return cls(sizes, head, **arguments)

    def summary(
        self,
        line_length: int | None = None,
        positions: Any = None,
        print_fn: Any = None,
        expand_nested: bool = True,
        show_trainable: bool = False,
        layer_range: Any = None,
    ) -> None:
        """Keras' summary with the parts of parts shown: a block that all layers share is there once."""
        super().summary(line_length, positions, print_fn, expand_nested, show_trainable, layer_range)


def index_input(inputs: Inputs, name: str) -> tf.Tensor | None:
    """An input of whole numbers, as integers whatever their dtype; None where it is not given.

    Under a strategy with several replicas Keras 3 makes the state of metrics and losses on the mean of the replicas'
    first batches, which is float32: the numbers mean nothing there, but the model must take them.
    """
    value = inputs.get(name)
    return value if value is None or tf.as_dtype(value.dtype).is_integer else tf.cast(value, tf.int32)


@contextlib.contextmanager
def global_policy(name: str) -> Iterator[None]:
    """Parts made in this block compute in the precision of that policy of Keras."""
    before = tf.keras.mixed_precision.global_policy()
    tf.keras.mixed_precision.set_global_policy(name)
    try:
        yield
    finally:
        tf.keras.mixed_precision.set_global_policy(before)


def _checked_head(
    model_class: type[PretrainedModel],
    head: HeadConfig | None,
    num_labels: int | None,
    labels: Sequence[str],
    problem_type: str | None,
) -> HeadConfig:
    if head is None:
        return HeadConfig(model_class.kind, num_labels, tuple(labels), problem_type)
    if head.kind != model_class.kind:
        raise InputError(
            f"the head is of the kind {head.kind!r}, but a {model_class.__name__} needs one of the kind "
            f"{model_class.kind!r}"
        )
    if num_labels is not None or labels or problem_type is not None:
        raise InputError(
            f"{model_class.__name__} was given a head and num_labels, labels or problem_type: give one of the two"
        )
    return head


def _encoder_alone(weights: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in weights.items() if name.startswith("bert/")}


def _head_to_load(
    model_class: type[PretrainedModel], checkpoint: Checkpoint, said: Mapping[str, Any], new_head: bool
) -> HeadConfig:
    """The head as the caller says, and where nothing is said as the source has it."""
    kind, found = model_class.kind, checkpoint.head
    if found is not None and found.kind == kind and not new_head:
        if said.get("num_labels", found.num_labels) != found.num_labels or said.get("labels"):
            said = {"num_labels": None, "labels": (), **said}
        return dataclasses.replace(found, **said)
    if found is not None and {found.kind, kind} <= {*ALIKE} and checkpoint.head_is_told and not new_head:
        raise InputError(
            f"{checkpoint.path} has a head of the kind {found.kind}, which {found.model_class} takes: new_head=True "
            f"lets {model_class.__name__} begin with a random one"
        )
    if kind in LABELLED_KINDS and not said.get("num_labels") and not said.get("labels"):
        if loading.OUTPUT_WEIGHTS not in checkpoint.weights:
            raise InputError(
                f"{checkpoint.path} does not tell how many labels {model_class.__name__} has: give num_labels= or "
                "labels="
            )
        said = {**said, "num_labels": len(checkpoint.weights[loading.OUTPUT_WEIGHTS])}
    return HeadConfig(kind, **said)
