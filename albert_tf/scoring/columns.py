"""Rows of a file to instances: which column is which input of the model."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from albert_tf import json_text
from albert_tf.answering.answerer import Form, described
from albert_tf.errors import InputError
from albert_tf.scoring.source import LINES, Row
from albert_tf.tasks import rows as messages
from albert_tf.tasks.text_file import ID_NAMES


class Given(NamedTuple):
    """An instance, its place in the file, and its identifier where the file has one."""

    place: str
    instance: Mapping[str, Any]
    id: Any = None


def instances(
    found: Iterable[Row],
    forms: Sequence[Form],
    *,
    row_form: str,
    columns: Mapping[str, str] | None = None,
    has_header: bool | None = None,
) -> Iterator[Given]:
    """The instances of rows; where the model reads a list, a text that is a JSON list becomes it.

    Args:
        found: the rows.
        forms: of the model's instances.
        row_form: of the file; of `LINES` a row is the one input of the model.
        columns: input to the name of its column, or its number counted from 0; inputs that are not named are looked
            for by usual names and, in a table without a header, by their order.
        has_header: whether the first row of a table names the columns; None: whether it has a name of an input.

    Raises:
        InputError: a column is not there, lines are too little for the model, or an identifier is no Unicode text; with
            file and line.
    """
    columns = dict(columns or {})
    _check_names(columns, forms)
    remaining = iter(found)
    first = next(remaining, None)
    if first is None:
        return
    if isinstance(first.values, dict):
        yield from _of_objects(itertools.chain([first], remaining), forms, columns)
        return
    if row_form == LINES and all(len(form) > 1 for form in forms):
        raise InputError(
            f"{first.place}: a line is one text, and the model reads {described(forms)}: give --format=tsv, csv or "
            "jsonl"
        )
    names: list[str] = []
    if row_form != LINES and has_header is not False:
        cells = [cell.strip() for cell in first.values]
        if has_header or _is_header(cells, forms, columns):
            names, first = cells, next(remaining, None)
    if first is not None:
        yield from _of_cells(itertools.chain([first], remaining), forms, columns, names)


def _check_names(columns: Mapping[str, str], forms: Sequence[Form]) -> None:
    names = {given.name for form in forms for given in form}
    unknown = [name for name in columns if name not in names]
    if unknown:
        raise InputError(f"the model has no input {unknown[0]!r}: it reads {described(forms)}")


def _is_header(cells: Sequence[str], forms: Sequence[Form], columns: Mapping[str, str]) -> bool:
    known = {name for form in forms for given in form for name in (given.name, *given.column_names)}
    asked = {column for column in columns.values() if not column.isdecimal()}
    return bool(asked.intersection(cells) or known.intersection(cell.lower() for cell in cells))


def _of_objects(found: Iterable[Row], forms: Sequence[Form], columns: Mapping[str, str]) -> Iterator[Given]:
    for place, values in found:
        assert isinstance(values, dict)
        form, keys = _find(list(values), forms, columns, place)
        identifier = next((values[key] for key in values if key.lower() in ID_NAMES), None)
        yield Given(
            place, _instance(form, {name: values[key] for name, key in keys.items()}), _whole(identifier, place)
        )


def _whole(identifier: Any, place: str) -> Any:
    """An identifier, if it can be written."""
    try:
        json.dumps(identifier, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{place}: its id has half of a surrogate pair: give it whole characters") from error
    return identifier


def _of_cells(
    found: Iterator[Row], forms: Sequence[Form], columns: Mapping[str, str], names: Sequence[str]
) -> Iterator[Given]:
    first = next(found)
    width = len(first.values)
    form, keys = _find_columns(width, forms, columns, names, first.place)
    positions = {name: names.index(key) if key in names else int(key) for name, key in keys.items()}
    identifier = next((at for at, name in enumerate(names) if name.lower() in ID_NAMES), None)
    if identifier in positions.values():
        identifier = None
    for place, cells in itertools.chain([first], found):
        assert isinstance(cells, list)
        instance = _instance(form, {name: cells[at] for name, at in positions.items()})
        yield Given(place, instance, None if identifier is None else cells[identifier])


def _find_columns(
    width: int, forms: Sequence[Form], columns: Mapping[str, str], names: Sequence[str], place: str
) -> tuple[Form, dict[str, str]]:
    numbers = [str(number) for number in range(width)]
    if names or columns:
        return _find([*names, *numbers], forms, columns, place)
    for form in forms:
        if len(form) == width and (width == 1 or len(forms) == 1):  # else the second one may be a label
            return form, dict(zip((given.name for given in form), numbers))
    raise InputError(
        f"{place}: there are {width} column(s) and no header, and the model reads {described(forms)}: say which column "
        f"is what (--columns={forms[0][0].name}=0)"
    )


def _find(
    keys: Sequence[str], forms: Sequence[Form], columns: Mapping[str, str], place: str
) -> tuple[Form, dict[str, str]]:
    """The form that the most keys fit, and the key of each of its inputs.

    Raises:
        InputError: none fits.
    """
    for name, key in columns.items():
        if key not in keys:
            raise InputError(f"{place}: there is no column {key!r} for {name}: there are {messages.names(keys)}")
    for form in sorted(forms, key=len, reverse=True):
        found: dict[str, str] = {}
        for given in form:
            usual = (given.name, *given.column_names)
            free = {key.lower(): key for key in reversed(keys) if key not in (*found.values(), *columns.values())}
            keys_of_it = [columns[given.name]] if given.name in columns else [free[n] for n in usual if n in free]
            if keys_of_it:
                found[given.name] = keys_of_it[0]
        if len(found) == len(form) and set(columns) <= set(found):
            return form, found
    raise InputError(
        f"{place}: the model reads {described(forms)}, and the file has {messages.names(keys)}: say which column is "
        f"what (--columns={forms[0][0].name}=NAME)"
    )


def _instance(form: Form, values: dict[str, Any]) -> dict[str, Any]:
    for given in form:
        value = values[given.name]
        if given.is_list and isinstance(value, str):
            with contextlib.suppress(ValueError):  # what it is instead is told where all instances are checked
                values[given.name] = json_text.parse(value)
    return values
