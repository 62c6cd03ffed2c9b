"""Answerers of the heads for tasks: how an instance becomes an example, and a prediction an answer.

The names of outputs are those of the SavedModels that `albert_tf.exporting` writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
from albert_tf.head_config import MULTI_LABEL, REGRESSION
from albert_tf.pipelines.pipeline import PAIRS
from albert_tf.predicting import Predictor
from albert_tf.probabilities import sigmoid
from albert_tf.task_kinds.answers import ANSWERABLE
from albert_tf.task_kinds.arrays import label_names
from albert_tf.task_model import TaskModel
from albert_tf.tasks import choice_file, text_file
from albert_tf.tasks.examples import ChoiceExample, QuestionExample, TagExample, TextExample

_LEAST_CHOICES = 2


class TaskAnswerer:
    """What all of them share; see `Answerer`."""

    task: str
    forms: tuple[Form, ...]
    outputs: tuple[Output, ...]
    labels: tuple[str, ...] = ()
    example: Instance

    def __init__(self, loaded: TaskModel, predictor: Predictor):
        self._tokenizer = loaded.tokenizer
        self._kind = loaded.kind
        self._predictor = predictor

    def answers(self, instances: Sequence[Instance]) -> list[Answer]:
        """See `Answerer`."""
        checked(instances, self.forms)
        if not instances:
            return []
        examples = [self._example(index, instance) for index, instance in enumerate(instances)]
        predictions = self._predictor.predict(examples, self._tokenizer)
        return [self._answer(example, prediction) for example, prediction in zip(examples, predictions)]

    def _example(self, index: int, instance: Instance) -> Any:
        raise NotImplementedError

    def _answer(self, example: Any, prediction: Any) -> Answer:
        raise NotImplementedError


class TextAnswerer(TaskAnswerer):
    """A class, several of them, or a number for a text or a pair."""

    def __init__(self, loaded: TaskModel, predictor: Predictor):
        super().__init__(loaded, predictor)
        head = loaded.kind.head
        pairs = loaded.about.get(PAIRS)  # None where nothing tells
        self.task = {REGRESSION: "a number", MULTI_LABEL: "any of several labels"}.get(head.problem or "", "a label")
        self.task += " for a pair of texts" if pairs else " for a text"
        single = (Input("text", text_file.TEXT_NAMES),)
        both = (Input("text_a", text_file.TEXT_NAMES), Input("text_b", text_file.SECOND_TEXT_NAMES))
        self.forms = (single, both) if pairs is None else ((both,) if pairs else (single,))
        self.example = {"text_a": "The first text.", "text_b": "The second."} if pairs else {"text": "A text."}
        self.labels = () if head.problem == REGRESSION else label_names(head)
        count = len(self.labels)
        if head.problem == REGRESSION:
            made = [Output("value", FLOAT)]
        else:
            made = [Output("labels", STRING, (count,)), Output("probabilities", FLOAT, (count,))]
            if head.problem == MULTI_LABEL:
                made.append(Output("is_label", BOOL, (count,)))
            else:
                made += [Output("label", STRING), Output("probability", FLOAT)]
        self.outputs = (*made, Output("is_cut", BOOL))

    def answers(self, instances: Sequence[Instance]) -> list[Answer]:
        """See `Answerer`; `is_cut` tells that a text was longer than the model reads."""
        answers = super().answers(instances)
        return [{**answer, "is_cut": is_cut} for answer, is_cut in zip(answers, self._are_cut(instances))]

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

    def _are_cut(self, instances: Sequence[Instance]) -> list[bool]:
        """Of each, whether it has more pieces than the model reads."""
        most = self._kind.settings["max_seq_length"]
        rows = [list(instance.values()) for instance in instances]
        sizes = iter(sequences.encode([text for row in rows for text in row], self._tokenizer).sizes.tolist())
        specials = {1: sequences.SPECIALS_OF_ONE, 2: sequences.SPECIALS_OF_PAIR}
        return [sum(next(sizes) for _ in row) + specials[len(row)] > most for row in rows]


class QuestionAnswerer(TaskAnswerer):
    """The part of a context that answers a question."""

    task = "an answer from a text"
    forms = ((Input("question", choice_file.QUESTION_NAMES), Input("context", choice_file.PASSAGE_NAMES)),)
    example = {"question": "Who opened the door?", "context": "It was the cat who opened the door."}

    def __init__(self, loaded: TaskModel, predictor: Predictor):
        super().__init__(loaded, predictor)
        made = [Output("answer", STRING), Output("start", INT), Output("end", INT)]
        made += [Output("probability", FLOAT), Output("has_answer", BOOL)]
        if loaded.kind.head.kind == ANSWERABLE:
            made.append(Output("no_answer_probability", FLOAT))
        self.outputs = tuple(made)

    def _example(self, index: int, instance: Instance) -> QuestionExample:
        return QuestionExample(str(index), instance["question"], instance["context"])

    def _answer(self, example: QuestionExample, prediction: Any) -> Answer:
        answer: Answer = {"answer": prediction.text, "start": prediction.start, "end": prediction.end}
        answer.update(probability=number(prediction.probability), has_answer=prediction.start >= 0)
        if prediction.null_odds is not None:
            answer["no_answer_probability"] = number(sigmoid(np.asarray(prediction.null_odds)))
        return answer


class ChoiceAnswerer(TaskAnswerer):
    """The likeliest of several options."""

    task = "one of several options for a question about a passage"
    forms = (
        (
            Input("passage", choice_file.PASSAGE_NAMES),
            Input("question", choice_file.QUESTION_NAMES),
            Input("options", ("options", "choices"), is_list=True),
        ),
    )
    outputs = (
        Output("label", INT),
        Output("option", STRING),
        Output("probability", FLOAT),
        Output("probabilities", FLOAT, (ANY,)),
    )
    example = {
        "passage": "The cat opened the door.",
        "question": "Who opened the door?",
        "options": ["The cat.", "The dog."],
    }

    def _example(self, index: int, instance: Instance) -> ChoiceExample:
        options = tuple(instance["options"])
        if len(options) < _LEAST_CHOICES:
            raise BadInstance(index, f"there are {len(options)} options, but at least {_LEAST_CHOICES} are needed")
        return ChoiceExample(str(index), instance["passage"], instance["question"], options)

    def _answer(self, example: ChoiceExample, prediction: Any) -> Answer:
        return {
            "label": int(prediction.label),
            "option": example.choices[prediction.label],
            "probability": number(prediction.probabilities[prediction.label]),
            "probabilities": numbers(prediction.probabilities),
        }


class TagAnswerer(TaskAnswerer):
    """A tag for each word; the words of a text are what its spaces separate."""

    task = "a label for each word"
    forms = (
        (Input("text", text_file.TEXT_NAMES),),
        (Input("words", ("tokens",), is_list=True),),
    )
    outputs = (
        Output("words", STRING, (ANY,)),
        Output("labels", STRING, (ANY,)),
        Output("probabilities", FLOAT, (ANY,)),
    )
    example = {"text": "Anna lives in Rome ."}

    def _example(self, index: int, instance: Instance) -> TagExample:
        words = instance["words"] if "words" in instance else instance["text"].split()
        return TagExample(str(index), tuple(words))

    def _answer(self, example: TagExample, prediction: Any) -> Answer:
        return {
            "words": list(example.words),
            "labels": list(prediction.tags),
            "probabilities": numbers(prediction.probabilities),
        }


CLASSES: dict[str, type[TaskAnswerer]] = {
    "classifier": TextAnswerer,
    "multiple_choice": ChoiceAnswerer,
    "tagger": TagAnswerer,
    "span": QuestionAnswerer,
    ANSWERABLE: QuestionAnswerer,
}
