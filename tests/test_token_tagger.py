"""Sentences of words in, a tag for each word out."""

from __future__ import annotations

import random

import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf.errors import InputError
from tests import pipeline_models

TAGS = ["O", "B-X", "I-X"]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    tf.keras.utils.set_random_seed(7)
    return pipeline_models.write_encoder(tmp_path_factory.mktemp("token_tagger") / "encoder")


def sentences(count: int, seed: int):
    """ "in" begins an entity, "go" is inside of one, all else is none; each word is one piece."""
    rng = random.Random(seed)
    words = [rng.choices(["es", "as", "os", "in", "go"], k=rng.randrange(1, 7)) for _ in range(count)]
    return words, [[{"in": "B-X", "go": "I-X"}.get(word, "O") for word in some] for some in words]


@pytest.fixture(scope="module")
def trained(encoder):
    tf.keras.utils.set_random_seed(3)
    tagger = albert_tf.TokenTagger.from_pretrained(encoder, labels=TAGS)
    tagger.compile(learning_rate=pipeline_models.RATE)
    history = tagger.fit(*sentences(128, 0), sentences(32, 1), epochs=6, batch_size=16, verbose=0)
    return tagger, history.history


def test_it_learns(trained):
    tagger, history = trained
    assert {"loss", "val_loss", "val_entity_f1", "val_accuracy"} <= set(history)
    assert history["val_accuracy"][-1] > 0.95
    words, tags = sentences(20, 2)
    predictions = tagger.predict(words)
    assert [[word.word for word in some] for some in predictions] == words
    right = [word.tag == tag for some, given in zip(predictions, tags) for word, tag in zip(some, given)]
    assert tagger.evaluate(words, tags)["accuracy"] == pytest.approx(np.mean(right))
    assert tagger.predict([" ".join(words[0])]) == tagger.predict(words[:1])
    assert tagger.predict([[]]) == [[]]
    assert len(tagger.predict(["a x " * 40])[0]) == 80  # several windows


def test_saved_and_read_again_it_answers_the_same(trained, tmp_path):
    trained[0].save(tmp_path / "model")
    again = albert_tf.TokenTagger.from_pretrained(tmp_path / "model")
    assert again.labels == tuple(TAGS)
    assert again.predict(sentences(12, 4)[0]) == trained[0].predict(sentences(12, 4)[0])


def test_tags_that_are_numbers(encoder):
    tagger = albert_tf.TokenTagger.from_pretrained(encoder, labels=[0, 1])
    wanted = tagger.evaluate(["a b", "c"], [["0", "1"], ["1"]])
    assert tagger.evaluate(["a b", "c"], [np.array([0, 1]), [1]]) == wanted


def test_what_does_not_fit_is_refused(encoder, trained):
    tagger = trained[0]
    with pytest.raises(InputError, match="no head for a task.*TokenTagger.*labels="):
        albert_tf.TokenTagger.from_pretrained(encoder)
    with pytest.raises(InputError, match="labels is the string"):
        albert_tf.TokenTagger.from_pretrained(encoder, labels="OB")
    with pytest.raises(InputError, match="sentence 0: 2 words, but 1 tags"):
        tagger.fit(["a b"], [["O"]])
    with pytest.raises(InputError, match="sentence 0: the label is 'B-Y', but must be one of O, B-X, I-X"):
        tagger.fit(["a"], [["B-Y"]])
    with pytest.raises(InputError, match="sentences is the string 'a b'"):
        tagger.predict("a b")
    with pytest.raises(InputError, match=r"sentences\[0\] is None, but must be a list of words"):
        tagger.predict([None])
    with pytest.raises(InputError, match=r"sentences\[0\]\[0\] is 1, but must be a string"):
        tagger.predict([[1, 2]])
    with pytest.raises(InputError, match=r"tags\[0\] is the string 'OO', but must be a list of tags"):
        tagger.fit([["a", "b"]], ["OO"])
