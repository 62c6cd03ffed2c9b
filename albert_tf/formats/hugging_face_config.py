"""Hugging Face's config.json to our config and head, and back. What has no effect on the numbers is passed over."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.formats.head_names import head_from_weights
from albert_tf.head_config import KINDS, LABELLED_KINDS, PROBLEM_TYPES, HeadConfig

# The keys that mean the same on both sides -> what Hugging Face's AlbertConfig takes for a missing one (the sizes of
# xxlarge).
_DEFAULTS: dict[str, Any] = {
    "vocab_size": 30000,
    "embedding_size": 128,
    "hidden_size": 4096,
    "num_hidden_layers": 12,
    "num_hidden_groups": 1,
    "num_attention_heads": 64,
    "intermediate_size": 16384,
    "inner_group_num": 1,
    "hidden_dropout_prob": 0,
    "attention_probs_dropout_prob": 0,
    "classifier_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-12,
}
_DEFAULT_ACTIVATION = "gelu_new"
_DEFAULT_NUM_LABELS = 2

# "gelu" there is the exact form; the released models use the tanh form, which has several names there.
_ACTIVATIONS = {
    "gelu_new": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "gelu_python_tanh": "gelu",
    "gelu_accurate": "gelu",
    "gelu_fast": "gelu",
    "gelu": "gelu_erf",
    "gelu_python": "gelu_erf",
    "relu": "relu",
    "tanh": "tanh",
    "linear": "linear",
}
_ACTIVATIONS_BACK = {
    "gelu": "gelu_new",
    "gelu_erf": "gelu",
    "relu": "relu",
    "tanh": "tanh",
    "linear": "linear",
    "": "linear",
}

Weights = Mapping[str, np.ndarray]  # under released names

_KIND_OF_CLASS = {value.model_class: kind for kind, value in KINDS.items() if value.in_hugging_face}


def read_config(values: Any, source: str) -> AlbertConfig:
    """The sizes of a Hugging Face model.

    Args:
        values: what config.json holds.
        source: where it came from, for messages.

    Raises:
        InputError: it is of another model than ALBERT, or of one that is not computed here: an activation, a kind of
            positions, or groups of layers that the released rule would cut elsewhere.
    """
    if not isinstance(values, dict):
        raise InputError(f"{source} holds no JSON object with the keys of a model configuration")
    _check_model(values, source)
    known = {key: values.get(key, default) for key, default in _DEFAULTS.items()}
    if known["classifier_dropout_prob"] is None:  # it stands for the encoder's rate there
        known["classifier_dropout_prob"] = known["hidden_dropout_prob"]
    activation = values.get("hidden_act", _DEFAULT_ACTIVATION)
    if activation not in _ACTIVATIONS:
        raise InputError(f"{source}: hidden_act is {activation!r}, but must be one of {', '.join(_ACTIVATIONS)}")
    known["hidden_act"] = _ACTIVATIONS[activation]
    if known["embedding_size"] == known["hidden_size"]:
        known["embedding_projection"] = True
    if known["num_hidden_groups"] == known["num_hidden_layers"] != 1:
        known["parameter_sharing"] = "none"
    config = AlbertConfig.from_dict(known, source)
    _check_groups(config, source)
    return config


def group_of_layer(layer: int, layers: int, groups: int) -> int:
    """Which group a layer belongs to by Hugging Face's rule, in floating point as there."""
    return int(layer / (layers / groups))


def read_head(values: Mapping[str, Any], weights: Weights) -> tuple[HeadConfig, tuple[str, ...]]:
    """The head of a Hugging Face model, and notes on what was passed over.

    Args:
        values: what config.json holds; empty where there is none.
        weights: under released names; they tell the head where `architectures` does not.
    """
    named, kind = _named_class(values)
    notes = []
    if kind is None:
        kind = head_from_weights(weights).kind
        if named:
            notes.append(f"the class {named} is not known here; by its weights the head is a {kind}")
    if kind not in LABELLED_KINDS:
        return HeadConfig(kind), tuple(notes)
    labels = _labels(values)
    num_labels = len(labels) or values.get("num_labels") or head_from_weights(weights).num_labels or _DEFAULT_NUM_LABELS
    if len(set(labels)) < len(labels):
        notes.append(f"id2label names a label twice ({', '.join(labels)}), so the labels have no names here")
        labels = []
    if labels == _nameless(num_labels):
        labels = []
    problem_type = values.get("problem_type") if kind == "classifier" else None
    if problem_type not in (None, *PROBLEM_TYPES):
        notes.append(f"problem_type {problem_type!r} is not known here and was passed over")
        problem_type = None
    return HeadConfig(kind, num_labels, tuple(labels), problem_type), tuple(notes)


def tells_head(values: Mapping[str, Any]) -> bool:
    """Whether config.json names a class that is known here."""
    return _named_class(values)[1] is not None


def _named_class(values: Mapping[str, Any]) -> tuple[str, str | None]:
    """The first of `architectures`, "" where there is none, and the kind of its head, None where it is not known."""
    architectures = values.get("architectures") or []
    named = str(architectures[0]) if architectures else ""
    return named, _KIND_OF_CLASS.get(re.sub("^TF", "", named))


def to_values(config: AlbertConfig, head: HeadConfig, special_ids: Mapping[str, int] | None = None) -> dict[str, Any]:
    """The keys of config.json; of a config that Hugging Face's class can hold (`hugging_face_fit.fit`).

    Args:
        config: the sizes.
        head: of a kind that has a class there.
        special_ids: "pad", "cls" and "sep" to piece id; the released ids where None.
    """
    ids = special_ids or {"pad": 0, "cls": 2, "sep": 3}
    values = {
        "architectures": [head.model_class],
        "model_type": "albert",
        **{key: getattr(config, key) for key in _DEFAULTS},
        "hidden_act": _ACTIVATIONS_BACK[config.hidden_act],
        "pad_token_id": ids["pad"],
        "bos_token_id": ids["cls"],
        "eos_token_id": ids["sep"],
    }
    if head.num_labels is not None:
        labels = head.labels or _nameless(head.num_labels)
        values["id2label"] = {str(i): label for i, label in enumerate(labels)}
        values["label2id"] = {label: i for i, label in enumerate(labels)}
    if head.problem_type is not None:
        values["problem_type"] = head.problem_type
    return values


def _check_model(values: Mapping[str, Any], source: str) -> None:
    kind = values.get("model_type", "albert")  # files of 2019 lack it
    if kind != "albert":
        what = "a BERT, whose layers share nothing" if kind == "bert" else "another kind of model"
        raise InputError(f"{source}: model_type is {kind!r}, so this is {what}; only ALBERT models are read here")
    positions = values.get("position_embedding_type", "absolute")
    if positions != "absolute":
        raise InputError(f"{source}: position_embedding_type is {positions!r}, but only 'absolute' is computed here")


def _check_groups(config: AlbertConfig, source: str) -> None:
    layers, groups = config.num_hidden_layers, config.num_hidden_groups
    for layer, (released, _) in enumerate(config.layer_parts()):
        theirs = group_of_layer(layer, layers, groups)
        if theirs != released:
            raise InputError(
                f"{source}: with num_hidden_layers {layers} and num_hidden_groups {groups}, layer {layer} belongs to "
                f"group {theirs} by Hugging Face's rule and to group {released} by the released one, so the model "
                "would not give its numbers here"
            )


def _nameless(count: int) -> list[str]:
    """What Hugging Face calls labels that nobody named."""
    return [f"LABEL_{i}" for i in range(count)]


def _labels(values: Mapping[str, Any]) -> list[str]:
    """The names in the order of their numbers; none where they are not told, or do not count from 0."""
    by_id = values.get("id2label")
    if not isinstance(by_id, dict):
        by_name = values.get("label2id")
        by_id = {number: name for name, number in by_name.items()} if isinstance(by_name, dict) else {}
    numbered = {int(number): str(name) for number, name in by_id.items() if str(number).isdigit()}
    return [numbered[i] for i in range(len(numbered))] if sorted(numbered) == [*range(len(by_id))] else []
