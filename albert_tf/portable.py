"""The portable model directory, read and written by both stacks: configs, model.safetensors, the tokenizer's file.

albert_config.json   the released keys
config.json          the same for Hugging Face transformers, where it can hold the model exactly
model.safetensors    weights under Hugging Face names
30k-clean.model …    the tokenizer's file, when one was given
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import safetensors.numpy
import tensorflow as tf

from albert_tf import files
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.formats import hugging_face_names
from albert_tf.tokenizer import Tokenizer

CONFIG_FILE = "albert_config.json"
HUGGING_FACE_CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"

_OPTIMIZER_SLOTS = ("adam_m", "adam_v", "lamb_m", "lamb_v")


@dataclasses.dataclass(frozen=True)
class LoadReport:
    """What a load did: names are the released ones.

    Attributes:
        matched: variables that took a value.
        missing: variables the source has no value for; they keep their own.
        unused: names in the source that the model has no variable for.
        slots: optimizer slots and step counters in the source, which a load of weights leaves alone.
    """

    matched: list[str]
    missing: list[str]
    unused: list[str]
    slots: list[str]


def read_config(directory: str | os.PathLike[str]) -> AlbertConfig:
    """The config of a portable directory.

    Raises:
        InputError: there is no readable albert_config.json in it.
    """
    if not os.path.isdir(directory):
        raise InputError(f"{os.fspath(directory)} is not a directory: a portable model directory is needed")
    return AlbertConfig.from_json_file(os.path.join(directory, CONFIG_FILE))


def save(
    directory: str | os.PathLike[str],
    config: AlbertConfig,
    named_variables: Mapping[str, Any],
    tokenizer: Tokenizer | None = None,
) -> None:
    """Writes the directory, complete or not at all; one that is there already is replaced."""
    tensors = {}
    for name, variable in named_variables.items():
        other_name, transposed = hugging_face_names.to_hugging_face(name)
        value = np.asarray(variable, dtype=np.float32)
        tensors[other_name] = np.ascontiguousarray(value.T if transposed else value)
    with files.atomic_directory(directory) as aside:
        config.to_json_file(os.path.join(aside, CONFIG_FILE))
        if _fits_hugging_face(config):
            files.write_json(os.path.join(aside, HUGGING_FACE_CONFIG_FILE), _hugging_face_config(config, tokenizer))
        with files.atomic_write(os.path.join(aside, WEIGHTS_FILE)) as file:
            file.write(safetensors.numpy.save(tensors, metadata={"format": "tf"}))
        if tokenizer is not None:
            tokenizer.save(aside)


def load(path: str | os.PathLike[str], named_variables: Mapping[str, Any]) -> LoadReport:
    """Copies weights from a portable directory or a released TF1 checkpoint into variables of the same name.

    Args:
        path: a directory with model.safetensors, or the prefix of a TF1 checkpoint (with or without `.index`).
        named_variables: released name to variable.

    Raises:
        InputError: the path holds no weights, not one name fits, or a shape differs (both shapes are named).
    """
    values = read_weights(path, named_variables)
    slots = [name for name in values if _is_slot(name)]
    matched = [name for name in named_variables if name in values]
    if not matched:
        raise InputError(_nothing_matched(path, values))
    for name in matched:
        expected, found = tuple(named_variables[name].shape), values[name].shape
        if expected != found:
            raise InputError(f"{os.fspath(path)}: {name} has shape {list(found)}, but the model needs {list(expected)}")
    for name in matched:
        named_variables[name].assign(values[name])
    return LoadReport(
        matched=matched,
        missing=[name for name in named_variables if name not in values],
        unused=[name for name in values if name not in named_variables and name not in slots],
        slots=slots,
    )


def read_weights(path: str | os.PathLike[str], names: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Released name to array, for everything in `path`; names that are not an ALBERT's stay as they are in the file.

    Args:
        path: a portable directory or the prefix of a TF1 checkpoint.
        names: the released names to translate file names to.

    Raises:
        InputError: neither is there, or the file is damaged.
    """
    path = os.fspath(path)
    weights_file = os.path.join(path, WEIGHTS_FILE)
    if os.path.isfile(weights_file):
        return _read_safetensors(weights_file, names)
    prefix = path[: -len(".index")] if path.endswith(".index") else path
    if os.path.isfile(f"{prefix}.index"):
        return _read_tf1(prefix)
    raise InputError(f"{path} holds no weights: neither {WEIGHTS_FILE} nor a checkpoint {prefix}.index is there")


def _read_safetensors(file: str, names: Mapping[str, Any]) -> dict[str, np.ndarray]:
    try:
        tensors = safetensors.numpy.load_file(file)
    except (OSError, safetensors.SafetensorError) as error:
        raise InputError(f"cannot read {file}: {error}") from error
    values = {}
    for name in names:
        other_name, transposed = hugging_face_names.to_hugging_face(name)
        if other_name in tensors:
            value = tensors.pop(other_name)
            values[name] = value.T if transposed else value
    return {**values, **tensors}


def _read_tf1(prefix: str) -> dict[str, np.ndarray]:
    try:
        reader = tf.train.load_checkpoint(prefix)
        return {name: np.asarray(reader.get_tensor(name)) for name in reader.get_variable_to_shape_map()}
    except (tf.errors.OpError, ValueError, IndexError) as error:
        raise InputError(f"cannot read the checkpoint {prefix}: {str(error).splitlines()[0]}") from error


def _is_slot(name: str) -> bool:
    return name == "global_step" or name.rpartition("/")[2] in _OPTIMIZER_SLOTS


def _nothing_matched(path: str | os.PathLike[str], values: Mapping[str, Any]) -> str:
    names = " ".join(values)
    if "word_embeddings_2" in names or "layer_shared" in names:
        family = "it is of the other ALBERT family (word_embeddings_2, layer_shared), which is not supported"
    elif "encoder/layer_0/" in names or "encoder.layer.0." in names:
        family = "it looks like a BERT with parameters of its own in each layer"
    else:
        family = f"its names are {', '.join(sorted(values)[:3])}, …"
    return f"{os.fspath(path)}: not one variable of the model is in this checkpoint; {family}"


def _fits_hugging_face(config: AlbertConfig) -> bool:
    return config.has_projection and config.parameter_sharing in ("all", "none")


def _hugging_face_config(config: AlbertConfig, tokenizer: Tokenizer | None) -> dict[str, Any]:
    same = (
        "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size embedding_size "
        "inner_group_num hidden_dropout_prob attention_probs_dropout_prob classifier_dropout_prob "
        "max_position_embeddings type_vocab_size initializer_range"
    ).split()
    groups = config.num_hidden_layers if config.parameter_sharing == "none" else config.num_hidden_groups
    values = {
        "model_type": "albert",
        "architectures": ["AlbertForPreTraining"],
        **{key: getattr(config, key) for key in same},
        "num_hidden_groups": groups,
        # "gelu" there is the exact form; the released models use the tanh form
        "hidden_act": {"gelu": "gelu_new", "": "linear"}.get(config.hidden_act, config.hidden_act),
        "layer_norm_eps": 1e-12,
    }
    if tokenizer is not None:
        values.update(pad_token_id=tokenizer.pad_id, bos_token_id=tokenizer.cls_id, eos_token_id=tokenizer.sep_id)
    return values
