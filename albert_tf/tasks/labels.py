"""The labels of a task whose training file tells them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from albert_tf.errors import InputError
from albert_tf.head_config import MULTI_LABEL, REGRESSION
from albert_tf.tasks.examples import Example, TagExample, TextExample
from albert_tf.tasks.task import Task

_FEW_LABELS = 20  # a small file may have as many labels as rows


def find_labels(task: Task, examples: Sequence[Example]) -> tuple[str, ...]:
    """The names of the columns of the logits, in order: the task's own or, where it names none, those in `examples`.

    Found ones are sorted, by value where all are whole numbers; so their order does not depend on that of the file.

    Args:
        task: the task.
        examples: those of the training file.

    Raises:
        InputError: the examples have fewer than two labels (one for a multi-label task or a tagger), or a classifier's
            are so many that the column must be another one's.
    """
    if task.labels or task.problem_type == REGRESSION or task.head not in ("classifier", "tagger"):
        return task.labels
    found: set[str] = set()
    for example in examples:
        found.update(_labels(example))
    least = 2 if task.head == "classifier" and task.problem_type != MULTI_LABEL else 1
    if len(found) < least:
        raise InputError(
            f"{task.title}: the training file has {len(found)} label(s) ({', '.join(sorted(found)) or 'none'}), and "
            f"at least {least} must be told apart: {_is_it_the_column(examples)}"
        )
    if task.head == "classifier" and len(found) > max(_FEW_LABELS, len(examples) // 2):
        are_numbers = " (numbers are learned with --problem_type=regression)" if all(map(is_number, found)) else ""
        raise InputError(
            f"{task.title}: the training file has {len(found)} labels in {len(examples)} rows, {min(found)[:40]!r} for "
            f"one{are_numbers}: {_is_it_the_column(examples)}"
        )
    if all(_is_whole(label) for label in found):
        return tuple(sorted(found, key=lambda label: (int(label), label)))
    return tuple(sorted(found))


def is_number(label: Any) -> bool:
    """Whether a label could be learned as a number."""
    try:
        return math.isfinite(float(label))
    except (TypeError, ValueError):
        return False


def _is_it_the_column(examples: Sequence[Example]) -> str:
    """A question for a person, with the place of the first row where it is known."""
    place = examples[0].place if examples else ""
    return "is the right column named (--label_column)?" + (f" The rows begin in {place}" if place else "")


def _labels(example: Example) -> tuple[str, ...]:
    if isinstance(example, TagExample):
        return example.tags or ()
    if isinstance(example, TextExample) and isinstance(example.label, str):
        return (example.label,)
    if isinstance(example, TextExample) and isinstance(example.label, tuple):
        return example.label
    return ()


def _is_whole(label: str) -> bool:
    digits = label[1:] if label.startswith("-") else label
    return digits.isdecimal() and digits.isascii()
