"""A run's checkpoints, from which it goes on; `run_settings` has the settings it began with.

A checkpoint holds every weight by its released name, the optimizer's moments and counter, the loss scale, the step
(which is the data position: see input_pipeline), and the sums of the log interval under way. Nothing random has state:
dropout draws from (seed, step, replica). So a resumed run does what the stopped one would have done, bit for bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from albert_tf import stack, storage
from albert_tf.errors import InputError
from albert_tf.files import PARTIAL_SUFFIX
from albert_tf.formats import training_run
from albert_tf.formats.tensor_bundle import READ_ERRORS, TensorBundle
from albert_tf.formats.training_run import (
    CHECKPOINTS,
    MANIFEST,
    VARIABLES,
    WEIGHTS,
    checkpoint_names,
    incomplete,
)

STACK = "Keras 3" if stack.KERAS_3 else "Keras 2.15"


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
    named = {f"{WEIGHTS}{name}": variable for name, variable in weights.items()}
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
    tf.train.Checkpoint(variables=dict(variables)).write(storage.join(aside, VARIABLES))
    sizes = {name: storage.size(storage.join(aside, name)) for name in storage.list_directory(aside)}
    manifest = {"step": step, "stack": STACK, "tensorflow": tf.__version__, "files": sizes, "state": dict(state)}
    storage.write_json(storage.join(aside, MANIFEST), manifest)
    if aside != path:
        storage.sync_directory(aside)
        os.rename(aside, path)
    if keep:
        for name in checkpoint_names(directory)[:-keep]:
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
    names = checkpoint_names(directory)
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


def _restore(path: str, variables: Mapping[str, tf.Variable]) -> str | None:
    """Restores all variables and returns None, or says what is damaged."""
    problem = incomplete(path)
    if problem:
        return problem
    written_by = storage.read_json(storage.join(path, MANIFEST))["stack"]
    if written_by != STACK:
        raise InputError(
            f"the checkpoint {path} was written with {written_by} and this is {STACK}: go on with the same stack, or "
            "start from its weights (--init_checkpoint, in fine-tuning --model) with another --output_dir"
        )
    try:
        found = _shapes(path)
    except InputError as error:
        return str(error)
    for name, variable in variables.items():
        if name not in found:
            raise InputError(f"the checkpoint {path} has no {name}: it is of another model or optimizer")
        if found[name] != tuple(variable.shape):
            raise InputError(
                f"the checkpoint {path} has {name} of shape {list(found[name])}, this run {list(variable.shape)}"
            )
    try:
        tf.train.Checkpoint(variables=dict(variables)).read(
            storage.join(path, VARIABLES)
        ).assert_existing_objects_matched()
    except READ_ERRORS as error:
        return str(error).splitlines()[0]
    return None


def _shapes(path: str) -> dict[str, tuple[int, ...]]:
    """Name to shape of all variables in a checkpoint of ours."""
    bundle = TensorBundle(storage.join(path, VARIABLES))
    return {name: bundle.shapes[key] for key, name in training_run.stored_names(bundle).items()}
