"""A question and a context to the part of the context that answers it, or to none.

N questions.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Union

import numpy as np

from albert_tf.errors import InputError
from albert_tf.head_config import HeadConfig
from albert_tf.pipelines.arguments import rows_of, settings_given
from albert_tf.pipelines.pipeline import PREDICTION_BATCH, Pipeline
from albert_tf.task_kinds.answers import ANSWERABLE
from albert_tf.task_kinds.arrays import sigmoid
from albert_tf.tasks.examples import AnswerPrediction, GoldAnswer, QuestionExample
from albert_tf.tokenizer import Tokenizer

# The text; or the text and where it begins; or None where there is no answer.
GivenAnswer = Union[str, "tuple[str, int]", None]


class Answer(NamedTuple):
    """The answer to one question.

    Attributes:
        text: `context[start:end]`, "" where there is no answer.
        start, end: characters of the context; -1 where there is no answer.
        probability: of this answer among the best ones; where there is none, of that.
        has_answer: whether there is one.
        no_answer_probability: that there is none; None from a model that always answers.
    """

    text: str
    start: int
    end: int
    probability: float
    has_answer: bool
    no_answer_probability: float | None


class QuestionAnswerer(Pipeline):
    """Answers questions from texts, as SQuAD's; learns from questions whose answers are known."""

    heads = ("span", ANSWERABLE)
    recipe_name = "squad2.0"
    metric_names = ()  # the kind knows them by their beginnings

    @classmethod
    def from_pretrained(
        cls,
        path: str | os.PathLike[str],
        *,
        new_head: bool = False,
        always_answers: bool = False,
        max_seq_length: int | None = None,
        doc_stride: int | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> QuestionAnswerer:
        """One that was fine-tuned before, or with `new_head` one that has yet to learn.

        Args:
            path: a directory that `save` or `albert_tf.run_finetuning` wrote, or a question-answering model of any
                other form; with `new_head`, whatever `AlbertModel.from_pretrained` reads.
            new_head: begin with a head that has yet to learn.
            always_answers: that head's kind: SQuAD 1's, which always answers, or SQuAD 2's, which knows of no answer.
            max_seq_length: the most pieces of question and window; longer contexts have several windows.
            doc_stride: pieces from one window to the next.
            tokenizer: for weights without a vocabulary beside them.

        Raises:
            InputError: nothing that fits is there.
        """
        settings = settings_given(max_seq_length=max_seq_length, doc_stride=doc_stride)
        if not new_head:
            return cls._load(path, settings)  # type: ignore[no-any-return]
        head = HeadConfig("span" if always_answers else ANSWERABLE)
        return cls._begin(path, head, tokenizer, settings)  # type: ignore[no-any-return]

    def fit(
        self,
        questions: Iterable[str],
        contexts: Iterable[str],
        answers: Iterable[GivenAnswer],
        validation_data: tuple[Iterable[str], Iterable[str], Iterable[GivenAnswer]] | None = None,
        **arguments: Any,
    ) -> Any:
        """Learns; returns Keras' History. Examples of a file in SQuAD's form go to `fit_examples`.

        Args:
            questions, contexts: N texts each.
            answers: N answers: the text, at its first place in the context; the text and where it begins, counted in
                characters; or None where there is no answer.
            validation_data: the same three, to be measured on after each epoch.
            **arguments: `epochs`, `batch_size`, `seed`, `callbacks` and `verbose`, as of `fit_examples`.

        Raises:
            InputError: there is not as many of each, or an answer is not in its context.
        """
        validation = None if validation_data is None else _examples(*validation_data)
        return self.fit_examples(_examples(questions, contexts, answers), validation, **arguments)

    def evaluate(
        self,
        questions: Iterable[str],
        contexts: Iterable[str],
        answers: Iterable[GivenAnswer],
        *,
        batch_size: int = PREDICTION_BATCH,
    ) -> dict[str, float]:
        """Metric to value, `loss` among them."""
        return self.evaluate_examples(_examples(questions, contexts, answers), batch_size=batch_size)

    def predict(
        self, questions: str | Iterable[str], contexts: str | Iterable[str], *, batch_size: int = PREDICTION_BATCH
    ) -> Any:
        """One `Answer` for each question, in order; for one question and one context, the `Answer` itself."""
        if isinstance(questions, str) and isinstance(contexts, str):
            return self.predict([questions], [contexts], batch_size=batch_size)[0]
        predictions = self.predict_examples(_examples(questions, contexts, None), batch_size=batch_size)
        return [self._answer(prediction) for prediction in predictions]

    def _answer(self, prediction: AnswerPrediction) -> Answer:
        odds = prediction.null_odds
        return Answer(
            prediction.text,
            prediction.start,
            prediction.end,
            prediction.probability,
            prediction.start >= 0,
            None if odds is None else float(sigmoid(np.asarray(odds))),
        )

    def _default_metrics(self) -> Sequence[str]:
        return ("f1", "exact_match")


def _examples(
    questions: Iterable[str], contexts: Iterable[str], answers: Iterable[GivenAnswer] | None
) -> list[QuestionExample]:
    rows = rows_of(questions=questions, contexts=contexts, answers=answers)
    return [
        QuestionExample(
            str(number),
            question,
            context,
            None if answers is None else _gold(answer, context, number),
            place=f"question {number}",
        )
        for number, (question, context, answer) in enumerate(rows)
    ]


def _gold(answer: GivenAnswer, context: str, number: int) -> tuple[GoldAnswer, ...]:
    if answer is None or answer == "":
        return ()
    text, start = (answer, context.find(answer)) if isinstance(answer, str) else answer
    if start < 0 or context[start : start + len(text)] != text:
        raise InputError(f"answers[{number}] is {text!r:.60}, which is not in its context at that place")
    return (GoldAnswer(text, start),)
