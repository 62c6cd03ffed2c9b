"""What is read out of a SentencePiece model, held against the library's own behaviour."""

from __future__ import annotations

import pathlib

import pytest
import sentencepiece

from albert_tf import sentencepiece_rules
from tests import toy_vocabulary

MODELS = {"alphabet": toy_vocabulary.alphabet_model, "unusual": toy_vocabulary.unusual_model}


@pytest.mark.parametrize("name", MODELS)
def test_without_its_normaliser_a_model_finds_the_same_pieces(name):
    data = pathlib.Path(MODELS[name]()).read_bytes()
    whole = sentencepiece.SentencePieceProcessor(model_proto=data)
    bare = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_rules.without_normalizer(data))
    for text in toy_vocabulary.odd_strings():
        normal = whole.normalize(text)
        assert bare.normalize(normal) == normal
        assert bare.encode(normal) == whole.encode(text)


def test_the_switches_and_symbols_are_the_models():
    usual, unusual = (
        sentencepiece_rules.normalizer_rules(pathlib.Path(MODELS[name]()).read_bytes()) for name in MODELS
    )
    assert usual.add_dummy_prefix and usual.remove_extra_whitespaces
    assert not unusual.add_dummy_prefix and not unusual.remove_extra_whitespaces
    assert set(usual.symbols) == set(toy_vocabulary.SYMBOLS)
    assert {"abc", "a\u0301", *toy_vocabulary.SYMBOLS} <= set(unusual.symbols)
    assert len(usual.units) and "ffi" in usual.texts.decode().split("\0")
