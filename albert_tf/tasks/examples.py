"""What a task's reader gives, one kind of example for each kind of head, and what a model answers to each.

Texts are as they stand in the file: no clean-up, no cutting. `label`, `answers` and `tags` are None where the file has
none, as in a test split. C labels, K choices.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Union

import numpy as np

LEAST_CHOICES = 2  # of a question


@dataclasses.dataclass(frozen=True)
class TextExample:
    """One text or a pair, for a classifier or a regression.

    Attributes:
        id: the file's own, or the row's number counted from 0.
        text_a, text_b: the texts; `text_b` is None for a single one.
        label: a class by name, several of them for a multi-label task, or a number for a regression.
        place: "train.tsv, line 7": where it stands, for messages.
    """

    id: str
    text_a: str
    text_b: str | None = None
    label: str | tuple[str, ...] | float | None = None
    place: str = ""


@dataclasses.dataclass(frozen=True)
class ChoiceExample:
    """A question about a passage with K choices.

    Attributes:
        id: such as "high1.txt-0".
        passage, question, choices: the texts; the question may hold a "_" that a choice fills.
        label: the index of the right choice.
        group: by what the accuracy is told apart, "middle" or "high"; empty where it is not.
        place: for messages.
    """

    id: str
    passage: str
    question: str
    choices: tuple[str, ...]
    label: int | None = None
    group: str = ""
    place: str = ""


class GoldAnswer(NamedTuple):
    """An answer as the file has it: `start` counts characters of the context; the text there may be another one."""

    text: str
    start: int


@dataclasses.dataclass(frozen=True)
class QuestionExample:
    """A question whose answer is a part of its context, or that has none.

    Attributes:
        id, question, context: as in the file; nothing is stripped.
        answers: all that annotators gave, () for a question that has none, None where the file tells nothing.
        title: of the article.
        place: for messages.
    """

    id: str
    question: str
    context: str
    answers: tuple[GoldAnswer, ...] | None = None
    title: str = ""
    place: str = ""

    @property
    def is_impossible(self) -> bool:
        """Whether the file says that there is no answer."""
        return self.answers == ()


@dataclasses.dataclass(frozen=True)
class TagExample:
    """A sentence of words, each with one tag, "B-PER" for one.

    Attributes:
        id, words, tags: as in the file.
        place: where the sentence begins, for messages.
        word_places: where each word stands, for messages; empty where the words have no lines of their own.
    """

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    place: str = ""
    word_places: tuple[str, ...] = dataclasses.field(default=(), compare=False, repr=False)


_FOR_MESSAGES = ("place", "word_places", "title")  # parts of an example that nothing is learned from
Example = Union[TextExample, ChoiceExample, QuestionExample, TagExample]


@dataclasses.dataclass(frozen=True)
class TextPrediction:
    """The answer to a `TextExample`.

    Attributes:
        id: of the example.
        label: the likeliest class, those above one half of a multi-label task, or the number of a regression.
        probabilities: [C] float32, in the order of the labels; None for a regression.
    """

    id: str
    label: str | tuple[str, ...] | float
    probabilities: np.ndarray | None = None


@dataclasses.dataclass(frozen=True)
class ChoicePrediction:
    """The answer to a `ChoiceExample`: the index of the likeliest choice and the probabilities [K] of all."""

    id: str
    label: int
    probabilities: np.ndarray


@dataclasses.dataclass(frozen=True)
class AnswerPrediction:
    """The answer to a `QuestionExample`.

    Attributes:
        id: of the example.
        text: `context[start:end]`, or "" where the model says that there is no answer.
        start, end: characters of the context; both -1 where there is no answer.
        probability: of this answer among the best ones.
        null_odds: the larger, the likelier there is no answer; None from a model that always answers.
        n_best: the best answers, dicts of JSON values with at least text, probability, start and end.
    """

    id: str
    text: str
    start: int
    end: int
    probability: float
    null_odds: float | None = None
    n_best: tuple[dict[str, Any], ...] = ()


@dataclasses.dataclass(frozen=True)
class TagPrediction:
    """The answer to a `TagExample`: a tag and its probability for each word."""

    id: str
    tags: tuple[str, ...]
    probabilities: tuple[float, ...]


Prediction = Union[TextPrediction, ChoicePrediction, AnswerPrediction, TagPrediction]


def come_in_pairs(examples: Sequence[Example]) -> bool | None:
    """Whether texts are pairs, as the first one tells; None of other examples, and of none at all."""
    first = examples[0] if examples else None
    return first.text_b is not None if isinstance(first, TextExample) else None


def fingerprint(examples: Iterable[Example]) -> str:
    """SHA-256, in hexadecimal, of all that a model can learn from these examples; not of where they stand."""
    digest = hashlib.sha256()
    for example in examples:
        values = {name: value for name, value in vars(example).items() if name not in _FOR_MESSAGES}
        digest.update(f"{type(example).__name__}{values!r}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
