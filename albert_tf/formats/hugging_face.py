"""Hugging Face directories and files, read to a `Checkpoint` and written from one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import safetensors.numpy

from albert_tf import files, weight_names
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.formats import hugging_face_config, hugging_face_fit, hugging_face_names, hugging_face_tensors
from albert_tf.formats.checkpoint import Checkpoint, find_vocabulary
from albert_tf.formats.head_names import head_from_weights
from albert_tf.formats.hugging_face_tokenizer import VOCABULARY_FILES, special_ids, write_vocabulary
from albert_tf.head_config import HeadConfig

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
_FILES = (CONFIG_FILE, WEIGHTS_FILE, *VOCABULARY_FILES)

_WORD_TABLE = "albert.embeddings.word_embeddings.weight"
_OUTPUT_MATRIX = "predictions.decoder.weight"
_OUTPUT_BIAS = "predictions.decoder.bias"
_BIAS = "predictions.bias"
_POSITION_IDS = "embeddings.position_ids"
_POOLER = "bert/pooler/dense/"


def read(path: str | os.PathLike[str]) -> Checkpoint:
    """Reads a directory, or one file with config.json beside it.

    Args:
        path: a directory with model.safetensors, pytorch_model.bin or tf_model.h5, whole or sharded, or the path of
            such a file or index.

    Raises:
        InputError: nothing is there that can be read, or it is no ALBERT, or one that is not computed here.
    """
    path = os.fspath(path)
    directory = path if os.path.isdir(path) else os.path.dirname(path) or "."
    file = hugging_face_tensors.find_file(path) if os.path.isdir(path) else path
    config_file = os.path.join(directory, CONFIG_FILE)
    values = files.read_json(config_file) if os.path.exists(config_file) else None
    config = None if values is None else hugging_face_config.read_config(values, config_file)
    tensors, notes = hugging_face_tensors.read_tensors(file)
    tensors, left_out = _without_copies(tensors, file)
    weights = to_released(tensors, file)
    if config is not None:
        config, kept, dropped = hugging_face_fit.drop_identity(config, weights)
        weights, notes = dict(kept), notes + dropped
    head, head_notes = hugging_face_config.read_head(values or {}, weights)
    return Checkpoint(
        path=path,
        form="Hugging Face directory" if path == directory else "Hugging Face file",
        weights=weights,
        config=config,
        head=head,
        head_is_told=hugging_face_config.tells_head(values or {}),
        vocabulary=find_vocabulary(directory),
        left_out=left_out,
        notes=notes + head_notes,
    )


def write(checkpoint: Checkpoint, directory: str | os.PathLike[str]) -> tuple[str, ...]:
    """Writes config.json, model.safetensors and the tokenizer's files; a directory that is there already is replaced.

    Returns:
        What had to be changed or left out, one sentence each.

    Raises:
        InputError: the checkpoint has no config, lacks a weight, or has a head that no Hugging Face class has.
    """
    config = checkpoint.config
    if config is None:
        raise InputError(f"{checkpoint.path} tells no sizes, which a Hugging Face directory needs: give its config")
    head = checkpoint.head or head_from_weights(checkpoint.weights)
    if not head.in_hugging_face:
        raise InputError(
            f"{checkpoint.path} has a head of the kind {head.kind!r}, for which Hugging Face has no class: write it as "
            "portable or tf1"
        )
    weights, left = _weights_of_class(checkpoint, config, head)
    config, fitted, notes = hugging_face_fit.fit(config, weights)
    ids, id_notes = special_ids(checkpoint.vocabulary)
    tensors = _to_tensors(fitted, head)
    with files.atomic_directory(directory, replaces=_FILES) as aside:
        values = hugging_face_config.to_values(config, head, ids)
        files.write_json(os.path.join(aside, CONFIG_FILE), values)
        with files.atomic_write(os.path.join(aside, WEIGHTS_FILE)) as file:
            file.write(safetensors.numpy.save(tensors, metadata={"format": "pt"}))
        if checkpoint.vocabulary is not None:
            write_vocabulary(checkpoint.vocabulary, aside, config.max_position_embeddings)
    return left + notes + id_notes


def _without_copies(tensors: Mapping[str, np.ndarray], file: str) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Takes out what is no weight of its own: position numbers and the output matrix and bias, which are tied."""
    kept = {name: value for name, value in tensors.items() if not name.endswith(_POSITION_IDS)}
    why = "the numbers of the positions, which are always 0, 1, 2, …"
    left_out = {name: why for name in tensors if name not in kept}
    matrix, bias = kept.pop(_OUTPUT_MATRIX, None), kept.pop(_OUTPUT_BIAS, None)
    if matrix is not None:
        table = kept.setdefault(_WORD_TABLE, matrix)
        if not np.array_equal(table, matrix):
            raise InputError(
                f"{file}: {_OUTPUT_MATRIX} differs from {_WORD_TABLE}, so its output matrix is not tied to the word "
                "embeddings as ALBERT's is"
            )
        left_out[_OUTPUT_MATRIX] = f"the same as {_WORD_TABLE}, to which it is tied"
    if bias is not None:
        if _BIAS in kept and not np.array_equal(kept[_BIAS], bias):  # the logits of transformers have the decoder's
            left_out[_BIAS] = f"differs from {_OUTPUT_BIAS}, which is the one that is added to the logits"
        else:
            left_out[_OUTPUT_BIAS] = f"the same as {_BIAS}, to which it is tied"
        kept[_BIAS] = bias
    return kept, left_out


def to_released(tensors: Mapping[str, np.ndarray], file: str) -> dict[str, np.ndarray]:
    """Tensors under released names and in the released orientation; names that are no ALBERT's stay as they are.

    Raises:
        InputError: two of them have one released name, or a weight is not float32; `file` is for the message.
    """
    weights: dict[str, np.ndarray] = {}
    for name, value in tensors.items():
        released, transposed = hugging_face_names.from_hugging_face(name) or (name, False)
        if released in weights:
            raise InputError(f"{file} has {name} twice, once in another spelling")
        if released != name and value.dtype != np.float32:
            raise InputError(f"{file}: {name} is of the type {value.dtype}: save the model in float32")
        weights[released] = value.T if transposed else value
    return weights


def _weights_of_class(
    checkpoint: Checkpoint, config: AlbertConfig, head: HeadConfig
) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """The weights that the class of a head has, and notes on what else there is.

    Pre-trained masked-LM files have a pooler, which classifiers start from, though the class has none: it is kept.
    A span head or a tagger was trained without it.
    """
    class_name = head.model_class
    needed = weight_names.variable_shapes(config, head)
    missing = [name for name in needed if name not in checkpoint.weights]
    if missing:
        more = f" and {len(missing) - 1} others" if len(missing) > 1 else ""
        raise InputError(f"{checkpoint.path} has no {missing[0]}{more}, which {class_name} needs")
    notes = []
    kept = ["bert/encoder/transformer/"]  # groups that no layer uses, too
    if head.kind == "masked_lm" and f"{_POOLER}kernel" in checkpoint.weights:
        kept.append(_POOLER)
        notes.append(f"the pooler is written for models that start from this one; {class_name} does not use it")
    weights = {
        name: value
        for name, value in checkpoint.weights.items()
        if name in needed or (name.startswith(tuple(kept)) and hugging_face_names.is_alberts(name))
    }
    rest = sorted(set(checkpoint.weights) - set(weights))
    if rest:
        notes.append(f"not written, for {class_name} has no place for it: {', '.join(rest)}")
    return weights, tuple(notes)


def _to_tensors(weights: Mapping[str, np.ndarray], head: HeadConfig) -> dict[str, np.ndarray]:
    tensors: dict[str, Any] = {}
    for name, value in weights.items():
        other, transposed = hugging_face_names.to_hugging_face(name)
        if head.kind == "encoder":  # the bare class has no prefix
            other = other[len(hugging_face_names.PREFIX) :]
        tensors[other] = np.ascontiguousarray(value.T if transposed else value, dtype=np.float32)
    return tensors
