"""Any model that is to be exported, with its vocabulary and what its task.json tells."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from albert_tf import task_model
from albert_tf.errors import InputError
from albert_tf.formats.reading import read_checkpoint
from albert_tf.head_config import HeadConfig
from albert_tf.pretrained_model import PretrainedModel
from albert_tf.task_kinds import catalogue
from albert_tf.task_kinds.task_kind import TaskKind
from albert_tf.tokenizer import Tokenizer
from albert_tf.weight_names import part_of

AUTO, ENCODER = "auto", "encoder"


class Source(NamedTuple):
    """The model; its tokenizer, where there is one; its kind of task, where it has one; and what task.json tells."""

    model: PretrainedModel
    tokenizer: Tokenizer | None
    kind: TaskKind | None
    about: Mapping[str, Any]


def load(path: str | os.PathLike[str], *, head: str = AUTO, **settings: Any) -> Source:
    """Reads a model of any form.

    Args:
        path: whatever `formats.reading.read_checkpoint` reads, or the output directory of `run_finetuning`.
        head: "auto" for the head that is there, "encoder" for none.
        **settings: of its kind of task, in place of those in task.json.

    Raises:
        InputError: no model is there, its head was never trained, or it does not tell its sizes.
    """
    given = os.fspath(path)
    checkpoint = read_checkpoint(task_model.find(given) or given)
    found = checkpoint.head
    if head == AUTO and found is not None and found.kind in catalogue.CLASSES:
        return Source(*task_model.load(given, **settings))
    if checkpoint.config is None:
        raise InputError(f"{given} does not tell the sizes of its model: put its albert_config.json beside it")
    of_tasks = [name for name in settings if name != "max_seq_length"]
    if of_tasks:
        raise InputError(f"{of_tasks[0]} is for a fine-tuned model, but {given} is exported without a head for a task")
    if found is None or head == ENCODER:
        found = HeadConfig(ENCODER)
    arguments: dict[str, Any] = {}
    if found.kind == ENCODER:
        arguments["with_pooler"] = any(name.startswith("bert/pooler") for name in checkpoint.weights)
    model = task_model.model_class(found).from_checkpoint(checkpoint, found, checkpoint.config, **arguments)
    missing = [name for name in model.load_report.missing if part_of(name) != "sentence_head"]
    if missing:
        raise InputError(f"{given} has no {missing[0]}: --head=encoder exports the model without its head")
    return Source(model, None if model.vocabulary is None else model.vocabulary.tokenizer(), None, {})
