"""Lists of a person's own as rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from albert_tf.errors import InputError


def rows_of(**columns: Iterable[Any] | None) -> list[tuple[Any, ...]]:
    """Columns side by side; a column that is None is one of Nones.

    Raises:
        InputError: the columns differ in length, or one is a single string.
    """
    for name, column in columns.items():
        if isinstance(column, str):
            raise InputError(f"{name} is the string {column!r:.40}, but must be a list")
    given = {name: list(column) for name, column in columns.items() if column is not None}
    lengths = {name: len(column) for name, column in given.items()}
    if len(set(lengths.values())) > 1:
        counted = ", ".join(f"{length} {name}" for name, length in lengths.items())
        raise InputError(f"there are {counted}: give as many of each")
    count = next(iter(lengths.values()), 0)
    return list(zip(*(given.get(name, [None] * count) for name in columns)))


def settings_given(**settings: Any) -> dict[str, Any]:
    """Those that are not None."""
    return {name: value for name, value in settings.items() if value is not None}


def label_names_given(labels: Iterable[str]) -> tuple[str, ...]:
    """The names of labels as strings, so that 0 and 1 will do.

    Raises:
        InputError: they are one string, which would be read letter by letter.
    """
    if isinstance(labels, str):
        raise InputError(f"labels is the string {labels!r}, but must be a list of names")
    return tuple(map(str, labels))
