"""The best answers: the released ones on recorded scores, and a plain search over all pairs."""

from __future__ import annotations

import json

import numpy as np
import pytest

from albert_tf import answers, tokenization
from albert_tf.head_config import HeadConfig
from albert_tf.task_kinds.answers import AnswerKind
from albert_tf.tasks.squad_files import read_questions


@pytest.mark.parametrize("name", ["squad_post_v1", "squad_post_v1_30k"])
def test_released_answers(shared, name):
    folder = shared / "fixtures" / name
    meta = json.loads((folder / "meta.json").read_text())
    names = ("max_seq_length", "doc_stride", "max_query_length", "n_best_size", "max_answer_length")
    kind = AnswerKind(HeadConfig("span"), **{key: meta[key] for key in names})
    examples = read_questions(str(folder / "eval.json"))
    tokenizer = tokenization.load_tokenizer(shared.parent / meta["tokenizer_file"])
    features = kind.features(examples, tokenizer, training=False)
    # The released code lets scores of padding compete, and these are random there: so they are not cut off here.
    scores = np.load(folder / "raw_results.npz")
    kept = {key: list(scores[key]) for key in ("start_logits", "end_logits")}
    predictions = kind.predictions(kept, features, examples)
    expected = json.loads((folder / "expected_predictions.json").read_text())
    assert {prediction.id: prediction.text for prediction in predictions} == expected
    n_best = json.loads((folder / "expected_nbest_predictions.json").read_text())
    for example, prediction in zip(examples, predictions):
        released = n_best[prediction.id]
        assert [answer["text"] for answer in prediction.n_best] == [answer["text"] for answer in released]
        for ours, theirs in zip(prediction.n_best, released):
            assert ours["text"] == example.context[ours["start"] : ours["end"]]
            assert {key: ours[key] for key in theirs if key != "text"} == pytest.approx(
                {key: value for key, value in theirs.items() if key != "text"}, abs=1e-6
            )
        assert prediction.probability == prediction.n_best[0]["probability"]
        assert example.context[prediction.start : prediction.end] == prediction.text
    means = kind.scores(examples, predictions, ("f1", "exact_match"))
    assert means["exact_match"] == pytest.approx(meta["metrics"]["exact_match"] / 100, abs=1e-9)
    assert means["f1"] == pytest.approx(meta["metrics"]["f1"] / 100, abs=1e-9)


CONTEXT = "ab cd ef gh ij kl"
STARTS = np.array([0, 2, 5, 8, 11, 14])
ENDS = STARTS[1:].tolist() + [17]


def window(first: int = 3, is_max=(1, 1, 1, 1, 1, 1)) -> answers.WindowPieces:
    return answers.WindowPieces(first, STARTS, np.array(ENDS), np.array(is_max, bool))


def texts(candidates: answers.Candidates, n_best_size: int = 20) -> list[str]:
    return [answer["text"] for answer in answers.best_answers(CONTEXT, [candidates], n_best_size)]


def test_a_plain_search_finds_the_same():
    rng = np.random.default_rng(7)
    for _ in range(50):
        first, n_best, longest = 3, 4, 3
        start_logits, end_logits = rng.normal(size=(2, 10)).astype(np.float32)
        is_max = rng.random(6) < 0.7
        found = {}
        for start in sorted(range(10), key=lambda at: -start_logits[at])[:n_best]:
            for end in sorted(range(10), key=lambda at: -end_logits[at])[:n_best]:
                inside = first <= start <= end < first + 6 and end - start + 1 <= longest
                if inside and is_max[start - first]:
                    text = CONTEXT[STARTS[start - first] : ENDS[end - first]].strip()
                    found[text] = float(start_logits[start]) + float(end_logits[end])
        best = sorted(found, key=lambda text: -found[text])[:n_best]
        candidates = answers.span_candidates(
            start_logits, end_logits, window(first, is_max), tried=n_best, max_answer_length=longest
        )
        answered = answers.best_answers(CONTEXT, [candidates], n_best)
        assert [answer["text"] for answer in answered] == best
        powers = np.exp([found[text] for text in best])
        assert [answer["probability"] for answer in answered] == pytest.approx(list(powers / powers.sum()))


def test_each_start_of_the_search_has_its_own_ends():
    beam = answers.Beam(
        np.array([4, 0]),
        np.array([-0.1, -2.0]),
        np.array([5, 4, 3, 0, 3, 99]),
        np.array([-0.2, -1.5, -9.0, -0.1, -0.1, -0.1]),
    )
    candidates = answers.beam_candidates(beam, window(), max_answer_length=5)
    # Ends before their start, starts at [CLS] and ends behind the window are no answers.
    assert texts(candidates) == ["cd ef", "cd"]


def test_an_answer_stands_where_the_piece_has_most_context_and_is_told_once():
    scores = np.zeros(9), np.zeros(9)
    both = [
        answers.span_candidates(*scores, window(is_max=mask), tried=9, max_answer_length=1)
        for mask in ([1, 1, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0])
    ]
    found = answers.best_answers(CONTEXT, both, 20)
    assert [answer["text"] for answer in found] == ["ab", "cd", "ef"]
    assert [answer["probability"] for answer in found] == pytest.approx([1 / 3] * 3)


def test_the_same_word_at_two_places_is_one_answer():
    pieces = answers.WindowPieces(0, np.array([0, 3, 6]), np.array([3, 6, 9]), np.ones(3, bool))
    candidates = answers.span_candidates(
        np.array([1.0, 0.0, 2.0]), np.array([1.0, 0.0, 2.0]), pieces, tried=3, max_answer_length=1
    )
    found = answers.best_answers("re re re ", [candidates], 3)
    assert [(answer["text"], answer["start"], answer["end"]) for answer in found] == [("re", 6, 8)]


def test_no_candidate_gives_no_answer():
    none = answers.span_candidates(np.zeros(9), np.zeros(9), window(is_max=[0] * 6), tried=3, max_answer_length=3)
    assert answers.best_answers(CONTEXT, [none], 3) == ()
    assert answers.best_answers(CONTEXT, [], 3) == ()


def test_pieces_without_a_character_are_no_answer():
    pieces = answers.WindowPieces(0, np.array([0, 0, 2]), np.array([0, 2, 3]), np.ones(3, bool))
    candidates = answers.span_candidates(np.zeros(3), np.zeros(3), pieces, tried=3, max_answer_length=1)
    assert [answer["text"] for answer in answers.best_answers("ab ", [candidates], 3)] == ["ab"]


def test_texts_that_nobody_sees_are_no_answer():
    context = "\ufeff\u200b ab \u200d\u2060"
    pieces = answers.WindowPieces(0, np.array([0, 2, 6]), np.array([2, 6, 8]), np.ones(3, bool))
    candidates = answers.span_candidates(np.zeros(3), np.zeros(3), pieces, tried=3, max_answer_length=1)
    assert [answer["text"] for answer in answers.best_answers(context, [candidates], 3)] == ["ab"]
    for shown in ("€", "、", "\U0001f600", "\u0301"):
        pieces = answers.WindowPieces(0, np.array([0]), np.array([len(shown)]), np.ones(1, bool))
        candidates = answers.span_candidates(np.zeros(1), np.zeros(1), pieces, tried=1, max_answer_length=1)
        assert [answer["text"] for answer in answers.best_answers(shown, [candidates], 1)] == [shown]
