"""Exact match and F1 of answers, as the official scripts of SQuAD 1.1, SQuAD 2.0 and CMRC 2018 count them.

All scores are fractions of 1. Q questions.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np

NO_WINDOW = 1e6  # the null odds of a question whose context has no piece, as released

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
# What CMRC 2018's script drops; it lists "……" too, which never equals a single character.
_CMRC_PUNCTUATION = str.maketrans("", "", "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_CMRC_SEGMENTS = re.compile(r"[\u4e00-\u9fa5]|[^\W\u4e00-\u9fa5]+|[^\w\s]")


class Scores(NamedTuple):
    """Of one answer, or the means of many."""

    exact: float
    f1: float


Scorer = Callable[[str, Sequence[str]], Scores]  # a prediction and the gold answers to its scores


def normalise(text: str) -> str:
    """Lower-case, no ASCII punctuation, no English articles, single spaces (the official SQuAD scripts)."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def squad_v1(prediction: str, gold: Sequence[str]) -> Scores:
    """The best over the gold answers, as evaluate-v1.1 counts; no gold answer is the answer ""."""
    return _best(prediction, gold, _squad_pair)


def squad_v2(prediction: str, gold: Sequence[str]) -> Scores:
    """As evaluate-v2.0: gold answers that normalise to nothing are dropped, and nothing against nothing is F1 1."""
    return _best(prediction, [text for text in gold if normalise(text)], _squad_v2_pair)


def characters(prediction: str, gold: Sequence[str]) -> Scores:
    """As `squad_v1`, but F1 counts characters: for languages that write no spaces, as JGLUE does for JSQuAD."""
    return _best(prediction, gold, _characters_pair)


def cmrc(prediction: str, gold: Sequence[str]) -> Scores:
    """As CMRC 2018's script: F1 by the longest run that both have, of ideographs and words of other scripts.

    The script cuts what is not Chinese by NLTK's word tokenizer; here each run of letters and digits is a word.
    """
    return _best(prediction, gold, _cmrc_pair)


# By what stands in front of the name of a metric, "cmrc_f1" for one.
SCORERS: dict[str, Scorer] = {"characters_": characters, "cmrc_": cmrc, "": squad_v1}
ANSWERABLE_SCORERS: dict[str, Scorer] = {**SCORERS, "": squad_v2}


def scorer_of(metric: str, *, answerable: bool = True) -> tuple[str, Scorer]:
    """What stands in front of a metric's name, and how it counts; `answerable` where questions may have no answer."""
    scorers = ANSWERABLE_SCORERS if answerable else SCORERS
    return next(item for item in scorers.items() if metric.startswith(item[0]))


def _both(is_right: bool) -> Scores:
    return Scores(float(is_right), float(is_right))


def _best(prediction: str, gold: Sequence[str], pair: Callable[[str, str], Scores]) -> Scores:
    scores = [pair(prediction, text) for text in gold or ("",)]
    return Scores(max(score.exact for score in scores), max(score.f1 for score in scores))


def _squad_pair(prediction: str, gold: str) -> Scores:
    predicted, true = normalise(prediction), normalise(gold)
    return Scores(float(predicted == true), _overlap(predicted.split(), true.split()))


def _squad_v2_pair(prediction: str, gold: str) -> Scores:
    predicted, true = normalise(prediction), normalise(gold)
    if not predicted or not true:
        return _both(predicted == true)
    return _squad_pair(prediction, gold)


def _characters_pair(prediction: str, gold: str) -> Scores:
    predicted, true = normalise(prediction), normalise(gold)
    return Scores(float(predicted == true), _overlap(predicted.replace(" ", ""), true.replace(" ", "")))


def _cmrc_pair(prediction: str, gold: str) -> Scores:
    predicted, true = (text.lower().strip().translate(_CMRC_PUNCTUATION) for text in (prediction, gold))
    segments = [_CMRC_SEGMENTS.findall(text) for text in (predicted, true)]
    return Scores(float(predicted == true), _f1(_longest_common_run(*segments), *map(len, segments)))


def _overlap(predicted: Sequence[Hashable], true: Sequence[Hashable]) -> float:
    """F1 of two bags."""
    return _f1(sum((Counter(predicted) & Counter(true)).values()), len(predicted), len(true))


def _f1(common: int, predicted: int, true: int) -> float:
    return 2 * common / (predicted + true) if common else 0.0


def _longest_common_run(a: Sequence[str], b: Sequence[str]) -> int:
    longest, above = 0, [0] * (len(b) + 1)
    for item in a:
        row = [0] + [above[at] + 1 if item == other else 0 for at, other in enumerate(b)]
        longest, above = max(longest, *row), row
    return longest


def mean(scores: Sequence[Scores]) -> Scores:
    """The means over questions; 0 where there is none."""
    exact, f1 = zip(*scores) if scores else ((0.0,), (0.0,))
    return Scores(float(np.mean(exact)), float(np.mean(f1)))


class Threshold(NamedTuple):
    """Where to draw the line between an answer and none.

    Attributes:
        score: the mean score with it.
        value: answer where the null odds are at most this. Halfway between the two questions that it parts, or 1 beyond
            the outermost one; always finite.
    """

    score: float
    value: float


def best_threshold(scores: Sequence[float], null_odds: Sequence[float], has_answer: Sequence[bool]) -> Threshold:
    """The threshold with the best mean score, the lowest of several.

    The official script finds the same score, but names the null odds below the line, takes 0 where no answer at all is
    best, whatever the scale, and may part questions of equal null odds, which no threshold does. Questions that have no
    window, so null odds of `NO_WINDOW` or none that is a number, count as unanswered and draw no line.

    Args:
        scores: [Q], of the best answer to each question, whatever the null odds.
        null_odds: [Q], the higher, the likelier there is no answer.
        has_answer: [Q], whether there is one.
    """
    if not len(scores):
        return Threshold(0.0, 0.0)
    odds = np.maximum(np.asarray(null_odds, np.float64), -NO_WINDOW)
    of_none = ~np.asarray(has_answer, bool)  # the score of a question that is not answered
    unanswered = np.count_nonzero(of_none)
    order = np.argsort(odds, kind="stable")
    order = order[odds[order] < NO_WINDOW]
    if not len(order):
        return Threshold(unanswered / len(odds), 0.0)
    gains = np.asarray(scores, np.float64)[order] - of_none[order]
    totals = unanswered + np.concatenate([[0.0], np.cumsum(gains)])
    odds = odds[order]
    edges = np.concatenate([[odds[0] - 2], odds, [odds[-1] + 2]])
    possible = edges[1:] > edges[:-1]
    at = int(np.argmax(np.where(possible, totals, -np.inf)))
    return Threshold(float(totals[at] / len(scores)), float((edges[at] + edges[at + 1]) / 2))


def answerable_scores(
    predictions: Sequence[str],
    gold: Sequence[Sequence[str]],
    null_odds: Sequence[float],
    threshold: float,
    scorer: Scorer = squad_v2,
) -> dict[str, float]:
    """What evaluate-v2.0 reports, by our names.

    Args:
        predictions: [Q], the best answer to each question, whatever the null odds.
        gold: [Q], the answers to each question, empty where there is none.
        null_odds: [Q].
        threshold: questions of higher null odds are answered by "".
        scorer: of questions that have an answer.

    Returns:
        `exact_match` and `f1` with that threshold, each also over the questions "/has_answer" and "/no_answer", where
        there are some; `best_exact_match` and `best_f1` with the best threshold for each, and those as
        `best_exact_match_threshold` and `best_f1_threshold`.
    """
    has_answer = [bool(texts) for texts in gold]
    raw = [scorer(text, texts) if texts else squad_v2(text, texts) for text, texts in zip(predictions, gold)]
    none = [_both(not answered) for answered in has_answer]
    kept = [own if odds <= threshold else other for own, other, odds in zip(raw, none, null_odds)]
    report = {}
    for group, wanted in (("", (True, False)), ("/has_answer", (True,)), ("/no_answer", (False,))):
        members = [score for score, answered in zip(kept, has_answer) if answered in wanted]
        if members or not group:
            report[f"exact_match{group}"], report[f"f1{group}"] = mean(members)
    for name, values in (("exact_match", [s.exact for s in raw]), ("f1", [s.f1 for s in raw])):
        best = best_threshold(values, null_odds, has_answer)
        report[f"best_{name}"], report[f"best_{name}_threshold"] = best
    return report
