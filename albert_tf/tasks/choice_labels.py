"""Which of several choices a label means: by a number, a letter or the name of the choice's column, or by its text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from albert_tf.errors import InputError
from albert_tf.json_text import shown
from albert_tf.tasks.submissions import LETTERS


class Labelled(NamedTuple):
    """A label as it stands in the file, the choices beside it, and where that is."""

    value: Any
    choices: Sequence[str]
    place: str


class _Meanings(NamedTuple):
    """The choice that a label names, and the one whose text it is; None for none.

    Of equal texts it is that of the choice that is named, or else of the first.
    """

    named: int | None
    text: int | None


def indices(labels: Sequence[Labelled], columns: Sequence[str], first_label: int | None) -> list[int | None]:
    """The index of each right choice.

    A label can be the number of one choice and the text of another ("2" of the choices 2, 4 and 6). Such ones are what
    the other labels of the file are: texts where some of these can be nothing else, or names where some can be nothing
    else, but not where both are so.

    Args:
        labels: all those of a file.
        columns: the names of the columns that hold the choices; () where they have none.
        first_label: the number of the first choice, which also says that what can be a name is one; None: 0, and
            nothing is said.

    Raises:
        InputError: a label means none of the choices, or one of two and nothing tells which.
    """
    found = [_meanings(label, columns, first_label or 0) for label in labels]
    some_are_names = any(text is None for _, text in found)
    some_are_texts = any(named is None for named, _ in found)
    if first_label is None and some_are_names == some_are_texts:
        _refuse_unclear(labels, found)
    prefers_text = first_label is None and some_are_texts and not some_are_names
    pairs = [(text, named) if prefers_text else (named, text) for named, text in found]
    return [second if first is None else first for first, second in pairs]


def _meanings(label: Labelled, columns: Sequence[str], first_label: int) -> _Meanings:
    """Both that a label can have.

    Raises:
        InputError: it has none.
    """
    value, choices, place = label
    text = str(value).strip()
    is_choice = range(len(choices))
    named = int(text) - first_label if text.isdecimal() else LETTERS.find(text) if len(text) == 1 else -1
    if named not in is_choice and text in columns and len(columns) == len(choices):
        named = columns.index(text)
    of_text = [at for at in is_choice if choices[at] == str(value)]
    if named in is_choice:
        return _Meanings(named, named if named in of_text else next(iter(of_text), None))
    if of_text:
        return _Meanings(None, of_text[0])
    last = first_label + len(choices) - 1
    raise InputError(
        f"{place}: the right choice is {shown(value)}, but must be a letter from A to {LETTERS[len(choices) - 1]}, "
        f"a number from {first_label} to {last} (--first_choice_label says where they begin), the name of a choice's "
        "column, or a choice's text"
    )


def _refuse_unclear(labels: Sequence[Labelled], found: Sequence[_Meanings]) -> None:
    for label, (named, text) in zip(labels, found):
        if named is not None and text is not None and named != text:
            raise InputError(
                f"{label.place}: the right choice is {shown(label.value)}, which names choice {LETTERS[named]} and is "
                f"the text of choice {LETTERS[text]}, and the other labels of the file do not tell which is meant: "
                "--first_choice_label=0 (or 1) says that numbers and letters name choices; where they are texts, write "
                "numbers or letters in their place"
            )
