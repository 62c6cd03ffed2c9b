"""Tokenised once: the sequences of a split in a file that is named by all that decides them.

The name holds a hash of the examples, of the vocabulary and its clean-up, of the kind of task with its labels and those
settings that decide the sequences, and of this package's code. So a file can be missing, but never of something else.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import pathlib
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import sentencepiece
from absl import logging

from albert_tf import sequences
from albert_tf.errors import InputError
from albert_tf.feature_set import FeatureSet
from albert_tf.file_lock import file_lock
from albert_tf.files import atomic_write
from albert_tf.task_kinds.task_kind import TaskKind
from albert_tf.tasks.examples import Example, fingerprint
from albert_tf.tokenizer import Tokenizer

SUFFIX = ".features.npz"

_ARRAYS = ("input_ids", "sizes", "first_sizes", "example_indices")
_NUMBERS = ("choices", "cut")
_TABLES = ("per_sequence", "per_piece")
_KEY, _WARNINGS = "key", "warnings"


def cached_features(
    kind: TaskKind,
    examples: Sequence[Example],
    tokenizer: Tokenizer,
    *,
    training: bool,
    directory: str | os.PathLike[str] | None,
) -> FeatureSet:
    """`kind.features(examples, tokenizer, training=training)`, read from a file if they were made before.

    Says in the log which of the two it was, and each time what there was to warn of. Several processes may ask at once:
    one makes them, the others wait. A file that cannot be read is told of and made again. Nothing removes old files:
    the directory may be deleted at any time.

    Args:
        kind, examples, tokenizer, training: see `TaskKind.features`.
        directory: where the files are, on this machine, as they are locked; None makes the features and keeps nothing.

    Raises:
        InputError: as `TaskKind.features`; or the directory cannot be written.
    """
    if directory is None:
        return kind.features(examples, tokenizer, training=training)
    key = cache_key(kind, examples, tokenizer, training=training)
    path = os.path.join(os.fspath(directory), key[:32] + SUFFIX)
    _make_directory(directory)
    with file_lock(path + ".lock", lambda: logging.info("waiting for another process that makes %s", path)):
        features = _read(path, key)
        if features is not None:
            logging.info("features of %d examples: read from %s", len(examples), path)
            sequences.warn(*features.warnings)
            return features
        features = kind.features(examples, tokenizer, training=training)
        _write(path, key, features)
        logging.info("features of %d examples: made, and kept in %s", len(examples), path)
        return features


def cache_key(kind: TaskKind, examples: Sequence[Example], tokenizer: Tokenizer, *, training: bool) -> str:
    """SHA-256, in hexadecimal, of all that decides the features."""
    about = {
        "kind": f"{type(kind).__module__}.{type(kind).__qualname__}",
        "head": kind.head.to_dict(),
        "settings": dict(kind.feature_settings),
        "tokenizer": tokenizer.settings(),
        "examples": fingerprint(examples),
        "training": training,
        "code": _code(),
        "sentencepiece": sentencepiece.__version__,
    }
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


@functools.cache
def _code() -> str:
    """A hash of the sources of this package: whatever changes in them, old files are not taken."""
    root = pathlib.Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(f"{path.relative_to(root).as_posix()}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _make_directory(directory: str | os.PathLike[str]) -> None:
    try:
        os.makedirs(directory, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the directory {os.fspath(directory)} for features: {error.strerror}") from error


def _write(path: str, key: str, features: FeatureSet) -> None:
    values: dict[str, Any] = {_KEY: np.array(key), _WARNINGS: np.array(features.warnings, np.str_)}
    values.update({name: getattr(features, name) for name in (*_ARRAYS, *_NUMBERS)})
    values.update({f"{table}/{name}": v for table in _TABLES for name, v in getattr(features, table).items()})
    with atomic_write(path) as file:
        np.savez(file, **values)


def _read(path: str, key: str) -> FeatureSet | None:
    """The features of a file; None where there is none, or none that can be read."""
    if not os.path.exists(path):
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()  # NumPy checks no sum of an array whose header tells too small a shape
        if damaged:
            raise ValueError(f"{damaged} is damaged")
        with np.load(path, allow_pickle=False) as file:
            values = {name: file[name] for name in file.files}
        if str(values[_KEY]) != key:
            raise ValueError("it holds other features")
        made: dict[str, Any] = {name: values[name] for name in _ARRAYS}
        for table in _TABLES:
            made[table] = {n[len(table) + 1 :]: v for n, v in values.items() if n.startswith(table + "/")}
        made.update({name: int(values[name]) for name in _NUMBERS})
        return FeatureSet(**made, warnings=tuple(values[_WARNINGS].tolist()))
    except Exception as error:  # zipfile and NumPy have a dozen classes of errors for a damaged file
        logging.warning("the features in %s cannot be read (%s) and are made again", path, error)
        return None
