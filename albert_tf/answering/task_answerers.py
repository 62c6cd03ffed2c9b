"""Answerers of the heads for tasks: how an instance becomes an example, and a prediction an answer.

The names of outputs are those of the SavedModels that `albert_tf.exporting` writes.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Union

import numpy as np

from albert_tf import sequences
from albert_tf.answering.answerer import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    STRING,
    Answer,
    BadInstance,
    Form,
    Input,
    Instance,
    Output,
    checked,
    number,
    numbers,
)
from albert_tf.exporting.runtimes.file_predictor import FilePredictor
from albert_tf.head_config import ANSWERABLE, MULTI_LABEL, REGRESSION
from albert_tf.predicting import Predictor
from albert_tf.probabilities import sigmoid
from albert_tf.task_file import PAIRS
from albert_tf.task_kinds.arrays import label_names
from albert_tf.task_kinds.choices import question_with
from albert_tf.task_kinds.task_kind import TaskKind
from albert_tf.tasks import choice_file, text_file
from albert_tf.tasks.examples import LEAST_CHOICES, ChoiceExample, QuestionExample, TagExample, TextExample
from albert_tf.tasks.own_files import COLUMNS
from albert_tf.tokenizer import Tokenizer

AnyPredictor = Union[Predictor, FilePredictor]
IS_CUT = Output("is_cut", BOOL)


class TaskAnswerer:
    """What all of them share; see `Answerer`.

    Args:
        tokenizer, kind, about: see `TaskModel`.
        predictor: of examples of this kind.
    """

    task: str
    forms: tuple[Form, ...]
    outputs: tuple[Output, ...]
    labels: tuple[str, ...] = ()
    example: Instance

    def __init__(self, tokenizer: Tokenizer, kind: TaskKind, about: Mapping[str, Any], predictor: AnyPredictor):
        del about
        self._tokenizer = tokenizer
        self._kind = kind
        self._predictor = predictor

    def answers(self, instances: Sequence[Instance]) -> list[Answer]:
        """See `Answerer`; `is_cut` tells of a text that was longer than the model reads."""
        checked(instances, self.forms)
        if not instances:
            return []
        examples = [self._example(index, instance) for index, instance in enumerate(instances)]
        predictions = self._predictor.predict(examples, self._tokenizer)
        answers = [self._answer(example, prediction) for example, prediction in zip(examples, predictions)]
        return [{**answer, "is_cut": is_cut} for answer, is_cut in zip(answers, self._are_cut(examples))]

    def _sizes(self, texts: Sequence[str]) -> Iterator[int]:
        """How many pieces each text has."""
        return iter(sequences.encode(texts, self._tokenizer).sizes.tolist())

    def _example(self, index: int, instance: Instance) -> Any:
        raise NotImplementedError

    def _answer(self, example: Any, prediction: Any) -> Answer:
        raise NotImplementedError

    def _are_cut(self, examples: Sequence[Any]) -> list[bool]:
        """Of each, whether it has more pieces than the model reads, where it reads no more of them in windows."""
        raise NotImplementedError


class TextAnswerer(TaskAnswerer):
    """A class, several of them, or a number for a text or a pair."""

    def __init__(self, tokenizer: Tokenizer, kind: TaskKind, about: Mapping[str, Any], predictor: AnyPredictor):
        super().__init__(tokenizer, kind, about, predictor)
        head = kind.head
        pairs = about.get(PAIRS)  # None where nothing tells
        self.task = {REGRESSION: "a number", MULTI_LABEL: "any of several labels"}.get(head.problem or "", "a label")
        self.task += " for a pair of texts" if pairs else " for a text"
        first = _names(about, "text_column", text_file.TEXT_NAMES)
        second = _names(about, "text_b_column", text_file.SECOND_TEXT_NAMES)
        single = (Input("text", first),)
        both = (Input("text_a", first), Input("text_b", second))
        self.forms = (single, both) if pairs is None else ((both,) if pairs else (single,))
        self.example = {"text_a": "The first text.", "text_b": "The second."} if pairs else {"text": "A text."}
        self.labels = label_names(head)
        count = len(self.labels)
        if head.problem == REGRESSION:
            made = [Output("value", FLOAT)]
        else:
            made = [Output("labels", STRING, (count,)), Output("probabilities", FLOAT, (count,))]
            if head.problem == MULTI_LABEL:
                made.append(Output("is_label", BOOL, (count,)))
            else:
                made += [Output("label", STRING), Output("probability", FLOAT)]
        self.outputs = (*made, IS_CUT)

    def _example(self, index: int, instance: Instance) -> TextExample:
        return TextExample("", instance.get("text", instance.get("text_a")), instance.get("text_b"))

    def _answer(self, example: TextExample, prediction: Any) -> Answer:
        if prediction.probabilities is None:
            answer: Answer = {"value": number(prediction.label)}
        else:
            answer = {"labels": list(self.labels), "probabilities": numbers(prediction.probabilities)}
            if isinstance(prediction.label, tuple):
                answer["is_label"] = [label in prediction.label for label in self.labels]
            else:
                answer["label"] = prediction.label
                answer["probability"] = number(prediction.probabilities.max())
        return answer

    def _are_cut(self, examples: Sequence[TextExample]) -> list[bool]:
        most = self._kind.settings["max_seq_length"]
        rows = [[text for text in (example.text_a, example.text_b) if text is not None] for example in examples]
        sizes = self._sizes([text for row in rows for text in row])
        specials = {1: sequences.SPECIALS_OF_ONE, 2: sequences.SPECIALS_OF_PAIR}
        return [sum(next(sizes) for _ in row) + specials[len(row)] > most for row in rows]


class QuestionAnswerer(TaskAnswerer):
    """The part of a context that answers a question."""

    task = "an answer from a text"
    forms = ((Input("question", choice_file.QUESTION_NAMES), Input("context", choice_file.PASSAGE_NAMES)),)
    example = {"question": "Who opened the door?", "context": "It was the cat who opened the door."}

    def __init__(self, tokenizer: Tokenizer, kind: TaskKind, about: Mapping[str, Any], predictor: AnyPredictor):
        super().__init__(tokenizer, kind, about, predictor)
        made = [Output("answer", STRING), Output("start", INT), Output("end", INT)]
        made += [Output("probability", FLOAT), Output("has_answer", BOOL)]
        if kind.head.kind == ANSWERABLE:
            made.append(Output("no_answer_probability", FLOAT))
        self.outputs = (*made, IS_CUT)

    def _example(self, index: int, instance: Instance) -> QuestionExample:
        return QuestionExample(str(index), instance["question"], instance["context"])

    def _answer(self, example: QuestionExample, prediction: Any) -> Answer:
        answer: Answer = {"answer": prediction.text, "start": prediction.start, "end": prediction.end}
        answer.update(probability=number(prediction.probability), has_answer=prediction.start >= 0)
        if prediction.null_odds is not None:
            answer["no_answer_probability"] = number(sigmoid(np.asarray(prediction.null_odds)))
        return answer

    def _are_cut(self, examples: Sequence[QuestionExample]) -> list[bool]:
        most = self._kind.settings["max_query_length"]
        return [size > most for size in self._sizes([example.question for example in examples])]


class ChoiceAnswerer(TaskAnswerer):
    """The likeliest of several options."""

    task = "one of several options for a question about a passage"
    outputs = (
        Output("label", INT),
        Output("option", STRING),
        Output("probability", FLOAT),
        Output("probabilities", FLOAT, (ANY,)),
        IS_CUT,
    )
    example = {
        "passage": "The cat opened the door.",
        "question": "Who opened the door?",
        "options": ["The cat.", "The dog."],
    }

    def __init__(self, tokenizer: Tokenizer, kind: TaskKind, about: Mapping[str, Any], predictor: AnyPredictor):
        super().__init__(tokenizer, kind, about, predictor)
        passage = Input("passage", _names(about, "passage_column", choice_file.PASSAGE_NAMES))
        question = Input("question", _names(about, "question_column", choice_file.QUESTION_NAMES))
        own = tuple(map(str, about.get(COLUMNS, {}).get("choice_columns", ())))
        names = (*(name.lower() for name in own if len(own) == 1), *choice_file.LIST_NAMES)
        options = Input("options", names, is_list=True, series=functools.partial(_series, own))
        self.forms = ((passage, question, options), (question, options), (passage, options))

    def _example(self, index: int, instance: Instance) -> ChoiceExample:
        options = tuple(instance["options"])
        if len(options) < LEAST_CHOICES:
            raise BadInstance(index, f"there are {len(options)} options, but at least {LEAST_CHOICES} are needed")
        return ChoiceExample(str(index), instance.get("passage", ""), instance.get("question", ""), options)

    def _answer(self, example: ChoiceExample, prediction: Any) -> Answer:
        return {
            "label": int(prediction.label),
            "option": example.choices[prediction.label],
            "probability": number(prediction.probabilities[prediction.label]),
            "probabilities": numbers(prediction.probabilities),
        }

    def _are_cut(self, examples: Sequence[ChoiceExample]) -> list[bool]:
        settings = self._kind.settings
        most, room = settings["max_qa_length"], settings["max_seq_length"] - sequences.SPECIALS_OF_PAIR
        passages = self._sizes([example.passage for example in examples])
        answers = self._sizes(
            [question_with(example.question, choice) for example in examples for choice in example.choices]
        )
        are_cut = []
        for example, passage in zip(examples, passages):
            longest = max(next(answers) for _ in example.choices)
            are_cut.append(longest > most or passage > room - longest)
        return are_cut


class TagAnswerer(TaskAnswerer):
    """A tag for each word; the words of a text are what its spaces separate.

    `starts` and `ends` are the characters of each in the text, or in the given words joined by spaces.
    """

    task = "a label for each word"
    forms = (
        (Input("text", text_file.TEXT_NAMES),),
        (Input("words", ("tokens",), is_list=True),),
    )
    outputs = (
        Output("words", STRING, (ANY,)),
        Output("labels", STRING, (ANY,)),
        Output("probabilities", FLOAT, (ANY,)),
        Output("starts", INT, (ANY,)),
        Output("ends", INT, (ANY,)),
        Output("word_counts", INT),
        IS_CUT,
    )
    example = {"text": "Anna lives in Rome ."}

    @property
    def tags(self) -> tuple[str, ...]:
        """All that it can give."""
        return label_names(self._kind.head)

    def _example(self, index: int, instance: Instance) -> TagExample:
        words = instance["words"] if "words" in instance else instance["text"].split()
        return TagExample(str(index), tuple(words))

    def _answer(self, example: TagExample, prediction: Any) -> Answer:
        return {
            "words": list(example.words),
            "labels": list(prediction.tags),
            "probabilities": numbers(prediction.probabilities),
            "word_counts": len(example.words),
        }

    def answers(self, instances: Sequence[Instance]) -> list[Answer]:
        """See `Answerer`."""
        return [
            {**answer, **_places(answer["words"], instance.get("text"))}
            for instance, answer in zip(instances, super().answers(instances))
        ]

    def _are_cut(self, examples: Sequence[TagExample]) -> list[bool]:
        room = self._kind.settings["max_seq_length"] - sequences.SPECIALS_OF_ONE
        sizes = self._sizes([word for example in examples for word in example.words])
        return [max((next(sizes) for _ in example.words), default=0) > room for example in examples]


def _places(words: Sequence[str], text: str | None) -> Answer:
    """Where words stand in a text, in order."""
    text = " ".join(words) if text is None else text
    starts, at = [], 0
    for word in words:
        starts.append(text.index(word, at))
        at = starts[-1] + len(word)
    return {"starts": starts, "ends": [start + len(word) for start, word in zip(starts, words)]}


def _names(about: Mapping[str, Any], key: str, usual: tuple[str, ...]) -> tuple[str, ...]:
    """The name of the column that the model was fine-tuned with, if one was given, before the usual ones."""
    own = about.get(COLUMNS, {}).get(key)
    return usual if own is None else (str(own).lower(), *usual)


def _series(own: tuple[str, ...], names: Collection[str], taken: Collection[str]) -> tuple[str, ...]:
    """The columns that the model was fine-tuned with, if all are there, else those with usual names."""
    if len(own) > 1 and set(own) <= set(names):
        return own
    return choice_file.series_of_choices(names, taken)


CLASSES: dict[str, type[TaskAnswerer]] = {
    "classifier": TextAnswerer,
    "multiple_choice": ChoiceAnswerer,
    "tagger": TagAnswerer,
    "span": QuestionAnswerer,
    ANSWERABLE: QuestionAnswerer,
}
