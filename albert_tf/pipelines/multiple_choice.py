"""A passage, a question and choices to the likeliest choice.

N questions, K choices.
"""

from __future__ import annotations

import os
import string
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.head_config import HeadConfig
from albert_tf.pipelines.arguments import plain, rows_of, settings_given, text_of, texts_of, validation_columns
from albert_tf.pipelines.learner import Batch
from albert_tf.pipelines.pipeline import PREDICTION_BATCH, Pipeline
from albert_tf.task_kinds.choices import IS_RIGHT
from albert_tf.tasks.examples import ChoiceExample
from albert_tf.tokenizer import Tokenizer


class ChosenAnswer(NamedTuple):
    """The answer to one question.

    Attributes:
        label: the index of the likeliest choice, counted from 0.
        choice: its text.
        probability: of it.
        probabilities: of all choices, in their order.
    """

    label: int
    choice: str
    probability: float
    probabilities: tuple[float, ...]


class MultipleChoiceAnswerer(Pipeline):
    """Answers questions with choices, as RACE's; learns from questions whose right choice is known."""

    heads = ("multiple_choice",)
    recipe_name = "choice_file"

    @classmethod
    def from_pretrained(
        cls,
        path: str | os.PathLike[str],
        *,
        new_head: bool = False,
        max_seq_length: int | None = None,
        max_qa_length: int | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> MultipleChoiceAnswerer:
        """One that was fine-tuned before, or with `new_head` one that has yet to learn.

        Args:
            path: a directory that `save` or `albert_tf.run_finetuning` wrote, or a multiple-choice model of any other
                form; with `new_head`, whatever `AlbertModel.from_pretrained` reads.
            new_head: begin with a head that has yet to learn.
            max_seq_length: the most pieces of passage, question and choice together.
            max_qa_length: the most pieces of question and choice.
            tokenizer: for weights without a vocabulary beside them.

        Raises:
            InputError: nothing that fits is there.
        """
        settings = settings_given(max_seq_length=max_seq_length, max_qa_length=max_qa_length)
        if not new_head:
            return cls._load(path, settings)  # type: ignore[no-any-return]
        return cls._begin(path, HeadConfig("multiple_choice"), tokenizer, settings)  # type: ignore[no-any-return]

    def fit(
        self,
        passages: Iterable[str],
        questions: Iterable[str],
        choices: Iterable[Sequence[str]],
        labels: Iterable[int | str],
        validation_data: tuple[Iterable[str], Iterable[str], Iterable[Sequence[str]], Iterable[int | str]]
        | None = None,
        **arguments: Any,
    ) -> Any:
        """Learns; returns Keras' History.

        Args:
            passages: N texts.
            questions: N questions; a "_" in one is the place of the choice, which else stands behind the question.
            choices: N lists of choices.
            labels: N indices of the right choices, counted from 0, or their letters, "A" the first.
            validation_data: the same four, to be measured on after each epoch.
            **arguments: `epochs`, `batch_size`, `seed`, `callbacks` and `verbose`, as of `Pipeline.fit_examples`.

        Raises:
            InputError: there is not as many of each, one is of another kind, or a label is no choice.
        """
        examples = _examples(passages, questions, choices, labels)
        validation = None
        if validation_data is not None:
            columns = validation_columns(validation_data, "passages", "questions", "choices", "labels")
            validation = _examples(*columns)
        return self.fit_examples(examples, validation, **arguments)

    def evaluate(
        self,
        passages: Iterable[str],
        questions: Iterable[str],
        choices: Iterable[Sequence[str]],
        labels: Iterable[int | str],
        *,
        batch_size: int = PREDICTION_BATCH,
    ) -> dict[str, float]:
        """Metric to value, `loss` among them."""
        return self.evaluate_examples(_examples(passages, questions, choices, labels), batch_size=batch_size)

    def predict(
        self,
        passages: Iterable[str],
        questions: Iterable[str],
        choices: Iterable[Sequence[str]],
        *,
        batch_size: int = PREDICTION_BATCH,
    ) -> list[ChosenAnswer]:
        """One answer for each question, in order."""
        examples = _examples(passages, questions, choices, None)
        answers = []
        for example, prediction in zip(examples, self.predict_examples(examples, batch_size=batch_size)):
            probabilities = tuple(map(float, prediction.probabilities))
            label = prediction.label
            answers.append(ChosenAnswer(label, example.choices[label], probabilities[label], probabilities))
        return answers

    def _default_metrics(self) -> Sequence[str]:
        return ("accuracy",)

    def _can_observe(self) -> bool:
        return True

    def _observed(self, outputs: Any, batch: Batch) -> tuple[tf.Tensor, tf.Tensor]:
        """The right choice [B], the probabilities [B,K]."""
        return tf.argmax(batch[IS_RIGHT], axis=-1), tf.nn.softmax(self.kind.kept(outputs, batch)["logits"])

    def _training_metrics(self) -> list[Any]:
        return [tf.keras.metrics.SparseCategoricalAccuracy(name="accuracy")] if "accuracy" in self._names else []


def _examples(
    passages: Iterable[str],
    questions: Iterable[str],
    choices: Iterable[Sequence[str]],
    labels: Iterable[int | str] | None,
) -> list[ChoiceExample]:
    rows = rows_of(passages=passages, questions=questions, choices=choices, labels=labels)
    return [
        ChoiceExample(
            str(number),
            text_of(passage, f"passages[{number}]"),
            text_of(question, f"questions[{number}]"),
            texts_of(given, f"choices[{number}]", "choices"),
            _index(label, f"labels[{number}]"),
            place=f"row {number}",
        )
        for number, (passage, question, given, label) in enumerate(rows)
    ]


def _index(label: Any, place: str) -> int | None:
    label = plain(label)
    if label is None or (isinstance(label, int) and not isinstance(label, bool)):
        return label
    if isinstance(label, str) and len(label) == 1 and label in string.ascii_uppercase:
        return string.ascii_uppercase.index(label)
    raise InputError(f"{place} is {label!r:.40}, but must be the index of the right choice, or its letter, A the first")
