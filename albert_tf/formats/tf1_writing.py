"""Writes the form of the released archives, which the TF1 code reads."""

from __future__ import annotations

import os

import numpy as np
import tensorflow as tf

from albert_tf import files, operation_error
from albert_tf.config import CONFIG_FILE, AlbertConfig
from albert_tf.errors import InputError
from albert_tf.formats.checkpoint import Checkpoint
from albert_tf.formats.head_names import head_from_weights
from albert_tf.formats.unsharing import copied_to_layers
from albert_tf.head_config import HEAD_CONFIG_FILE
from albert_tf.tokenizer import RELEASED_SENTENCEPIECE_FILE, SETTINGS_FILE, WORDPIECE_FILE

# May be in the directory of an earlier checkpoint and not in that of a later one.
_OPTIONAL_FILES = (RELEASED_SENTENCEPIECE_FILE, WORDPIECE_FILE, SETTINGS_FILE, HEAD_CONFIG_FILE)


def write(
    checkpoint: Checkpoint, directory: str | os.PathLike[str], prefix: str = "model.ckpt-best"
) -> tuple[str, ...]:
    """Writes albert_config.json, PREFIX.index, PREFIX.data-00000-of-00001, `checkpoint` and the vocabulary.

    The directory appears complete or not at all; a checkpoint that is there already is replaced. head_config.json is
    written too where the names of the variables do not tell the head. Optimizer slots are in no `Checkpoint`, so none
    are written.

    Args:
        checkpoint: what to write; it must have a config.
        directory: the directory to make.
        prefix: the name of the checkpoint in it.

    Returns:
        A note for each conversion (see `released_form`).

    Raises:
        InputError: the released JSON and code cannot hold the model, or the directory holds other things or cannot be
            written.
    """
    checkpoint, notes = released_form(checkpoint)
    assert checkpoint.config is not None
    names = sorted(checkpoint.weights)
    tensors = [_as_stored(checkpoint.weights[name]) for name in names]
    with files.atomic_directory(directory, replaces=_OPTIONAL_FILES) as aside:
        checkpoint.config.to_json_file(os.path.join(aside, CONFIG_FILE))
        if checkpoint.vocabulary is not None:
            checkpoint.vocabulary.write(aside, sentencepiece_file=RELEASED_SENTENCEPIECE_FILE)
        if checkpoint.head is not None and checkpoint.head != head_from_weights(checkpoint.weights):
            checkpoint.head.write(aside)
        try:
            with tf.device("CPU"):
                tf.raw_ops.SaveV2(
                    prefix=os.path.join(aside, prefix),
                    tensor_names=names,
                    shape_and_slices=[""] * len(names),
                    tensors=[tf.constant(tensor) for tensor in tensors],
                )
        except tf.errors.OpError as error:
            reason = operation_error.reason(error)
            raise InputError(f"cannot write {os.fspath(directory)}: {reason}") from error
        with files.atomic_write(os.path.join(aside, "checkpoint"), "w") as file:
            file.write(f'model_checkpoint_path: "{prefix}"\nall_model_checkpoint_paths: "{prefix}"\n')
    return notes


def released_form(checkpoint: Checkpoint) -> tuple[Checkpoint, tuple[str, ...]]:
    """The same model as the released code can hold it, and a note for each thing converted.

    The released code knows groups of layers, not the sharing of attention or feed-forward parts alone. Where it gives
    each layer a group of its own, such a model is held exactly by L groups with the shared half copied to each.

    Raises:
        InputError: there is no config, or a setting that the released JSON and code cannot hold; it is named.
    """
    config = checkpoint.config
    if config is None:
        raise InputError(f"{checkpoint.path} cannot be written as a TF1 checkpoint: its config is not known, give one")
    _refuse_what_cannot_be_held(config, checkpoint.path)
    if config.embedding_projection is not None:
        config = config.replace(embedding_projection=None)
    if config.parameter_sharing == "all":
        return checkpoint.replace(config=config), ()
    layers = config.num_hidden_layers
    unshared = config.replace(parameter_sharing="all", num_hidden_groups=layers)
    if [group for group, _ in unshared.layer_parts()] != list(range(layers)):
        raise InputError(
            f"parameter_sharing is {config.parameter_sharing!r} with num_hidden_layers {layers}: the released code "
            "rounds the group of a layer so that two of these layers would share one, so it cannot hold this model"
        )
    if config.parameter_sharing == "none":
        note = f"parameter_sharing 'none' was written as num_hidden_groups {layers}"
        return checkpoint.replace(config=unshared), (note,)
    note = (
        f"parameter_sharing {config.parameter_sharing!r} was written as num_hidden_groups {layers}: each layer has a "
        "copy of the shared part"
    )
    return checkpoint.replace(config=unshared, weights=copied_to_layers(config, checkpoint.weights)), (note,)


def _refuse_what_cannot_be_held(config: AlbertConfig, path: str) -> None:
    problems = []
    if config.layer_norm_eps != 1e-12:
        problems.append(f"layer_norm_eps {config.layer_norm_eps} (the released code has 1e-12)")
    if config.hidden_act == "gelu_erf":
        problems.append("hidden_act 'gelu_erf', the exact GELU (the released code has the tanh form)")
    if config.has_projection and config.embedding_size == config.hidden_size:
        problems.append("embedding_projection with embedding_size = hidden_size (the released code has none there)")
    if problems:
        raise InputError(f"{path} cannot be written as a TF1 checkpoint, which does not hold {'; '.join(problems)}")


def _as_stored(value: np.ndarray) -> np.ndarray:
    value = np.asarray(value)
    return value if np.issubdtype(value.dtype, np.integer) or value.dtype == bool else value.astype(np.float32)
