"""The checkpoints of a pre-training run of ours: where they are, whether they are whole, and their weights.

OUTPUT_DIR/albert_config.json, the vocabulary
OUTPUT_DIR/checkpoints/step-00000100/        variables.index, variables.data-…, and checkpoint.json, which is complete
                                             only together with the files and lengths it lists
"""

from __future__ import annotations

import os

import numpy as np
import tensorflow as tf

from albert_tf import storage
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.formats.checkpoint import Checkpoint, find_vocabulary
from albert_tf.formats.head_names import head_from_weights

CONFIG_FILE = "albert_config.json"
CHECKPOINTS = "checkpoints"
MANIFEST = "checkpoint.json"
VARIABLES = "variables"  # the prefix of the files in a checkpoint
WEIGHTS = "weights/"  # what the names of weights begin with; other names are the optimizer's and the loss scale's
READ_ERRORS = (tf.errors.OpError, RuntimeError, ValueError, IndexError)  # all of them come from damaged files
_KEY_END = "/.ATTRIBUTES/VARIABLE_VALUE"


def checkpoint_names(directory: str) -> list[str]:
    """The complete and incomplete checkpoints in OUTPUT_DIR/checkpoints, oldest first."""
    return [n for n in storage.list_directory(directory) if n.startswith("step-") and n[len("step-") :].isdigit()]


def incomplete(path: str) -> str | None:
    """What is missing of a checkpoint, or None."""
    try:
        listed = storage.read_json(storage.join(path, MANIFEST))["files"]
    except (InputError, KeyError, TypeError):
        return f"{MANIFEST} is missing or broken"
    for name, size in listed.items():
        file = storage.join(path, name)
        if not storage.exists(file) or storage.size(file) != size:
            return f"{name} is not of the {size} bytes it was written with"
    return None


def latest(output_dir: str) -> str | None:
    """The newest checkpoint of a run that looks whole, or None."""
    directory = storage.join(output_dir, CHECKPOINTS)
    paths = (storage.join(directory, name) for name in reversed(checkpoint_names(directory)))
    return next((path for path in paths if incomplete(path) is None), None)


def is_checkpoint(path: str) -> bool:
    """Whether the path is one checkpoint of a run, or the output directory of a run that has one."""
    return storage.exists(storage.join(path, MANIFEST)) or latest(path) is not None


def stored_names(path: str) -> dict[str, str]:
    """The name each variable had in `checkpointing.training_variables` -> its key in the files of a checkpoint."""
    keys = tf.train.load_checkpoint(storage.join(path, VARIABLES)).get_variable_to_shape_map()
    return {_name_of(key): key for key in keys if key.endswith(_KEY_END)}


def _name_of(key: str) -> str:
    """The name that tf.train.Checkpoint made a key of: there `/` is `.S` and `.` is `..`."""
    escaped = key[len(f"{VARIABLES}/") : -len(_KEY_END)]
    return ".".join(part.replace(".S", "/") for part in escaped.split(".."))


def read(path: str) -> Checkpoint:
    """The weights of one checkpoint, or of the newest of a run, written by either stack.

    Raises:
        InputError: the checkpoint is damaged.
    """
    directory = path if storage.exists(storage.join(path, MANIFEST)) else latest(path)
    assert directory is not None  # is_checkpoint saw to it
    problem = incomplete(directory)
    if problem:
        raise InputError(f"the checkpoint {directory} is damaged: {problem}")
    try:
        names = stored_names(directory)
        reader = tf.train.load_checkpoint(storage.join(directory, VARIABLES))
        weights = {
            name[len(WEIGHTS) :]: np.asarray(reader.get_tensor(key))
            for name, key in names.items()
            if name.startswith(WEIGHTS)
        }
    except READ_ERRORS as error:
        raise InputError(f"the checkpoint {directory} is damaged: {str(error).splitlines()[0]}") from error
    output_dir = path if directory != path else os.path.dirname(os.path.dirname(os.path.abspath(path)))
    config_file = os.path.join(output_dir, CONFIG_FILE)
    return Checkpoint(
        path=directory,
        form="checkpoint of a pre-training run",
        weights=weights,
        head=head_from_weights(weights),
        config=AlbertConfig.from_json_file(config_file) if os.path.exists(config_file) else None,
        vocabulary=find_vocabulary(output_dir),
        slots=tuple(name for name in names if not name.startswith(WEIGHTS)),
    )
