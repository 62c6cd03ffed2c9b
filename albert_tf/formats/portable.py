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
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import safetensors.numpy

from albert_tf import files, weight_names
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.formats import hugging_face_config, hugging_face_fit, hugging_face_names
from albert_tf.formats.checkpoint import Checkpoint, Vocabulary, find_vocabulary
from albert_tf.formats.head_names import head_from_weights
from albert_tf.formats.hugging_face_tokenizer import VOCABULARY_FILES, special_ids, write_vocabulary
from albert_tf.head_config import HEAD_CONFIG_FILE, KINDS, LABELLED_KINDS, HeadConfig

CONFIG_FILE = "albert_config.json"
WEIGHTS_FILE = "model.safetensors"
OTHER_WEIGHTS_FILE = "other_weights.safetensors"
HUGGING_FACE_CONFIG_FILE = "config.json"
_FILES = (CONFIG_FILE, HEAD_CONFIG_FILE, HUGGING_FACE_CONFIG_FILE, WEIGHTS_FILE, OTHER_WEIGHTS_FILE, *VOCABULARY_FILES)


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
        tensors.update(_read_tensors(others))
    weights = {}
    for name in _all_names(config):
        stored, transposed = hugging_face_names.to_hugging_face(name)
        if stored in tensors:
            value = tensors.pop(stored)
            weights[name] = value.T if transposed else value
    return Checkpoint(
        path=directory,
        form="portable directory",
        weights={**weights, **tensors},
        config=config,
        head=HeadConfig.read(directory) or head_from_weights(weights),
        vocabulary=find_vocabulary(directory),
    )


def write(checkpoint: Checkpoint, directory: str | os.PathLike[str]) -> None:
    """Writes the directory, complete or not at all; one that is there already is replaced.

    Raises:
        InputError: the sizes are not known, or the directory holds other things than a model or cannot be made.
    """
    config, head = checkpoint.config, checkpoint.head or head_from_weights(checkpoint.weights)
    if config is None:
        raise InputError(f"{checkpoint.path} tells no sizes, which a portable directory needs: give its config")
    needed = weight_names.variable_shapes(config, head)
    tensors: dict[str, dict[str, np.ndarray]] = {WEIGHTS_FILE: {}, OTHER_WEIGHTS_FILE: {}}
    for name, value in checkpoint.weights.items():
        stored, transposed = _stored_name(name)
        file_name = WEIGHTS_FILE if name in needed else OTHER_WEIGHTS_FILE
        tensors[file_name][stored] = np.array(value.T if transposed else value, order="C")
    with files.atomic_directory(directory, replaces=_FILES) as aside:
        config.to_json_file(os.path.join(aside, CONFIG_FILE))
        head.write(aside)
        if values := _hugging_face_values(checkpoint, config, head):
            files.write_json(os.path.join(aside, HUGGING_FACE_CONFIG_FILE), values)
        for file_name, named in tensors.items():
            if named:
                with files.atomic_write(os.path.join(aside, file_name)) as file:
                    file.write(safetensors.numpy.save(named, metadata={"format": "pt"}))
        if checkpoint.vocabulary is not None:
            write_vocabulary(checkpoint.vocabulary, aside, config.max_position_embeddings)


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
    write(Checkpoint("this model", "model", weights, config, head, vocabulary), directory)


def _hugging_face_values(checkpoint: Checkpoint, config: AlbertConfig, head: HeadConfig) -> dict[str, Any] | None:
    """What config.json holds; None where Hugging Face's classes cannot hold the model as it is."""
    config, _, changes = hugging_face_fit.fit(config, checkpoint.weights)
    if changes or KINDS[head.kind][1] is None:
        return None
    ids, _ = special_ids(checkpoint.vocabulary)
    return hugging_face_config.to_values(config, head, ids)


def _read_tensors(file: str) -> dict[str, np.ndarray]:
    try:
        return safetensors.numpy.load_file(file)
    except (OSError, safetensors.SafetensorError) as error:
        raise InputError(f"cannot read {file}: {error}") from error


def _all_names(config: AlbertConfig) -> Iterator[str]:
    """The released names that a model of this config can have, whatever stands on it."""
    seen = set()
    for kind in KINDS:
        head = HeadConfig(kind, num_labels=1) if kind in LABELLED_KINDS else HeadConfig(kind)
        for name in weight_names.variable_shapes(config, head):
            if name not in seen:
                seen.add(name)
                yield name


def _stored_name(name: str) -> tuple[str, bool]:
    try:
        return hugging_face_names.to_hugging_face(name)
    except KeyError:  # not an ALBERT's
        return name, False
