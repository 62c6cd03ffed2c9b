"""Scores of answers: the numbers of the official scripts, and a second computation from the definitions."""

from __future__ import annotations

import itertools
import json
import math
import random
import re

import pytest

from albert_tf import answer_metrics


def test_recorded_pairs(shared):
    pairs = json.loads((shared / "fixtures/squad_metrics/pairs.json").read_text())
    assert len(pairs) == 14
    for pair in pairs:
        text, gold = pair["prediction"], pair["gold"]
        assert answer_metrics.normalise(text) == pair["normalized_prediction"]
        assert answer_metrics.squad_v1(text, gold) == pytest.approx((pair["v1_exact"], pair["v1_f1"]), abs=1e-9), pair
        assert answer_metrics.squad_v2(text, gold) == pytest.approx((pair["v2_exact"], pair["v2_f1"]), abs=1e-9), pair


WORDS = ["the", "a", "an", "cat", "Cat,", "theatre", "x-y", "...", "“q”", "3.5", "no", "é"]


def plain_words(text: str) -> list[str]:
    kept = "".join(c for c in text.lower() if not (c.isascii() and not c.isalnum() and not c.isspace()))
    return [word for word in re.split(r"\s+", kept) if word not in ("", "a", "an", "the")]


def plain_f1(prediction: str, gold: str) -> float:
    left, both = plain_words(gold), 0
    total = len(left) + len(plain_words(prediction))
    for word in plain_words(prediction):
        if word in left:
            left.remove(word)
            both += 1
    return 2 * both / total if both else 0.0


def test_f1_and_exact_match_of_any_words():
    rng = random.Random(3)
    for _ in range(500):
        prediction, *gold = (" ".join(rng.choices(WORDS, k=rng.randrange(1, 6))) for _ in range(3))
        scores = answer_metrics.squad_v1(prediction, gold)
        assert scores.f1 == pytest.approx(max(plain_f1(prediction, text) for text in gold), abs=1e-12)
        assert scores.exact == float(plain_words(prediction) in [plain_words(text) for text in gold])


def test_the_best_of_several_answers_counts():
    assert answer_metrics.squad_v1("in Paris", ["Rome", "Paris", "Paris, France"]) == (0.0, pytest.approx(2 / 3))


FOUR = (["Paris", "1901", "a bell", "none"], [["Paris"], ["1901"], [], []], [0.5, 1.0, 2.0, 3.5])


def test_a_threshold_between_the_questions_with_and_without_an_answer():
    report = answer_metrics.answerable_scores(*FOUR, threshold=1.5)
    assert report["best_exact_match"] == report["best_f1"] == report["exact_match"] == 1.0
    assert 1 < report["best_exact_match_threshold"] < 2
    assert 1 < report["best_f1_threshold"] < 2
    assert report["f1/has_answer"] == report["f1/no_answer"] == 1.0


@pytest.mark.parametrize(
    ("threshold", "exact", "with_answer", "without"), [(-9, 0.5, 0, 1), (0.7, 0.75, 0.5, 1), (9, 0.5, 1, 0)]
)
def test_a_given_threshold(threshold, exact, with_answer, without):
    report = answer_metrics.answerable_scores(*FOUR, threshold=threshold)
    assert report["exact_match"] == exact
    assert report["exact_match/has_answer"] == with_answer
    assert report["exact_match/no_answer"] == without


def test_all_answers_empty():
    report = answer_metrics.answerable_scores([""] * 4, FOUR[1], [0.0] * 4, threshold=0.0)
    assert report["exact_match"] == report["f1"] == report["best_exact_match"] == 0.5


def test_only_questions_of_one_kind():
    report = answer_metrics.answerable_scores(["x", "y"], [[], []], [-5.0, -3.0], threshold=0.0)
    assert (report["exact_match"], report["best_exact_match"]) == (0.0, 1.0)
    assert report["best_exact_match_threshold"] < -5
    assert "exact_match/has_answer" not in report
    report = answer_metrics.answerable_scores(["x", "y"], [["x"], ["y"]], [5.0, 3.0], threshold=0.0)
    assert (report["exact_match"], report["best_exact_match"]) == (0.0, 1.0)
    assert report["best_exact_match_threshold"] > 5


def test_the_best_threshold_is_the_best_of_all_there_are():
    rng = random.Random(4)
    for _ in range(200):
        count = rng.randrange(1, 7)
        has_answer = [rng.random() < 0.5 for _ in range(count)]
        scores = [rng.choice([0.0, 0.5, 1.0]) if answered else 0.0 for answered in has_answer]
        odds = [float(rng.randrange(-2, 3)) for _ in range(count)]  # often equal

        def total(threshold, scores=scores, odds=odds, has_answer=has_answer):
            return sum(s if o <= threshold else not h for s, o, h in zip(scores, odds, has_answer)) / len(odds)

        best = answer_metrics.best_threshold(scores, odds, has_answer)
        assert best.score == pytest.approx(max(total(threshold) for threshold in (-3, *odds)))
        assert total(best.value) == pytest.approx(best.score)


def test_questions_without_a_window_draw_no_line():
    nowhere = answer_metrics.NO_WINDOW
    assert answer_metrics.best_threshold([1.0, 0.0], [2.0, nowhere], [True, True]) == (0.5, 3.0)
    assert answer_metrics.best_threshold([1.0, 1.0], [2.0, nowhere], [True, False]) == (1.0, 3.0)
    assert answer_metrics.best_threshold([0.0, 0.0], [2.0, nowhere], [False, True]) == (0.5, 1.0)
    assert answer_metrics.best_threshold([0.0, 1.0], [nowhere, nowhere], [True, False]) == (0.5, 0.0)


@pytest.mark.parametrize("odds", [math.inf, math.nan])
def test_the_best_threshold_is_finite_whatever_the_odds(odds):
    for scores in itertools.product((0.0, 1.0), repeat=2):
        for has_answer in itertools.product((False, True), repeat=2):
            best = answer_metrics.best_threshold(scores, [odds, 1.0], has_answer)
            assert math.isfinite(best.value)
            kept = [s if o <= best.value else not h for s, o, h in zip(scores, [odds, 1.0], has_answer)]
            assert best.score == sum(kept) / 2
            assert math.isfinite(answer_metrics.best_threshold(scores, [-math.inf, -math.inf], has_answer).value)


def test_no_question_at_all():
    assert answer_metrics.answerable_scores([], [], [], 0.0)["f1"] == 0.0
    assert answer_metrics.mean([]) == (0.0, 0.0)


def test_characters_of_languages_without_spaces():
    assert answer_metrics.characters("東京都", ["東京"]) == (0.0, pytest.approx(4 / 5))
    assert answer_metrics.characters("京東", ["東京"]) == (0.0, 1.0)
    assert answer_metrics.characters("「東京」", ["東京"])[0] == 0.0


def longest_run(a: list[str], b: list[str]) -> int:
    runs = (a[i:j] for i, j in itertools.combinations(range(len(a) + 1), 2))
    return max((len(run) for run in runs if any(b[at : at + len(run)] == run for at in range(len(b)))), default=0)


def test_chinese_by_the_longest_common_run():
    rng = random.Random(5)
    for _ in range(300):
        a, b = (rng.choices("中文字在", k=rng.randrange(1, 7)) for _ in range(2))
        common = longest_run(a, b)
        expected = 2 * common / (len(a) + len(b))
        assert answer_metrics.cmrc("".join(a), ["".join(b)]) == (float(a == b), pytest.approx(expected))


def test_chinese_with_words_and_punctuation():
    assert answer_metrics.cmrc("《战国无双3》", ["战国无双3"]) == (1.0, 1.0)
    assert answer_metrics.cmrc("Mario Kart 的游戏", ["mario kart"]) == (0.0, pytest.approx(2 * 2 / (5 + 2)))
    assert answer_metrics.cmrc("中文。", ["文"]) == (0.0, pytest.approx(2 / 3))
    assert answer_metrics.cmrc("", ["文"]) == (0.0, 0.0)
