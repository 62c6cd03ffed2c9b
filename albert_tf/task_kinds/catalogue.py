"""The kind of a task by its head."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from albert_tf.errors import InputError
from albert_tf.head_config import ANSWERABLE, HeadConfig
from albert_tf.task_kinds.answers import AnswerKind
from albert_tf.task_kinds.choices import ChoiceKind
from albert_tf.task_kinds.tags import TagKind
from albert_tf.task_kinds.task_kind import TaskKind
from albert_tf.task_kinds.texts import TextKind
from albert_tf.tasks.task import Task

CLASSES: Mapping[str, type] = {
    "classifier": TextKind,
    "multiple_choice": ChoiceKind,
    "tagger": TagKind,
    "span": AnswerKind,
    ANSWERABLE: AnswerKind,
}
_WITHOUT_EFFECT = {"span": ("null_threshold",)}  # of the settings that a class takes, by head


def kind_of(task: Task, labels: Sequence[str] = (), *, max_seq_length: int, **settings: Any) -> TaskKind:
    """The kind of a task.

    Args:
        task: the task.
        labels: found in the data, for a task that names none.
        max_seq_length: the most pieces of a sequence.
        **settings: further ones of this kind, such as `doc_stride`; None stands for its own default.

    Raises:
        InputError: there is no such setting for this kind of task, or a value does not fit.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    return kind_from_settings(task.head_config(labels), {"max_seq_length": max_seq_length, **given})


def kind_from_settings(head: HeadConfig, settings: Mapping[str, Any]) -> TaskKind:
    """The kind for a head with its settings, as a `TaskKind` tells them.

    Raises:
        InputError: there is no task for this head, no such setting, or a value does not fit.
    """
    if head.kind not in CLASSES:
        raise InputError(f"a head of the kind {head.kind!r} is for no task: those for tasks are {', '.join(CLASSES)}")
    known = _parameters(head.kind)
    unknown = [name for name in settings if name not in known]
    if unknown:
        names = ", ".join(settings_of(head.kind))
        raise InputError(f"{unknown[0]} is no setting of a task with the head {head.kind!r}: it has {names}")
    made: TaskKind = CLASSES[head.kind](head, **settings)
    return made


def tuned(kind: TaskKind, scores: Mapping[str, float]) -> TaskKind:
    """The kind with what the scores on examples with answers tell: the threshold of "there is no answer"."""
    return kind.tuned(scores) if isinstance(kind, AnswerKind) else kind


def settings_of(head_kind: str) -> tuple[str, ...]:
    """The names of the settings that decide something for tasks with such a head."""
    return tuple(name for name in _parameters(head_kind) if name not in _WITHOUT_EFFECT.get(head_kind, ()))


def _parameters(head_kind: str) -> tuple[str, ...]:
    """The names of all settings that the kind's class takes."""
    return tuple(name for name in inspect.signature(CLASSES[head_kind]).parameters if name != "head")
