"""What the kinds of tasks have in common: a model's inputs, labels by name.

B rows of a batch, S its padded length, C labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.head_config import REGRESSION, HeadConfig
from albert_tf.tasks.labels import is_number

NO_LABEL = -1  # in place of a label's number


def model_inputs(batch: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """What every model reads: `input_ids`, `input_mask` and `segment_ids`, each [B,S] (or [B,K,S])."""
    return {name: batch[name] for name in ("input_ids", "input_mask", "segment_ids")}


def label_names(head: HeadConfig) -> tuple[str, ...]:
    """The labels of a head in order; one without names has "0", "1" and so on, and a regression has none."""
    if head.problem == REGRESSION:
        return ()
    return head.labels or tuple(map(str, range(head.num_labels or 0)))


def place_of(example: Any) -> str:
    """Where an example stands, for a message: its file and line, else its id."""
    return getattr(example, "place", "") or f"example {example.id}"


def label_id_of(label: Any, numbers: Mapping[str, int], place: str) -> int:
    """The number of a label that stands at a place.

    Raises:
        InputError: it is none of them; the message says where and names them.
    """
    number = numbers.get(label)
    if number is None:
        known = ", ".join(list(numbers)[:20]) + (" and others" if len(numbers) > 20 else "")
        amounts = all(map(is_number, (label, *numbers)))
        hint = ": if they are amounts and no classes, it is a regression (--problem_type=regression)" if amounts else ""
        raise InputError(f"{place}: the label is {label!r}, but must be one of {known}{hint}")
    return number
