"""Offsets of pieces in the graph against those in Python, which are held against the text itself."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies

import albert_tf
from albert_tf.offsets_graph import offsets_graph
from tests import toy_vocabulary

VOCABULARIES = {
    "numbers": toy_vocabulary.number_model,
    "alphabet": toy_vocabulary.alphabet_model,
    "wordpiece": toy_vocabulary.wordpiece_vocabulary,
}
SETTINGS = [(True, False), (True, True), (False, False), (False, True)]
_made: dict = {}


def made(name: str, do_lower_case: bool, keep_accents: bool):
    key = name, do_lower_case, keep_accents
    if key not in _made:
        tokenizer = albert_tf.load_tokenizer(
            VOCABULARIES[name](), do_lower_case=do_lower_case, keep_accents=keep_accents
        )
        module = offsets_graph(tokenizer)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
        def function(texts):
            return module(tf.strings.unicode_decode(texts, "UTF-8", errors="replace"))

        _made[key] = tokenizer, function
    return _made[key]


def assert_equal(tokenizer, function, texts) -> None:
    encoded = function(tf.constant([text.encode() for text in texts], tf.string))
    for row, text in enumerate(texts):
        wanted = tokenizer.encode_with_offsets(text)
        for name, value, ragged in zip(wanted._fields, wanted, encoded):
            np.testing.assert_array_equal(ragged[row].numpy(), value, err_msg=f"{name} of {text!r}")


@pytest.mark.parametrize(("do_lower_case", "keep_accents"), SETTINGS)
@pytest.mark.parametrize("name", VOCABULARIES)
def test_on_odd_strings(name, do_lower_case, keep_accents):
    assert_equal(*made(name, do_lower_case, keep_accents), toy_vocabulary.odd_strings())


@pytest.mark.parametrize("name", VOCABULARIES)
@settings(max_examples=60, deadline=None)
@given(texts=strategies.lists(toy_vocabulary.odd_text(), max_size=4), setting=strategies.sampled_from(SETTINGS))
def test_on_any_text(name, texts, setting):
    assert_equal(*made(name, *setting), texts)


@pytest.mark.parametrize("name", VOCABULARIES)
def test_on_real_lines(shared, name):
    assert_equal(*made(name, True, False), toy_vocabulary.corpus_lines(shared, 60))
