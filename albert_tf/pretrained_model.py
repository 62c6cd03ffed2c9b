"""What all models have in common: a config, a head, weights from the start, and how they are kept and given back."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import tensorflow as tf

from albert_tf import portable, weight_names
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.head_config import HeadConfig
from albert_tf.layers import build_child
from albert_tf.tokenizer import Tokenizer

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

    Raises:
        InputError: the head is of another kind, or does not fit together.
    """

    kind: ClassVar[str]

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
        self._policy_name = tf.keras.mixed_precision.global_policy().name

    def build(self, input_shape: Any = None) -> None:
        """Creates the weights of the parts; the config alone decides their shapes."""
        with tf.name_scope(self.name):
            for layer in self.layers:
                build_child(layer)
        self.built = True

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
        with _global_policy(arguments.pop("policy")):
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


@contextlib.contextmanager
def _global_policy(name: str) -> Iterator[None]:
    """Parts made in this block compute in the precision of that policy."""
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


def drawn_seed(training: bool | None, seed: tf.Tensor | None, *rates: float) -> tf.Tensor | None:
    """The seed of a call's dropout, int32 [2]: the one given, or else one drawn from tf.random.

    None where nothing is dropped: outside training, or with all `rates` 0.
    """
    if not training or not any(rates):
        return None
    if seed is None:
        return tf.random.uniform([2], maxval=2**31 - 1, dtype=tf.int32)
    return seed
