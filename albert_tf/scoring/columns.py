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
from albert_tf.tasks.choice_file import without_empty_end
from albert_tf.tasks.text_file import ID_NAMES

_Keys = dict[str, Sequence[str]]  # of columns, for each input


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
    columns: Mapping[str, Sequence[str]] | None = None,
    has_header: bool | None = None,
) -> Iterator[Given]:
    """The instances of rows.

    Where the model reads a list, it is a list of JSON in one column, or one text in each of several; empty ones at the
    end are none.

    Args:
        found: the rows.
        forms: of the model's instances.
        row_form: of the file; of `LINES` a row is the one input of the model.
        columns: input to the name of its column, or its number counted from 0, or to those of several columns; inputs
            that are not named are looked for by usual names and, in a table without a header, by their order.
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


def _check_names(columns: Mapping[str, Sequence[str]], forms: Sequence[Form]) -> None:
    inputs = {given.name: given for form in forms for given in form}
    for name, keys in columns.items():
        if name not in inputs:
            raise InputError(f"the model has no input {name!r}: it reads {described(forms)}")
        if len(keys) > 1 and not inputs[name].is_list:
            raise InputError(f"--columns names {len(keys)} columns for {name}, but it is one text: name one")
    if not any(columns.keys() <= {given.name for given in form} for form in forms):
        raise InputError(f"--columns names {' and '.join(columns)}, but the model reads {described(forms)}")


def _is_header(cells: Sequence[str], forms: Sequence[Form], columns: Mapping[str, Sequence[str]]) -> bool:
    known = {name for form in forms for given in form for name in (given.name, *given.column_names)}
    asked = {column for several in columns.values() for column in several if not column.isdecimal()}
    if asked.intersection(cells) or known.intersection(cell.lower() for cell in cells):
        return True
    return any(given.series(cells, ()) for form in forms for given in form if given.series)


def _of_objects(found: Iterable[Row], forms: Sequence[Form], columns: Mapping[str, Sequence[str]]) -> Iterator[Given]:
    for place, values in found:
        assert isinstance(values, dict)
        form, keys = _find(list(values), (), forms, columns, place)
        identifier = next((values[key] for key in values if key.lower() in ID_NAMES), None)
        under = {name: [values[key] for key in several] for name, several in keys.items()}
        yield Given(place, _instance(form, under), _whole(identifier, place))


def _whole(identifier: Any, place: str) -> Any:
    """An identifier, if it can be written."""
    try:
        json.dumps(identifier, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{place}: its id has half of a surrogate pair: give it whole characters") from error
    return identifier


def _of_cells(
    found: Iterator[Row], forms: Sequence[Form], columns: Mapping[str, Sequence[str]], names: Sequence[str]
) -> Iterator[Given]:
    first = next(found)
    width = len(first.values)
    form, keys = _find_columns(width, forms, columns, names, first.place)
    positions = {
        name: [names.index(key) if key in names else int(key) for key in several] for name, several in keys.items()
    }
    identifier = next((at for at, name in enumerate(names) if name.lower() in ID_NAMES), None)
    if any(identifier in several for several in positions.values()):
        identifier = None
    for place, cells in itertools.chain([first], found):
        assert isinstance(cells, list)
        under = {name: [cells[at] for at in several] for name, several in positions.items()}
        yield Given(place, _instance(form, under), None if identifier is None else cells[identifier])


def _find_columns(
    width: int, forms: Sequence[Form], columns: Mapping[str, Sequence[str]], names: Sequence[str], place: str
) -> tuple[Form, _Keys]:
    numbers = [str(number) for number in range(width)]
    if names or columns:
        return _find(names, numbers, forms, columns, place)
    for form in forms:
        if len(form) == width and (width == 1 or len(forms) == 1 or form[-1].is_list):  # else the last may be a label
            return form, {given.name: [number] for given, number in zip(form, numbers)}
    raise InputError(
        f"{place}: there are {width} column(s) and no header, and the model reads {described(forms)}: say which column "
        f"is what (--columns={forms[0][0].name}=0)"
    )


def _find(
    names: Sequence[str],
    numbers: Sequence[str],
    forms: Sequence[Form],
    columns: Mapping[str, Sequence[str]],
    place: str,
) -> tuple[Form, _Keys]:
    """The form that the most columns fit, and the keys of each of its inputs.

    Args:
        names: of the columns.
        numbers: by which they can be named too.

    Raises:
        InputError: none fits.
    """
    shown = messages.names(names or numbers)
    for name, several in columns.items():
        for key in several:
            if key not in names and key not in numbers:
                raise InputError(f"{place}: there is no column {key!r} for {name}: there are {shown}")
    fewest: list[str] = []  # of what is missing, to be told
    for form in sorted(forms, key=len, reverse=True):
        found = _keys_of(form, names, columns)
        missing = [given.name for given in form if given.name not in found]
        if not columns.keys() <= found.keys():
            continue
        if not missing:
            return form, found
        fewest = missing if not fewest else min(fewest, missing, key=len)
    raise InputError(
        f"{place}: the model reads {described(forms)}, and the file has {shown}: say which column is what "
        f"(--columns={fewest[0]}=NAME)"
    )


def _keys_of(form: Form, names: Sequence[str], columns: Mapping[str, Sequence[str]]) -> _Keys:
    """The keys of those inputs that there are columns for, by request or by usual names; none is taken twice."""
    found: _Keys = {}
    for given in form:
        taken = {key for several in (*found.values(), *columns.values()) for key in several}
        free = {name.lower(): name for name in reversed(names) if name not in taken}
        usual = [free[name] for name in (given.name, *given.column_names) if name in free]
        keys: Sequence[str] = columns.get(given.name) or usual[:1]
        if not keys and given.series is not None:
            keys = given.series(names, taken)
        if keys:
            found[given.name] = keys
    return found


def _instance(form: Form, under: Mapping[str, list[Any]]) -> dict[str, Any]:
    """An instance of what is under the keys of each input."""
    instance: dict[str, Any] = {}
    for given in form:
        values = under[given.name]
        if len(values) > 1:
            instance[given.name] = without_empty_end(values)
            continue
        instance[given.name] = values[0]
        if given.is_list and isinstance(values[0], str):
            with contextlib.suppress(ValueError):  # what it is instead is told where all instances are checked
                instance[given.name] = json_text.parse(values[0])
    return instance
