"""The portable model directory, read and written by both stacks.

albert_config.json   the released keys
head_config.json     what stands on the encoder
config.json          both for Hugging Face transformers, where it can hold the model as it is
model.safetensors    weights under Hugging Face names
other_weights.safetensors   what the source had beside its model, such as a pooler for which the head has no use
spiece.model …       the tokenizer's file, when there is one
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import safetensors.numpy

from albert_tf import files, weight_names
from albert_tf.config import CONFIG_FILE, AlbertConfig
from albert_tf.errors import InputError
from albert_tf.formats import hugging_face_config, hugging_face_fit, hugging_face_names
from albert_tf.formats.checkpoint import Checkpoint, Vocabulary, find_vocabulary
from albert_tf.formats.head_names import head_from_weights
from albert_tf.formats.hugging_face import to_released
from albert_tf.formats.hugging_face_tokenizer import VOCABULARY_FILES, special_ids, write_vocabulary
from albert_tf.head_config import HEAD_CONFIG_FILE, HeadConfig

WEIGHTS_FILE = "model.safetensors"
OTHER_WEIGHTS_FILE = "other_weights.safetensors"
HUGGING_FACE_CONFIG_FILE = "config.json"
# What tells one model from another in config.json; rates and the like may be changed by hand.
_DECISIVE_KEYS = (
    "architectures",
    "hidden_act",
    "layer_norm_eps",
    "num_attention_heads",
    "num_hidden_layers",
    "num_hidden_groups",
    "inner_group_num",
    "id2label",
)
FILES = (CONFIG_FILE, HEAD_CONFIG_FILE, HUGGING_FACE_CONFIG_FILE, WEIGHTS_FILE, OTHER_WEIGHTS_FILE, *VOCABULARY_FILES)


def read(directory: str | os.PathLike[str]) -> Checkpoint:
    """Reads a directory that `write` made.

    Raises:
        InputError: a file is missing or damaged; it is named.
    """
    directory = os.fspath(directory)
    config = AlbertConfig.from_json_file(os.path.join(directory, CONFIG_FILE))
    tensors = _read_tensors(os.path.join(directory, WEIGHTS_FILE))
    others = os.path.join(directory, OTHER_WEIGHTS_FILE)
    if os.path.exists(others):
        more = _read_tensors(others)
        twice = sorted(set(more) & set(tensors))
        if twice:
            raise InputError(
                f"{directory}: {twice[0]} is in {WEIGHTS_FILE} and in {OTHER_WEIGHTS_FILE}: another model was written "
                f"over this one; remove {CONFIG_FILE}, {HEAD_CONFIG_FILE} and {OTHER_WEIGHTS_FILE} to read it as a "
                "Hugging Face directory"
            )
        tensors.update(more)
    checkpoint = Checkpoint(
        path=directory,
        form="portable directory",
        weights={},
        config=config,
        vocabulary=find_vocabulary(directory),
    )
    weights = to_released(tensors, directory)
    told = HeadConfig.read(directory)
    head = told or head_from_weights(weights)
    checkpoint = checkpoint.replace(weights=weights, head=head, head_is_told=told is not None)
    _check_agreement(checkpoint, directory)
    return checkpoint


def write(checkpoint: Checkpoint, directory: str | os.PathLike[str]) -> tuple[str, ...]:
    """Writes the directory, complete or not at all; one that is there already is replaced.

    Returns:
        A note where Hugging Face's classes cannot hold the model as it is, so that there is no config.json.

    Raises:
        InputError: the sizes are not known, a weight is missing, or the directory holds other things than a model or
            cannot be made.
    """
    config, head = checkpoint.config, checkpoint.head or head_from_weights(checkpoint.weights)
    if config is None:
        raise InputError(f"{checkpoint.path} tells no sizes, which a portable directory needs: give its config")
    needed = weight_names.variable_shapes(config, head)
    missing = [name for name in needed if name not in checkpoint.weights]
    if missing:
        raise InputError(f"{checkpoint.path} has no {missing[0]}, which {head.model_class} needs")
    tensors: dict[str, dict[str, np.ndarray]] = {WEIGHTS_FILE: {}, OTHER_WEIGHTS_FILE: {}}
    for name, value in checkpoint.weights.items():
        stored, transposed = _stored_name(name)
        file_name = WEIGHTS_FILE if name in needed else OTHER_WEIGHTS_FILE
        tensors[file_name][stored] = np.array(value.T if transposed else value, order="C")
    values, notes = _hugging_face_values(checkpoint.replace(config=config, head=head))
    with files.atomic_directory(directory, replaces=FILES) as aside:
        config.to_json_file(os.path.join(aside, CONFIG_FILE))
        head.write(aside)
        if values is not None:
            files.write_json(os.path.join(aside, HUGGING_FACE_CONFIG_FILE), values)
        for file_name, named in tensors.items():
            if named:
                with files.atomic_write(os.path.join(aside, file_name)) as file:
                    file.write(safetensors.numpy.save(named, metadata={"format": "pt"}))
        if checkpoint.vocabulary is not None:
            write_vocabulary(checkpoint.vocabulary, aside, config.max_position_embeddings)
    return notes


def save(
    directory: str | os.PathLike[str],
    config: AlbertConfig,
    named_variables: Mapping[str, Any],
    head: HeadConfig,
    vocabulary: Vocabulary | None = None,
) -> None:
    """Writes the directory of a model.

    Args:
        directory: see `write`.
        config, head: of the model.
        named_variables: released name to variable.
        vocabulary: the tokenizer's file.
    """
    weights = {name: np.asarray(variable, dtype=np.float32) for name, variable in named_variables.items()}
    write(Checkpoint("this model", "model", weights, config, head, vocabulary=vocabulary), directory)


def _hugging_face_values(checkpoint: Checkpoint) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """What config.json holds; None and the reason where Hugging Face's classes cannot hold the model as it is."""
    config, head = checkpoint.config, checkpoint.head
    assert config is not None and head is not None  # the callers see to it
    reason = f"transformers has no {head.model_class}"
    if head.in_hugging_face:
        config, _, changes = hugging_face_fit.fit(config, checkpoint.weights)
        if not changes:
            ids, _ = special_ids(checkpoint.vocabulary)
            return hugging_face_config.to_values(config, head, ids), ()
        reason = f"to transformers this would be another model ({'; '.join(changes)})"
    return None, (f"there is no {HUGGING_FACE_CONFIG_FILE}, for {reason}",)


def _check_agreement(checkpoint: Checkpoint, directory: str) -> None:
    """Whoever writes a Hugging Face model over ours leaves albert_config.json and head_config.json as they were."""
    path = os.path.join(directory, HUGGING_FACE_CONFIG_FILE)
    without_text = checkpoint.replace(vocabulary=None)  # its ids decide nothing, and a tokenizer takes time to make
    ours, _ = _hugging_face_values(without_text) if os.path.exists(path) else (None, ())
    if ours is None:
        return
    theirs = files.read_json(path)
    for key in _DECISIVE_KEYS:
        if key in theirs and theirs[key] != ours.get(key):
            raise InputError(
                f"{path} has {key} {theirs[key]!r}, but {CONFIG_FILE} and {HEAD_CONFIG_FILE} beside it mean "
                f"{ours.get(key)!r}: another model was written over this one; remove {CONFIG_FILE}, {HEAD_CONFIG_FILE} "
                f"and {OTHER_WEIGHTS_FILE} to read it as a Hugging Face directory"
            )


def _read_tensors(file: str) -> dict[str, np.ndarray]:
    try:
        return safetensors.numpy.load_file(file)
    except (OSError, safetensors.SafetensorError) as error:
        raise InputError(f"cannot read {file}: {error}") from error


def _stored_name(name: str) -> tuple[str, bool]:
    try:
        return hugging_face_names.to_hugging_face(name)
    except KeyError:  # not an ALBERT's
        return name, False
