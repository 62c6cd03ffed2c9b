"""Offsets of pieces in the graph against those in Python, which are held against the text itself."""

from __future__ import annotations

import functools

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
    "unusual": toy_vocabulary.unusual_model,
    "wordpiece": toy_vocabulary.wordpiece_vocabulary,
}
SETTINGS = [  # do_lower_case, keep_accents
    ("numbers", True, False),
    ("alphabet", True, False),
    ("alphabet", True, True),
    ("alphabet", False, False),
    ("alphabet", False, True),
    ("unusual", False, True),
    ("wordpiece", True, False),
    ("wordpiece", True, True),
    ("wordpiece", False, False),
]
TRACED = [("alphabet", True, True), ("unusual", False, True), ("wordpiece", True, False)]  # tracing costs seconds


@functools.cache
def made(name: str, do_lower_case: bool, keep_accents: bool, is_traced: bool = False):
    tokenizer = albert_tf.load_tokenizer(VOCABULARIES[name](), do_lower_case=do_lower_case, keep_accents=keep_accents)
    module = offsets_graph(tokenizer)

    def function(texts):
        return module(tf.strings.unicode_decode(texts, "UTF-8", errors="replace"))

    if is_traced:
        function = tf.function(function, input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    return tokenizer, function


def assert_equal(tokenizer, function, texts) -> None:
    encoded = function(tf.constant([text.encode() for text in texts], tf.string))
    for row, text in enumerate(texts):
        wanted = tokenizer.encode_with_offsets(text)
        for name, value, ragged in zip(wanted._fields, wanted, encoded):
            np.testing.assert_array_equal(ragged[row].numpy(), value, err_msg=f"{name} of {text!r}")


@pytest.mark.parametrize("setting", SETTINGS)
def test_on_odd_strings(setting):
    assert_equal(*made(*setting), toy_vocabulary.odd_strings())


@settings(max_examples=100, deadline=None)
@given(texts=strategies.lists(toy_vocabulary.odd_text(), max_size=4), setting=strategies.sampled_from(TRACED))
def test_on_any_text(texts, setting):
    assert_equal(*made(*setting, is_traced=True), texts)


@pytest.mark.parametrize(
    "text",
    [
        "\x1b\xb4",  # a character that is left out, then one that becomes a space and an accent
        "\xb4 \xb4\xb4a \xb4",
        "a\x1b \x1b\u200b \xb4\x1b",
        "\u200b\x1b a\u200b\x1b",
        "\x1b\u2581 \u2581\x1b\u2581",
        "\ufb01\u0301 a\u0301\u0301 e\u0323\u0302",  # a key of the normaliser begins where another has ended
        "\uff8a\uff9f\uff8b\uff9f \u1112\u1161\u11ab\u11ab \ufdfa",
        "abcab 2,2,. .ab",
    ],
)
@pytest.mark.parametrize("setting", TRACED[:2])
def test_what_the_normaliser_changes(setting, text):
    assert_equal(*made(*setting, is_traced=True), [text])


def test_accents_that_change_places():
    texts = ["a\u1dfc\u032e b", "\u0130\u0327 b", "x\u0345\u017f\xb2\u0130\u3099"]
    assert_equal(*made("wordpiece", True, False, is_traced=True), texts)


@pytest.mark.parametrize("name", ["numbers", "alphabet", "wordpiece"])
def test_on_real_lines(shared, name):
    assert_equal(*made(name, True, False), toy_vocabulary.corpus_lines(shared, 60))
