"""An export for another runtime to its answerer: the runtime computes, and the rest is as for the model itself."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from albert_tf import packing, task_file
from albert_tf.answering.answerer import Answerer
from albert_tf.answering.task_answerers import CLASSES
from albert_tf.errors import InputError
from albert_tf.exporting.runtimes.file_predictor import FilePredictor
from albert_tf.exporting.runtimes.runtime_export import COMPARISON_FILE, RUNTIMES
from albert_tf.formats.checkpoint import find_vocabulary
from albert_tf.head_config import HeadConfig
from albert_tf.task_kinds import catalogue


class Found(NamedTuple):
    """A version's directory, and its format, one of `RUNTIMES`."""

    directory: str
    format: str


def find(path: str) -> Found | None:
    """The export in a directory, or the newest of those in its numbered ones; None where there is none."""
    try:
        names = os.listdir(path)
    except OSError:
        return None
    versions = sorted((int(name), name) for name in names if name.isdecimal() and name.isascii())
    for directory in (path, *(os.path.join(path, name) for _, name in reversed(versions))):
        for name, runtime in RUNTIMES.items():
            if all(os.path.isfile(os.path.join(directory, file)) for file in (runtime.file, COMPARISON_FILE)):
                return Found(directory, name)
    return None


def load(found: Found, *, batch_size: int, **settings: Any) -> Answerer:
    """The answerer of an export of a model with a head for a task.

    Args:
        found: where it is.
        batch_size: rows at a time; one with several texts in a row gets all that there are.
        **settings: of the kind of task in place of those in task.json.

    Raises:
        InputError: it has another head, no vocabulary, or the runtime is not installed.
    """
    directory, name = found
    head, vocabulary = HeadConfig.read(directory), find_vocabulary(directory)
    if head is None or head.kind not in CLASSES or vocabulary is None:
        raise InputError(
            f"{directory} is an export without a head for a task or without a vocabulary: give the model it is made of"
        )
    about = task_file.read_about(directory)
    kind = catalogue.kind_from_settings(head, {**about["settings"], **settings})
    runtime = RUNTIMES[name]
    function = runtime.function(os.path.join(directory, runtime.file))
    is_packed = getattr(function, "is_packed", False)
    predictor = FilePredictor(
        kind, packing.of_padded(function) if is_packed else function, None if is_packed else batch_size
    )
    return CLASSES[head.kind](vocabulary.tokenizer(), kind, about, predictor)
