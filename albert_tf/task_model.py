"""A fine-tuned model as a directory: the portable one, and task.json, which tells how texts become its inputs.

albert_config.json, head_config.json, model.safetensors, the vocabulary …   see `formats.portable`
task.json                                                                   what `save` is given as `about`, and

    format      1
    settings    of the kind of task: max_seq_length and whatever else decides the sequences

The directory appears complete or not at all. `from_pretrained` of the model's class reads it as any other.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from albert_tf import keras_classes, sequences, storage
from albert_tf.config import CONFIG_FILE
from albert_tf.errors import InputError
from albert_tf.formats import portable
from albert_tf.formats.reading import read_checkpoint
from albert_tf.head_config import KINDS, HeadConfig
from albert_tf.pretrained_model import PretrainedModel
from albert_tf.task_file import FORMAT, MODEL, TASK_FILE, find, read_about
from albert_tf.task_kinds import catalogue
from albert_tf.task_kinds.task_kind import TaskKind
from albert_tf.tokenizer import Tokenizer


class NoHead(InputError):
    """A model has no head for a task, or one that was never trained."""


class TaskModel(NamedTuple):
    """All that answers need.

    Attributes:
        model: of the class for its head.
        tokenizer: the one it was trained with.
        kind: texts to sequences, outputs to answers.
        about: what task.json tells: `task` (its name), `title`, `scores` (split to metric to value), `recipe`, …; empty
            for a model that was fine-tuned elsewhere.
    """

    model: PretrainedModel
    tokenizer: Tokenizer
    kind: TaskKind
    about: Mapping[str, Any]


def model_class(head: HeadConfig) -> type[PretrainedModel]:
    """The class of the models with such a head."""
    return getattr(keras_classes, KINDS[head.kind].model_class)  # type: ignore[no-any-return]


def save(
    directory: str, model: PretrainedModel, tokenizer: Tokenizer, kind: TaskKind, about: Mapping[str, Any]
) -> None:
    """Writes the directory; another model that is there already, of whatever head, is replaced.

    Args:
        directory: where, a path or an address.
        model, tokenizer, kind: what belongs together.
        about: JSON values to be kept beside them.

    Raises:
        InputError: the directory holds other things, or cannot be written.
    """
    is_own = any(storage.exists(storage.join(directory, name)) for name in (TASK_FILE, CONFIG_FILE))
    with storage.complete_directory(directory, portable.FILES if is_own else ()) as aside:
        model.save_pretrained(aside, tokenizer)
        write_about(aside, {**about, "settings": dict(kind.settings)})


def write_about(directory: str, about: Mapping[str, Any]) -> None:
    """Writes task.json; `about` has the settings."""
    storage.write_json(storage.join(directory, TASK_FILE), {"format": FORMAT, **about})


def load(path: str | os.PathLike[str], **changes: Any) -> TaskModel:
    """Reads a fine-tuned model.

    Args:
        path: a directory that `save` wrote, or the output directory of a run; or any other model with a head for a task
            that `formats.reading.read_checkpoint` reads.
        **changes: settings of the kind of task in place of those in task.json.

    Raises:
        InputError: no model is there, it has no head for a task, no vocabulary, not the weights of its head, or fewer
            positions than `max_seq_length`.
    """
    given = os.fspath(path)
    directory = find(given)
    about = read_about(directory) if directory else {}
    checkpoint = read_checkpoint(directory or given)
    head = checkpoint.head
    if head is None or head.kind not in catalogue.CLASSES:
        raise NoHead(
            f"{given} has no head for a task: give a fine-tuned model, such as OUTPUT_DIR/{MODEL} of "
            "albert_tf.run_finetuning"
        )
    if checkpoint.config is None:
        raise InputError(f"{given} does not tell the sizes of its model: put its {CONFIG_FILE} beside it")
    positions = checkpoint.config.max_position_embeddings
    settings = {"max_seq_length": min(sequences.LONGEST, positions), **about.get("settings", {}), **changes}
    kind = catalogue.kind_from_settings(head, settings)
    sequences.check_positions(kind.settings["max_seq_length"], positions)
    model = model_class(head).from_checkpoint(checkpoint, head, checkpoint.config)
    if model.load_report.missing:
        raise NoHead(f"{given} has no {next(iter(model.load_report.missing))}: its head was never trained")
    if model.vocabulary is None:
        raise InputError(f"{given} has no vocabulary: albert_tf.convert with --vocabulary puts one beside a model")
    tokenizer = model.vocabulary.tokenizer()
    return TaskModel(model, tokenizer, kind, {key: value for key, value in about.items() if key != "settings"})
