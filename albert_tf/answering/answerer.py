"""What a model is asked and what it answers, as dicts; the interface of all answerers.

N instances, C labels, K choices, G gaps, H the width of vectors; W words of a sentence.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from albert_tf.errors import InputError

Instance = Mapping[str, Any]
Answer = dict[str, Any]

STRING, FLOAT, INT, BOOL = "DT_STRING", "DT_FLOAT", "DT_INT32", "DT_BOOL"  # TensorFlow's names
ANY = -1  # a size that differs

_MOST_NAMES = 12  # of an instance that are quoted in a message


class Input(NamedTuple):
    """A text, or a list of texts, of an instance.

    Attributes:
        name: its key.
        column_names: names of columns of files that stand for it, in lower case.
        is_list: whether it is a list of texts.
        series: of a list, finds in the names of a file's columns, but for those that are something else, the ones that
            hold a text of it each, in order.
    """

    name: str
    column_names: tuple[str, ...] = ()
    is_list: bool = False
    series: Callable[[Collection[str], Collection[str]], tuple[str, ...]] | None = None


Form = tuple[Input, ...]  # what an instance has, all of it


class Output(NamedTuple):
    """A value of an answer: its key, one of TensorFlow's names of types, and its shape behind the dimension N."""

    name: str
    type: str
    shape: tuple[int, ...] = ()


class BadInstance(InputError):
    """An instance is not what the model reads; `index` is its place among those that were given."""

    def __init__(self, index: int, problem: str):
        super().__init__(f"instance {index}: {problem}")
        self.index = index
        self.problem = problem


class Answerer(Protocol):
    """Answers with one model.

    Attributes:
        task: what it does, for a person.
        forms: what an instance has, one of several forms.
        outputs: what an answer has, in order.
        labels: C names, of models with labels; else ().
        example: an instance to begin with.
    """

    task: str
    forms: tuple[Form, ...]
    outputs: tuple[Output, ...]
    labels: tuple[str, ...]
    example: Instance

    def answers(self, instances: Sequence[Instance]) -> list[Answer]:
        """One answer for each of N instances, in order; those of like length are read together.

        Raises:
            BadInstance: one lacks an input, has one too many, or one of another type.
        """


def checked(instances: Sequence[Instance], forms: Sequence[Form]) -> None:
    """Raises BadInstance: see `Answerer.answers`."""
    by_names = {frozenset(given.name for given in form): form for form in forms}
    for index, instance in enumerate(instances):
        if not isinstance(instance, Mapping):
            raise BadInstance(index, f"it is {instance!r:.60}, but must be an object with {described(forms)}")
        form = by_names.get(frozenset(instance))
        if form is None:
            has = ", ".join(f"{name!s:.40}" for name in itertools.islice(instance, _MOST_NAMES)) or "nothing"
            raise BadInstance(index, f"it has {has}, but must have {described(forms)}")
        for given in form:
            check = _check_list if given.is_list else _check_text
            check(instance[given.name], index, given.name)


def described(forms: Sequence[Form]) -> str:
    """The names of inputs for a message: "text, or text_a and text_b"."""
    return ", or ".join(" and ".join(given.name for given in form) for form in forms)


def number(value: Any) -> float:
    """The shortest decimal number that is this float32."""
    return float(str(np.float32(value)))


def numbers(values: Any) -> list[float]:
    """`number` of each."""
    return [number(value) for value in values]


def _check_list(values: Any, index: int, name: str) -> None:
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise BadInstance(index, f"{name} is {values!r:.60}, but must be a list of texts")
    for place, value in enumerate(values):
        _check_text(value, index, f"{name}[{place}]")


def _check_text(value: Any, index: int, name: str) -> None:
    if not isinstance(value, str):
        raise BadInstance(index, f"{name} is {value!r:.60}, but must be a text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise BadInstance(index, f"{name} has half of a surrogate pair at character {error.start}") from error
