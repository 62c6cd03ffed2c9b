"""How many characters a model has to read for each row of a request."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from albert_tf.serving.tensors import BASE64


def of_rows(instances: list[Any]) -> tuple[int, ...]:
    """For each of the values in the row form."""
    return tuple(map(_of_row, instances))


def of_columns(inputs: Any) -> tuple[int, ...]:
    """For each row of the column form; what is no list counts for the first."""
    columns = inputs.values() if isinstance(inputs, Mapping) and set(inputs) != {BASE64} else [inputs]
    lists = [column if isinstance(column, list) else [column] for column in columns]
    return tuple(_of_row(dict(enumerate(values))) for values in itertools.zip_longest(*lists))


def _of_row(instance: Any) -> int:
    """A text beside a list of texts is read with each of them, as a passage is with each option."""
    values = instance.values() if isinstance(instance, Mapping) else [instance]
    alone = times = listed = 0
    for value in values:
        lengths = list(_lengths(value))
        if isinstance(value, list):
            times = max(times, len(lengths))
            listed += sum(lengths)
        else:
            alone += sum(lengths)
    return alone * max(1, times) + listed


def _lengths(value: Any) -> Iterator[int]:
    """Of all texts in it; an empty one has to be read too."""
    if isinstance(value, str):
        yield max(1, len(value))
    elif isinstance(value, (list, Mapping)):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _lengths(each)
