"""How wrong a prediction is: what a page of predictions is sorted by.

C labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from albert_tf import answer_metrics
from albert_tf.answer_metrics import Scorer
from albert_tf.probabilities import sigmoid
from albert_tf.tasks.examples import (
    AnswerPrediction,
    ChoiceExample,
    ChoicePrediction,
    Example,
    Prediction,
    QuestionExample,
    TagExample,
    TagPrediction,
    TextExample,
    TextPrediction,
)


class Judgement(NamedTuple):
    """One prediction beside what the file says.

    Attributes:
        is_right: None where the file tells nothing, and for a number, which is rarely met exactly.
        gold_probability: what the model gave to what the file says; of several decisions (tags, labels) to the one it
            was worst at, and for a wrong tag the most that it can have been. None where there is none.
        badness: the larger, the worse; without a gold label, the less certain the model was.
        has_gold: whether the file tells anything.
    """

    is_right: bool | None
    gold_probability: float | None
    badness: float
    has_gold: bool = True


def judge(
    example: Example, prediction: Prediction, labels: Sequence[str] = (), scorer: Scorer = answer_metrics.squad_v2
) -> Judgement:
    """Judges a prediction.

    Args:
        example: with or without what is right.
        prediction: of the same kind.
        labels: names of the C probabilities of a classifier.
        scorer: tells whether a text is one of a question's answers; where there is none, only no text is.
    """
    if isinstance(example, TextExample) and isinstance(prediction, TextPrediction):
        return _text(example, prediction, labels)
    if isinstance(example, ChoiceExample) and isinstance(prediction, ChoicePrediction):
        return _choice(example, prediction)
    if isinstance(example, QuestionExample) and isinstance(prediction, AnswerPrediction):
        return _answer(example, prediction, scorer)
    if isinstance(example, TagExample) and isinstance(prediction, TagPrediction):
        return _tags(example, prediction)
    raise TypeError(f"{type(prediction).__name__} is no answer to a {type(example).__name__}")


def probability_of_no_answer(prediction: AnswerPrediction) -> float:
    """The sigmoid of the null odds; 0 of a model that always answers."""
    if prediction.null_odds is None:
        return 0.0
    return float(sigmoid(prediction.null_odds))


def word_probability(gold: str, predicted: str, probability: float) -> float:
    """What a word's own tag got: all of the predicted one's, or at most what that one left."""
    return probability if gold == predicted else 1.0 - probability


def _unknown(certainty: float) -> Judgement:
    return Judgement(None, None, -certainty, has_gold=False)


def _by_probability(is_right: bool, gold_probability: float) -> Judgement:
    return Judgement(is_right, gold_probability, -gold_probability)


def _text(example: TextExample, prediction: TextPrediction, labels: Sequence[str]) -> Judgement:
    gold, answer, probabilities = example.label, prediction.label, prediction.probabilities
    if isinstance(answer, (int, float)):
        return _unknown(0.0) if gold is None else Judgement(None, None, abs(answer - float(gold)))  # type: ignore[arg-type]
    if gold is None:
        return _unknown(0.0 if probabilities is None else _certainty(answer, probabilities))
    is_right = set(gold) == set(answer) if isinstance(answer, tuple) else gold == answer  # type: ignore[arg-type]
    if probabilities is None:
        return Judgement(is_right, None, float(not is_right))
    by_label = dict(zip(labels, map(float, probabilities)))
    if isinstance(answer, tuple):
        own = [value if label in gold else 1.0 - value for label, value in by_label.items()]  # type: ignore[operator]
        return _by_probability(is_right, min(own, default=0.0))
    return _by_probability(is_right, by_label.get(gold, 0.0))  # type: ignore[arg-type]


def _certainty(answer: str | tuple[str, ...], probabilities: np.ndarray) -> float:
    """Of the likeliest class, or of the least certain one of several."""
    if isinstance(answer, tuple):
        return min((max(float(value), 1.0 - float(value)) for value in probabilities), default=0.0)
    return max(map(float, probabilities))


def _choice(example: ChoiceExample, prediction: ChoicePrediction) -> Judgement:
    probabilities = [float(value) for value in prediction.probabilities]
    if example.label is None:
        return _unknown(max(probabilities, default=0.0))
    gold = probabilities[example.label] if example.label < len(probabilities) else 0.0
    return _by_probability(example.label == prediction.label, gold)


def _answer(example: QuestionExample, prediction: AnswerPrediction, scorer: Scorer) -> Judgement:
    if example.answers is None:
        return _unknown(prediction.probability)
    texts = [answer.text for answer in example.answers]
    count = scorer if texts else answer_metrics.squad_v2
    no_answer = probability_of_no_answer(prediction)
    if example.is_impossible:
        gold = no_answer
    else:
        of_answers = [best["probability"] for best in prediction.n_best if count(best["text"], texts).exact == 1.0]
        gold = (1.0 - no_answer) * sum(of_answers)
    return _by_probability(count(prediction.text, texts).exact == 1.0, gold)


def _tags(example: TagExample, prediction: TagPrediction) -> Judgement:
    if example.tags is None:
        return _unknown(min(prediction.probabilities, default=0.0))
    is_right = example.tags == prediction.tags
    own = [
        word_probability(gold, tag, probability)
        for gold, tag, probability in zip(example.tags, prediction.tags, prediction.probabilities)
    ]
    return _by_probability(is_right, min(own, default=0.0))
