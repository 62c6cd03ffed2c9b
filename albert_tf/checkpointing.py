"""What a run leaves behind so that it can go on: checkpoints, the settings it began with, and how weights come in.

OUTPUT_DIR/run.json                          the settings that decide the result
OUTPUT_DIR/checkpoints/step-00000100/        variables.index, variables.data-…, and checkpoint.json, which is complete
                                             only together with the files and lengths it lists

A checkpoint holds every weight by its released name, the optimizer's moments and counter, the loss scale, the step
(which is the data position: see input_pipeline), and the sums of the log interval under way. Nothing random has state:
dropout draws from (seed, step, replica). So a resumed run does what the stopped one would have done, bit for bit.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from albert_tf import portable, stack, storage
from albert_tf.errors import InputError
from albert_tf.files import PARTIAL_SUFFIX

CHECKPOINTS = "checkpoints"
MANIFEST = "checkpoint.json"
RUN_FILE = "run.json"
STACK = "Keras 3" if stack.KERAS_3 else "Keras 2.15"
_PREFIX = "variables"
_WEIGHTS = "weights/"  # what the names of weights begin with; other names are the optimizer's and the loss scale's
_KEY_END = "/.ATTRIBUTES/VARIABLE_VALUE"
_READ_ERRORS = (tf.errors.OpError, RuntimeError, ValueError, IndexError)  # all of them come from damaged files


class Restored(NamedTuple):
    """What a checkpoint knows beside its variables."""

    path: str
    step: int
    state: dict[str, Any]


def training_variables(
    weights: Mapping[str, Any], optimizer: Mapping[str, Any], others: Mapping[str, Any] | None = None
) -> dict[str, tf.Variable]:
    """All variables of a training run under the names they have in a checkpoint.

    Args:
        weights: released name to variable.
        optimizer: the optimizer's variables by name.
        others: further ones, such as the loss scale.
    """
    named = {f"{_WEIGHTS}{name}": variable for name, variable in weights.items()}
    named.update({f"optimizer/{name}": variable for name, variable in optimizer.items()})
    named.update(others or {})
    return {name: stack.native_variable(variable) for name, variable in named.items()}


def save(
    output_dir: str, step: int, variables: Mapping[str, tf.Variable], state: Mapping[str, Any], keep: int = 0
) -> str:
    """Writes the checkpoint of `step`; it appears under its name only when it is complete.

    Args:
        output_dir: the run's directory.
        step: steps done.
        variables: see `training_variables`.
        state: JSON-able values to get back from `restore_latest`.
        keep: how many checkpoints stay, the oldest go; 0 keeps all.

    Returns:
        The checkpoint's directory.
    """
    directory = storage.join(output_dir, CHECKPOINTS)
    path = storage.join(directory, f"step-{step:08d}")
    for name in storage.list_directory(directory):
        if name.endswith(PARTIAL_SUFFIX):  # of a run that was killed while it wrote
            storage.remove_directory(storage.join(directory, name))
    # An object store renames by copying; there the manifest, which is written last, says alone that all is there.
    aside = path if storage.is_remote(path) else f"{path}{PARTIAL_SUFFIX}"
    storage.remove_directory(path)  # only one that could not be restored can be there
    storage.make_directory(aside)
    tf.train.Checkpoint(variables=dict(variables)).write(storage.join(aside, _PREFIX))
    sizes = {name: storage.size(storage.join(aside, name)) for name in storage.list_directory(aside)}
    manifest = {"step": step, "stack": STACK, "tensorflow": tf.__version__, "files": sizes, "state": dict(state)}
    storage.write_json(storage.join(aside, MANIFEST), manifest)
    if aside != path:
        storage.sync_directory(aside)
        os.rename(aside, path)
    if keep:
        for name in _names(directory)[:-keep]:
            storage.remove_directory(storage.join(directory, name))
    return path


def restore_latest(
    output_dir: str, variables: Mapping[str, tf.Variable], warn: Callable[[str], None]
) -> Restored | None:
    """Restores the newest checkpoint that is whole; None when the directory has no checkpoint.

    Args:
        output_dir: the run's directory.
        variables: every variable of the run, see `training_variables`; all of them get their value.
        warn: told, in one sentence each, which newer checkpoints were passed over and why.

    Raises:
        InputError: the other stack wrote the checkpoint, it is of another model or optimizer, or none is whole.
    """
    directory = storage.join(output_dir, CHECKPOINTS)
    names = _names(directory)
    for name in reversed(names):
        path = storage.join(directory, name)
        problem = _restore(path, variables)
        if problem is None:
            manifest = storage.read_json(storage.join(path, MANIFEST))
            return Restored(path, manifest["step"], manifest["state"])
        warn(f"checkpoint {path} is damaged ({problem}): taking the one before it")
    if names:
        raise InputError(f"none of the {len(names)} checkpoints in {directory} can be read: remove it to start anew")
    return None


def latest(output_dir: str) -> str | None:
    """The newest checkpoint of a run that looks whole, or None."""
    directory = storage.join(output_dir, CHECKPOINTS)
    paths = (storage.join(directory, name) for name in reversed(_names(directory)))
    return next((path for path in paths if _incomplete(path) is None), None)


def initialise(path: str, weights: Mapping[str, Any]) -> portable.LoadReport:
    """Copies weights alone into the model: a run that starts from them is at step 0 with a fresh optimizer.

    Args:
        path: a portable directory, a run's output directory or one of its checkpoints, or the prefix of a released
            (TensorFlow 1) checkpoint, with or without `.index` or `.data-…`.
        weights: released name to variable.

    Returns:
        What was matched, missing and not used; only heads can be missing.

    Raises:
        InputError: nothing matches, a shape differs, or a variable of embeddings, encoder or pooler has no value.
    """
    if storage.is_remote(path):
        with tempfile.TemporaryDirectory() as directory:
            return initialise(_download(path, directory), weights)
    own = path if storage.exists(os.path.join(path, MANIFEST)) else latest(path)
    if own is not None:
        report = _load_weights(own, weights)
    else:
        prefix = path.partition(".data-")[0]
        found = prefix if os.path.isfile(f"{prefix}.index") else path
        report = portable.load(found, weights)
    missing = [name for name in report.missing if name.startswith("bert/")]
    if missing:
        bert = any("encoder/layer_" in name for name in report.unused)
        family = "it looks like a BERT or another family's ALBERT" if bert else "it is not a checkpoint of this model"
        raise InputError(
            f"{path} has no value for {', '.join(missing[:5])}{' and others' if len(missing) > 5 else ''} "
            f"({len(missing)} of the {len(weights)} variables): {family}"
        )
    return report


def changed_settings(output_dir: str, settings: Mapping[str, Any]) -> list[str]:
    """One sentence `name was old, now new` for each setting that differs from those the run in there began with."""
    path = storage.join(output_dir, RUN_FILE)
    before = storage.read_json(path) if storage.exists(path) else settings
    return [
        f"{name} was {before.get(name)!r}, now {settings.get(name)!r}"
        for name in sorted({*before, *settings})
        if before.get(name) != settings.get(name)
    ]


def record_settings(output_dir: str, settings: Mapping[str, Any]) -> None:
    """Writes the settings that decide a run's result beside its checkpoints."""
    storage.write_json(storage.join(output_dir, RUN_FILE), dict(settings))


def _names(directory: str) -> list[str]:
    """The checkpoints' names, oldest first."""
    return [n for n in storage.list_directory(directory) if n.startswith("step-") and n[len("step-") :].isdigit()]


def _incomplete(path: str) -> str | None:
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


def _restore(path: str, variables: Mapping[str, tf.Variable]) -> str | None:
    """Restores all variables and returns None, or says what is damaged."""
    problem = _incomplete(path)
    if problem:
        return problem
    written_by = storage.read_json(storage.join(path, MANIFEST))["stack"]
    if written_by != STACK:
        raise InputError(
            f"the checkpoint {path} was written with {written_by} and this is {STACK}: go on with the same stack, or "
            f"start from its weights with --init_checkpoint and another --output_dir"
        )
    try:
        found = _shapes(path)
    except _READ_ERRORS as error:
        return str(error).splitlines()[0]
    for name, variable in variables.items():
        if name not in found:
            raise InputError(f"the checkpoint {path} has no {name}: it is of another model or optimizer")
        if found[name] != tuple(variable.shape):
            raise InputError(
                f"the checkpoint {path} has {name} of shape {list(found[name])}, this run {list(variable.shape)}"
            )
    try:
        tf.train.Checkpoint(variables=dict(variables)).read(
            storage.join(path, _PREFIX)
        ).assert_existing_objects_matched()
    except _READ_ERRORS as error:
        return str(error).splitlines()[0]
    return None


def _shapes(path: str) -> dict[str, tuple[int, ...]]:
    """Name to shape of all variables in a checkpoint of ours."""
    reader = tf.train.load_checkpoint(storage.join(path, _PREFIX))
    return {
        _name_of(key): tuple(shape)
        for key, shape in reader.get_variable_to_shape_map().items()
        if key.endswith(_KEY_END)
    }


def _name_of(key: str) -> str:
    """The name that tf.train.Checkpoint made a key of: there `/` is `.S` and `.` is `..`."""
    escaped = key[len("variables/") : -len(_KEY_END)]
    return ".".join(part.replace(".S", "/") for part in escaped.split(".."))


def _load_weights(path: str, weights: Mapping[str, Any]) -> portable.LoadReport:
    """Weights of a checkpoint of ours, of either stack."""
    problem = _incomplete(path)
    if problem:
        raise InputError(f"the checkpoint {path} is damaged: {problem}")
    reader = tf.train.load_checkpoint(storage.join(path, _PREFIX))
    keys = {_name_of(key): key for key in reader.get_variable_to_shape_map() if key.endswith(_KEY_END)}
    stored = {name[len(_WEIGHTS) :]: key for name, key in keys.items() if name.startswith(_WEIGHTS)}
    matched = [name for name in weights if name in stored]
    if not matched:
        raise InputError(f"{path}: not one variable of the model is in this checkpoint")
    for name in matched:
        value, shape = reader.get_tensor(stored[name]), tuple(weights[name].shape)
        if value.shape != shape:
            raise InputError(f"{path}: {name} has shape {list(value.shape)}, but the model needs {list(shape)}")
        weights[name].assign(value)
    return portable.LoadReport(
        matched=matched,
        missing=[name for name in weights if name not in stored],
        unused=[name for name in stored if name not in weights],
        slots=[name for name in keys if not name.startswith(_WEIGHTS)],
    )


def _download(path: str, directory: str) -> str:
    """Copies what an address names, a directory or the files of a prefix, to a local directory; returns its path."""
    if storage.is_directory(path):
        path = latest(path) or path
        sources, local = [storage.join(path, name) for name in storage.list_directory(path)], directory
    else:
        prefix = path.partition(".data-")[0]
        prefix = prefix[: -len(".index")] if prefix.endswith(".index") else prefix
        parent, name = storage.dirname(prefix), storage.basename(prefix)
        sources = [storage.join(parent, n) for n in storage.list_directory(parent) if n.startswith(f"{name}.")]
        local = os.path.join(directory, name)
    for source in sources:
        if not storage.is_directory(source):
            tf.io.gfile.copy(source, os.path.join(directory, storage.basename(source)))
    return local
