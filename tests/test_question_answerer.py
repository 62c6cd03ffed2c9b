"""A question and a context in, the answer's text and place out."""

from __future__ import annotations

import random

import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf import answer_metrics
from albert_tf.errors import InputError
from albert_tf.tasks.examples import GoldAnswer, QuestionExample
from tests import pipeline_models


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    tf.keras.utils.set_random_seed(7)
    return pipeline_models.write_encoder(tmp_path_factory.mktemp("question_answerer") / "encoder")


def questions(count: int, seed: int) -> tuple[list[str], list[str], list[tuple[str, int] | None]]:
    """The answer is the x of the context, which one context in three does not have."""
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        words = rng.choices("abcdefg", k=rng.randrange(3, 8))
        if number % 3:
            words.insert(rng.randrange(len(words) + 1), "x")
        context = "  " + " ".join(words)  # nothing is stripped
        rows.append(("b", context, ("x", context.index("x")) if number % 3 else None))
    return tuple(map(list, zip(*rows)))


@pytest.fixture(scope="module")
def trained(encoder):
    tf.keras.utils.set_random_seed(3)
    answerer = albert_tf.QuestionAnswerer.from_pretrained(encoder, new_head=True)
    answerer.compile(learning_rate=3 * pipeline_models.RATE)
    history = answerer.fit(*questions(192, 0), questions(48, 1), epochs=5, batch_size=16, verbose=0)
    return answerer, history.history


def test_it_learns_where_answers_are_and_where_none_is(trained):
    answerer, history = trained
    assert {"loss", "val_loss", "val_f1", "val_exact_match"} <= set(history)
    assert history["val_exact_match"][-1] > 0.9
    asked, contexts, answers = questions(30, 2)
    predictions = answerer.predict(asked, contexts)
    right = 0
    for prediction, context, answer in zip(predictions, contexts, answers):
        assert prediction.has_answer == (prediction.start >= 0) == (prediction.text != "")
        assert 0.0 <= prediction.no_answer_probability <= 1.0 and 0.0 <= prediction.probability <= 1.0
        if prediction.has_answer:
            assert context[prediction.start : prediction.end] == prediction.text
        right += (prediction.text, prediction.start) == (("", -1) if answer is None else answer)
    assert right > 27


def test_one_question_alone_gives_one_answer(trained):
    answerer = trained[0]
    answer = answerer.predict("b", "a b x c")
    assert answer == answerer.predict(["b"], ["a b x c"])[0]
    assert (answer.text, answer.start, answer.end, answer.has_answer) == ("x", 4, 5, True)
    assert answerer.predict("b", "").has_answer is False


def test_questions_that_share_a_context(trained):
    answerer = trained[0]
    shared = answerer.predict(["b", "b c"], "a b x c")
    assert shared == answerer.predict(["b", "b c"], ["a b x c", "a b x c"])
    scores = answerer.evaluate(["b", "b c"], "a b x c", ["x", "x"])
    assert scores == answerer.evaluate(["b", "b c"], ["a b x c"] * 2, ["x", "x"])


@pytest.mark.parametrize(
    "answer",
    [
        {"text": "x", "answer_start": 4},
        {"text": ["x"], "answer_start": [4]},
        {"text": np.array(["x"]), "answer_start": np.array([4])},
        [{"text": "x", "answer_start": 4}],
        ["x", np.int64(4)],
    ],
)
def test_answers_in_the_form_of_squad(trained, answer):
    asked = ["b", "b"], "a b x c x"
    none = {"text": [], "answer_start": []}
    assert trained[0].evaluate(*asked, [answer, none]) == trained[0].evaluate(*asked, [("x", 4), None])


def test_scores_are_those_of_exact_texts(trained):
    answerer = trained[0]
    asked, contexts, answers = questions(30, 3)
    scores = answerer.evaluate(asked, contexts, answers)
    predictions = answerer.predict(asked, contexts)
    texts = [answer_metrics.normalise(prediction.text) for prediction in predictions]  # "a" is an article: nothing
    gold = ["" if answer is None else "x" for answer in answers]
    assert scores["exact_match"] == pytest.approx(np.mean([text == right for text, right in zip(texts, gold)]))
    assert np.isfinite(scores["loss"])


def test_saved_and_read_again_it_answers_the_same(trained, tmp_path):
    answerer = trained[0]
    answerer.save(tmp_path / "model")
    again = albert_tf.QuestionAnswerer.from_pretrained(tmp_path / "model")
    asked, contexts, _ = questions(12, 4)
    assert again.predict(asked, contexts) == answerer.predict(asked, contexts)
    assert again.kind.settings == answerer.kind.settings


def test_examples_of_a_file_and_a_head_that_always_answers(encoder):
    answerer = albert_tf.QuestionAnswerer.from_pretrained(encoder, new_head=True, always_answers=True, doc_stride=8)
    examples = [
        QuestionExample(str(n), "b", "a b x c " * 6, (GoldAnswer("x", 4), GoldAnswer("x c", 4))) for n in range(3)
    ]
    answerer.fit_examples(examples, epochs=1, batch_size=2, verbose=0)
    answer = answerer.predict("b", "a b x c " * 6)
    assert answer.has_answer and answer.no_answer_probability is None
    assert ("a b x c " * 6)[answer.start : answer.end] == answer.text


def test_saved_over_a_model_of_another_head_and_over_nothing_else(encoder, tmp_path):
    albert_tf.TextClassifier.from_pretrained(encoder, labels=["a", "b"]).save(tmp_path / "model")
    answerer = albert_tf.QuestionAnswerer.from_pretrained(encoder, new_head=True)
    answerer.save(tmp_path / "model")
    again = albert_tf.QuestionAnswerer.from_pretrained(tmp_path / "model")
    assert again.predict("b", "a b x c") == answerer.predict("b", "a b x c")
    (tmp_path / "model" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="holds notes.txt, which would be lost"):
        answerer.save(tmp_path / "model")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text("{}")
    with pytest.raises(InputError, match="holds config.json, which would be lost"):
        answerer.save(tmp_path / "other")


def test_what_does_not_fit_is_refused(encoder, trained):
    answerer = trained[0]
    with pytest.raises(InputError, match="no head for a task.*QuestionAnswerer.*new_head=True"):
        albert_tf.QuestionAnswerer.from_pretrained(encoder)
    with pytest.raises(InputError, match=r"answers\[1\] is 'z', which is not in its context"):
        answerer.fit(["b", "b"], ["a x", "a x"], ["x", "z"])
    with pytest.raises(InputError, match=r"answers\[0\] is 'x', which is not in its context at that place"):
        answerer.fit(["b"], ["a x"], [("x", 1)])
    with pytest.raises(InputError, match="1 questions, 2 contexts"):
        answerer.predict(["b"], ["a", "b"])
    with pytest.raises(InputError, match=r"questions\[0\] is None, but must be a string"):
        answerer.predict([None], ["x"])
    with pytest.raises(InputError, match=r"contexts\[1\] is 3, but must be a string"):
        answerer.predict(["b", "b"], ["x", 3])
    for answer in (
        5,
        {"text": "x"},
        {"text": "x", "answer_start": "1"},
        ("x", None),
        {"text": ["x"], "answer_start": 2},
    ):
        with pytest.raises(InputError, match=r"answers\[0\] is .*, but must be a text, a text and where it begins"):
            answerer.fit(["b"], ["a x"], [answer])
    with pytest.raises(InputError, match="takes metrics by name"):
        answerer.compile(metrics=[tf.keras.metrics.Mean()])
    answerer.compile()


def test_contexts_are_tokenised_once_to_be_measured_on(trained, monkeypatch):
    answerer = trained[0]
    asked, contexts, answers = questions(4, 8)
    encoded = []
    original = type(answerer.tokenizer).encode_with_offsets

    def counting(self, text):
        encoded.append(text)
        return original(self, text)

    monkeypatch.setattr(type(answerer.tokenizer), "encode_with_offsets", counting)
    answerer.evaluate(asked, contexts, answers)
    assert sorted(encoded) == sorted(set(contexts))
