"""An export for another runtime to its answerer: the runtime computes, and the rest is as for the model itself."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from albert_tf import packing, sequences, task_file, text_vectors
from albert_tf.answering.answerer import Answerer
from albert_tf.answering.pretrained_answerers import VectorAnswerer
from albert_tf.answering.task_answerers import CLASSES
from albert_tf.config import CONFIG_FILE, AlbertConfig
from albert_tf.errors import InputError
from albert_tf.exporting import version_directories
from albert_tf.exporting.runtimes.file_predictor import FilePredictor
from albert_tf.exporting.runtimes.runtime_export import COMPARISON_FILE, RUNTIMES
from albert_tf.exporting.source import ENCODER
from albert_tf.formats.checkpoint import find_vocabulary
from albert_tf.head_config import HeadConfig
from albert_tf.task_kinds import catalogue
from albert_tf.text_vectors import TextVectors
from albert_tf.tokenizer import Tokenizer


class Found(NamedTuple):
    """A version's directory, and its format, one of `RUNTIMES`."""

    directory: str
    format: str


def find(path: str) -> Found | None:
    """The export in a directory, or the newest of those in its numbered ones; None where there is none."""
    try:
        versions = version_directories.versions(path) if os.path.isdir(path) else []
    except OSError:
        return None
    for directory in (path, *(directory for _, directory in versions)):
        for name, runtime in RUNTIMES.items():
            if all(os.path.isfile(os.path.join(directory, file)) for file in (runtime.file, COMPARISON_FILE)):
                return Found(directory, name)
    return None


def load(found: Found, *, batch_size: int, precision: str = "float32", **settings: Any) -> Answerer:
    """The answerer of an export of an encoder, or of a model with a head for a task.

    Args:
        found: where it is.
        batch_size: rows at a time; one with several texts in a row gets all that there are.
        precision: see `loading.load_answerer`; of OpenVINO's files alone.
        **settings: of the kind of task in place of those in task.json.

    Raises:
        InputError: it has another head or no vocabulary, the length is beyond the model's positions, or the runtime is
            not installed.
    """
    directory = found.directory
    head = HeadConfig.read(directory)
    if head is None or head.kind == ENCODER:
        return VectorAnswerer(load_vectors(found, batch_size=batch_size, precision=precision, **settings))
    if head.kind not in CLASSES:
        raise InputError(f"{directory} is an export with the head {head.kind}: give the model it is made of")
    about = task_file.read_about(directory)
    kind = catalogue.kind_from_settings(head, {**about["settings"], **settings})
    sequences.check_positions(kind.settings["max_seq_length"], _config(directory).max_position_embeddings)
    function, is_packed = _function(found, precision)
    predictor = FilePredictor(kind, function, None if is_packed else batch_size)
    return CLASSES[head.kind](_tokenizer(directory), kind, about, predictor)


def load_vectors(
    found: Found,
    *,
    pooling: str = text_vectors.POOLED,
    max_seq_length: int | None = None,
    batch_size: int = 32,
    precision: str = "float32",
) -> TextVectors:
    """A vector for each text by an encoder's export.

    Args:
        found: where it is.
        pooling, max_seq_length: see `text_vectors.load`.
        batch_size, precision: see `load`.

    Raises:
        InputError: it is no encoder's, its outputs do not tell such vectors, it has no vocabulary, or the runtime is
            not installed.
    """
    text_vectors.check_pooling(pooling)
    directory = found.directory
    head = HeadConfig.read(directory)
    if head is not None and head.kind != ENCODER:
        raise InputError(
            f"{directory} is an export with the head {head.kind}, which gives no vectors: give the model it is made of"
        )
    config = _config(directory)
    function, is_packed = _function(found, precision)
    needed = "pooled_output" if pooling == text_vectors.POOLED else "sequence_output"

    def vectors(input_ids: np.ndarray, input_mask: np.ndarray, segment_ids: np.ndarray) -> Any:
        outputs = function({"input_ids": input_ids, "input_mask": input_mask, "segment_ids": segment_ids})
        if needed not in outputs:
            raise InputError(f"{directory} gives no {needed}, which --pooling={pooling} needs")
        return text_vectors.POOLINGS[pooling](dict(outputs), input_mask)

    positions = config.max_position_embeddings
    length = max_seq_length or min(sequences.LONGEST, positions)
    sequences.check_positions(length, positions)
    return TextVectors(
        vectors,
        _tokenizer(directory),
        width=config.hidden_size,
        max_seq_length=length,
        batch_size=None if is_packed else batch_size,
    )


def _function(found: Found, precision: str) -> tuple[Any, bool]:
    """Padded batches to outputs, and whether that packs them."""
    runtime = RUNTIMES[found.format]
    make = {"float32": runtime.function, **runtime.in_precision}.get(precision)
    if make is None:
        raise InputError(
            f"{found.directory} is an export for {found.format}, which computes in what it was exported with: leave "
            f"--mixed_precision={precision} out"
        )
    function = make(os.path.join(found.directory, runtime.file))
    is_packed = getattr(function, "is_packed", False)
    return (packing.of_padded(function) if is_packed else function), is_packed


def _config(directory: str) -> AlbertConfig:
    return AlbertConfig.from_json_file(os.path.join(directory, CONFIG_FILE))


def _tokenizer(directory: str) -> Tokenizer:
    vocabulary = find_vocabulary(directory)
    if vocabulary is None:
        raise InputError(f"{directory} is an export without a vocabulary: give the model it is made of")
    return vocabulary.tokenizer()
