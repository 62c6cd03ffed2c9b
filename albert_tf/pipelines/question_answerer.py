"""A question and a context to the part of the context that answers it, or to none.

N questions.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Union

import numpy as np

from albert_tf.errors import InputError
from albert_tf.head_config import ANSWERABLE, SPAN_KINDS, HeadConfig
from albert_tf.pipelines.arguments import column, plain, rows_of, settings_given, text_of, validation_columns
from albert_tf.pipelines.pipeline import PREDICTION_BATCH, Pipeline
from albert_tf.probabilities import sigmoid
from albert_tf.tasks.examples import AnswerPrediction, GoldAnswer, QuestionExample
from albert_tf.tokenizer import Tokenizer

# The text; the text and where it begins; both as in a file of SQuAD, alone or several; None where there is no answer.
GivenAnswer = Union[str, "tuple[str, int]", "Mapping[str, Any]", "Sequence[Mapping[str, Any]]", None]


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

    heads = SPAN_KINDS
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
        contexts: str | Iterable[str],
        answers: Iterable[GivenAnswer],
        validation_data: tuple[Iterable[str], str | Iterable[str], Iterable[GivenAnswer]] | None = None,
        **arguments: Any,
    ) -> Any:
        """Learns; returns Keras' History. Examples of a file in SQuAD's form go to `fit_examples`.

        Args:
            questions: N texts.
            contexts: N texts, or one string for all questions.
            answers: N answers: the text, at its first place in the context; the text and where it begins, counted in
                characters; `{"text": …, "answer_start": …}` as in SQuAD, a list of these, or one with lists in it; or
                None where there is no answer.
            validation_data: the same three, to be measured on after each epoch.
            **arguments: `epochs`, `batch_size`, `seed`, `callbacks` and `verbose`, as of `fit_examples`.

        Raises:
            InputError: there is not as many of each, or an answer is not in its context.
        """
        validation = None
        if validation_data is not None:
            validation = _examples(*validation_columns(validation_data, "questions", "contexts", "answers"))
        return self.fit_examples(_examples(questions, contexts, answers), validation, **arguments)

    def evaluate(
        self,
        questions: Iterable[str],
        contexts: str | Iterable[str],
        answers: Iterable[GivenAnswer],
        *,
        batch_size: int = PREDICTION_BATCH,
    ) -> dict[str, float]:
        """Metric to value, `loss` among them."""
        return self.evaluate_examples(_examples(questions, contexts, answers), batch_size=batch_size)

    def predict(
        self, questions: str | Iterable[str], contexts: str | Iterable[str], *, batch_size: int = PREDICTION_BATCH
    ) -> Any:
        """One `Answer` for each question, in order; for one question and one context, the `Answer` itself.

        Several questions may share one context, given as a string.
        """
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
    questions: Iterable[str], contexts: str | Iterable[str], answers: Iterable[GivenAnswer] | None
) -> list[QuestionExample]:
    asked = column("questions", questions)
    contexts = [contexts] * len(asked) if isinstance(contexts, str) else contexts
    examples = []
    for number, (question, context, answer) in enumerate(rows_of(questions=asked, contexts=contexts, answers=answers)):
        question, context = text_of(question, f"questions[{number}]"), text_of(context, f"contexts[{number}]")
        gold = None if answers is None else _gold(answer, context, f"answers[{number}]")
        examples.append(QuestionExample(str(number), question, context, gold, place=f"question {number}"))
    return examples


def _gold(answer: GivenAnswer, context: str, place: str) -> tuple[GoldAnswer, ...]:
    """The answers of one question.

    Raises:
        InputError: one has another form, or is not in the context where it is said to be.
    """
    if answer is None or answer == "":
        return ()
    gold = []
    for text, start in _texts_and_starts(answer, place):
        if not text:
            continue
        start = context.find(text) if start is None else start
        if start < 0 or context[start : start + len(text)] != text:
            raise InputError(f"{place} is {text!r:.60}, which is not in its context at that place")
        gold.append(GoldAnswer(text, start))
    return tuple(gold)


def _texts_and_starts(answer: Any, place: str) -> list[tuple[str, int | None]]:
    """Each answer of whatever form; None where it does not say where it begins."""
    if isinstance(answer, str):
        return [(answer, None)]
    if isinstance(answer, Mapping) and set(answer) >= {"text", "answer_start"}:
        texts, starts = plain(answer["text"]), plain(answer["answer_start"])
        if isinstance(texts, (list, tuple)) and isinstance(starts, (list, tuple)) and len(texts) == len(starts):
            return [_text_and_start(both, place) for both in zip(texts, starts)]
        return [_text_and_start((texts, starts), place)]
    if isinstance(answer, (list, tuple)) and all(isinstance(part, Mapping) for part in answer):
        return [both for part in answer for both in _texts_and_starts(part, place)]
    return [_text_and_start(answer, place)]


def _text_and_start(both: Any, place: str) -> tuple[str, int]:
    if isinstance(both, (list, tuple)) and len(both) == 2:
        text, start = both[0], plain(both[1])
        if isinstance(text, str) and isinstance(start, int) and not isinstance(start, bool):
            return text, start
    raise InputError(
        f"{place} is {both!r:.60}, but must be a text, a text and where it begins, SQuAD's "
        '{"text": …, "answer_start": …}, or None where there is no answer'
    )
