"""A passage, a question and choices in, the likeliest choice out."""

from __future__ import annotations

import random

import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf.errors import InputError
from tests import pipeline_models


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    tf.keras.utils.set_random_seed(7)
    return pipeline_models.write_encoder(tmp_path_factory.mktemp("multiple_choice") / "encoder")


def rows(count: int, seed: int):
    """The right choice has the x; there are two choices or three."""
    rng = random.Random(seed)
    made = []
    for number in range(count):
        choices = [" ".join(rng.choices("abcdefg", k=3)) for _ in range(2 + number % 2)]
        right = rng.randrange(len(choices))
        choices[right] = choices[right][:2] + "x" + choices[right][3:]
        made.append((" ".join(rng.choices("abcdefg", k=3)), "_ b?" if number % 3 else "b?", choices, right))
    return tuple(map(list, zip(*made)))


@pytest.fixture(scope="module")
def trained(encoder):
    tf.keras.utils.set_random_seed(3)
    answerer = albert_tf.MultipleChoiceAnswerer.from_pretrained(encoder, new_head=True)
    answerer.compile(learning_rate=pipeline_models.RATE)
    history = answerer.fit(*rows(128, 0), rows(48, 1), epochs=6, batch_size=16, verbose=0)
    return answerer, history.history


def test_it_learns(trained):
    answerer, history = trained
    assert set(history) == {"loss", "accuracy", "val_loss", "val_accuracy"}
    assert history["val_accuracy"][-1] > 0.9
    passages, questions, choices, labels = rows(30, 2)
    predictions = answerer.predict(passages, questions, choices)
    scores = answerer.evaluate(passages, questions, choices, labels)
    assert scores["accuracy"] == pytest.approx(np.mean([p.label == label for p, label in zip(predictions, labels)]))
    for prediction, given in zip(predictions, choices):
        assert len(prediction.probabilities) == len(given)
        assert sum(prediction.probabilities) == pytest.approx(1.0, abs=1e-6)
        assert prediction.choice == given[prediction.label]
        assert prediction.probability == max(prediction.probabilities)
    wanted = -np.mean([np.log(p.probabilities[label]) for p, label in zip(predictions, labels)])
    assert scores["loss"] == pytest.approx(wanted, abs=1e-5)


def test_saved_and_read_again_it_answers_the_same(trained, tmp_path):
    trained[0].save(tmp_path / "model")
    again = albert_tf.MultipleChoiceAnswerer.from_pretrained(tmp_path / "model")
    asked = rows(12, 4)[:3]
    assert again.predict(*asked) == trained[0].predict(*asked)


def test_letters_are_labels_too(trained):
    passages, questions, choices, labels = rows(12, 5)
    letters = ["ABC"[label] for label in labels]
    wanted = trained[0].evaluate(passages, questions, choices, labels)
    assert trained[0].evaluate(passages, questions, choices, letters) == wanted
    assert trained[0].evaluate(passages, questions, choices, np.array(labels)) == wanted


def test_what_does_not_fit_is_refused(encoder, trained):
    answerer = trained[0]
    with pytest.raises(InputError, match="no head for a task.*MultipleChoiceAnswerer.*new_head=True"):
        albert_tf.MultipleChoiceAnswerer.from_pretrained(encoder)
    with pytest.raises(InputError, match=r"choices\[0\] is the string 'ab'"):
        answerer.predict(["p"], ["q"], ["ab"])
    with pytest.raises(InputError, match="row 0: choice 2 is right, but the choices are 0 to 1"):
        answerer.fit(["p"], ["q"], [["a", "b"]], [2])
    with pytest.raises(InputError, match="1 passages, 1 questions, 2 choices"):
        answerer.predict(["p"], ["q"], [["a", "b"], ["a", "b"]])
    with pytest.raises(InputError, match=r"choices\[0\] is None, but must be a list of choices"):
        answerer.predict(["p"], ["q"], [None])
    with pytest.raises(InputError, match=r"choices\[0\]\[1\] is None, but must be a string"):
        answerer.predict(["p"], ["q"], [["a", None]])
    for label in ("x", "AB", 1.0, True, [0]):
        with pytest.raises(
            InputError, match=r"labels\[0\] is .*, but must be the index of the right choice, or its letter"
        ):
            answerer.fit(["p"], ["q"], [["a", "b"]], [label])
