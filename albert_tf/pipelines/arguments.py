"""What a person gives to the objects: lists as rows, texts, labels, and a sentence for what does not fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.errors import InputError


def column(name: str, values: Any, form: str = "list") -> list[Any]:
    """A list of a person's own as a list; `form` is what messages call it.

    Raises:
        InputError: it is a single string, which would be read letter by letter, or nothing that has an order.
    """
    if isinstance(values, str):
        raise InputError(f"{name} is the string {values!r:.40}, but must be a {form}")
    if not isinstance(values, Iterable) or isinstance(values, (bytes, Mapping, set, frozenset)):
        raise InputError(f"{name} is {values!r:.40}, but must be a {form}")
    return list(values)


def rows_of(**columns: Iterable[Any] | None) -> list[tuple[Any, ...]]:
    """Columns side by side; where the last one is None, it is one of Nones.

    Raises:
        InputError: the columns differ in length, or one is no list.
    """
    last = list(columns)[-1]
    given = {name: column(name, values) for name, values in columns.items() if values is not None or name != last}
    lengths = {name: len(values) for name, values in given.items()}
    if len(set(lengths.values())) > 1:
        counted = ", ".join(f"{length} {name}" for name, length in lengths.items())
        raise InputError(f"there are {counted}: give as many of each")
    count = next(iter(lengths.values()))
    return list(zip(*(given.get(name, [None] * count) for name in columns)))


def validation_columns(validation_data: Any, *names: str) -> tuple[Any, ...]:
    """What `validation_data` holds.

    Raises:
        InputError: it is no tuple of as many lists as `fit` takes.
    """
    if not isinstance(validation_data, (tuple, list)) or len(validation_data) != len(names):
        raise InputError(f"validation_data must be the tuple ({', '.join(names)})")
    return tuple(validation_data)


def text_of(value: Any, place: str) -> str:
    """The text itself.

    Raises:
        InputError: it is no string.
    """
    if not isinstance(value, str):
        raise InputError(f"{place} is {value!r:.60}, but must be a string")
    return value


def texts_of(values: Any, place: str, what: str) -> tuple[str, ...]:
    """A list of texts, `what` they are, in one row.

    Raises:
        InputError: it is no list, or one of them is no string.
    """
    texts = column(place, values, f"list of {what}")
    return tuple(text_of(text, f"{place}[{number}]") for number, text in enumerate(texts))


def plain(value: Any) -> Any:
    """NumPy's scalars and arrays, and those of TensorFlow, as Python's numbers, strings and lists."""
    value = value.numpy() if isinstance(value, tf.Tensor) else value
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def label_name(label: Any) -> Any:
    """A number or truth value as the string that is its name, so that 0 and 1 will do; all else as it is."""
    label = plain(label)
    return str(label) if isinstance(label, (bool, int, float)) else label


def label_names_given(labels: Any, place: str = "labels", what: str = "names") -> tuple[str, ...]:
    """The names of labels as strings, see `label_name`.

    Raises:
        InputError: they are no list, or one has no name.
    """
    return texts_of(map(label_name, column(place, plain(labels), f"list of {what}")), place, what)


def settings_given(**settings: Any) -> dict[str, Any]:
    """Those that are not None."""
    return {name: value for name, value in settings.items() if value is not None}
