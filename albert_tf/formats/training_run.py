"""The checkpoints of a pre-training run of ours: where they are, whether they are whole, and their weights.

OUTPUT_DIR/albert_config.json, the vocabulary
OUTPUT_DIR/checkpoints/step-00000100/        variables.index, variables.data-…, and checkpoint.json, which is complete
                                             only together with the files and lengths it lists
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from albert_tf import storage
from albert_tf.config import CONFIG_FILE, AlbertConfig
from albert_tf.errors import InputError
from albert_tf.formats.checkpoint import Checkpoint, find_vocabulary
from albert_tf.formats.head_names import head_from_weights
from albert_tf.formats.tensor_bundle import VARIABLE_KEY_END, TensorBundle

CHECKPOINTS = "checkpoints"
MANIFEST = "checkpoint.json"
VARIABLES = "variables"  # the prefix of the files in a checkpoint
WEIGHTS = "weights/"  # what the names of weights begin with; other names are the optimizer's and the loss scale's
_MANIFEST_KEYS = ("step", "stack", "files", "state")


def checkpoint_names(directory: str) -> list[str]:
    """The complete and incomplete checkpoints in OUTPUT_DIR/checkpoints, oldest first."""
    return [name for name in storage.list_directory(directory) if _is_step(name)]


def incomplete(path: str) -> str | None:
    """What is missing of a checkpoint, or None."""
    try:
        manifest = storage.read_json(storage.join(path, MANIFEST))
        listed = {key: manifest[key] for key in _MANIFEST_KEYS}["files"].items()
    except (InputError, KeyError, TypeError, AttributeError):
        return f"{MANIFEST} is missing or broken"
    for name, size in listed:
        file = storage.join(path, name)
        if not storage.exists(file) or storage.size(file) != size:
            return f"{name} is not of the {size} bytes it was written with"
    return None


def latest(output_dir: str) -> str | None:
    """The newest checkpoint of a run that looks whole, or None."""
    return next((path for path in _newest_first(output_dir) if incomplete(path) is None), None)


def chosen(path: str) -> str | None:
    """The checkpoint that a path stands for: itself, or the newest of a run, a whole one where there is one.

    Args:
        path: a checkpoint's directory or a run's output directory, or neither, for which None is returned.
    """
    parent = storage.basename(storage.dirname(_absolute(path)))
    if storage.exists(storage.join(path, MANIFEST)) or (parent == CHECKPOINTS and _is_step(storage.basename(path))):
        return path
    return latest(path) or next(_newest_first(path), None)


def output_dir_of(checkpoint: str) -> str:
    """The run's directory, where config and vocabulary are; a checkpoint that was moved has them beside its files."""
    directory = storage.dirname(_absolute(checkpoint))
    return storage.dirname(directory) if storage.basename(directory) == CHECKPOINTS else checkpoint


def stored_names(bundle: TensorBundle) -> dict[str, str]:
    """Key in the files of a checkpoint -> the name its variable had in `checkpointing.training_variables`."""
    return {key: _name_of(key) for key in bundle.shapes if key.endswith(VARIABLE_KEY_END)}


def read(path: str) -> Checkpoint:
    """The weights of one checkpoint, or of the newest of a run, written by either stack.

    Raises:
        InputError: there is none, or it is damaged.
    """
    directory = chosen(path)
    if directory is None:
        raise InputError(
            f"{path} is no run of pre-training: it has neither a {MANIFEST} nor a folder {CHECKPOINTS} with checkpoints"
        )
    problem = incomplete(directory)
    if problem:
        which = "" if directory == path else f", as are all others of {path}"
        raise InputError(f"the checkpoint {directory} is damaged{which}: {problem}")
    try:
        bundle = TensorBundle(storage.join(directory, VARIABLES))
        names = stored_names(bundle)
        weights, notes = bundle.read(key for key, name in names.items() if name.startswith(WEIGHTS))
    except InputError as error:
        raise InputError(f"the checkpoint {directory} is damaged: {error}") from error
    weights = {names[key][len(WEIGHTS) :]: value for key, value in weights.items()}
    output_dir = output_dir_of(directory)
    config_file = os.path.join(output_dir, CONFIG_FILE)
    return Checkpoint(
        path=directory,
        form="checkpoint of a pre-training run",
        weights=weights,
        head=head_from_weights(weights),
        config=AlbertConfig.from_json_file(config_file) if os.path.exists(config_file) else None,
        vocabulary=find_vocabulary(output_dir),
        slots=tuple(name for name in names.values() if not name.startswith(WEIGHTS)),
        notes=notes,
    )


def _newest_first(output_dir: str) -> Iterator[str]:
    directory = storage.join(output_dir, CHECKPOINTS)
    return (storage.join(directory, name) for name in reversed(checkpoint_names(directory)))


def _is_step(name: str) -> bool:
    return name.startswith("step-") and name[len("step-") :].isdigit()


def _absolute(path: str) -> str:
    return path.rstrip("/") if storage.is_remote(path) else os.path.abspath(path)


def _name_of(key: str) -> str:
    """The name that tf.train.Checkpoint made a key of: there `/` is `.S` and `.` is `..`."""
    escaped = key[len(f"{VARIABLES}/") : -len(VARIABLE_KEY_END)]
    return ".".join(part.replace(".S", "/") for part in escaped.split(".."))
