"""`formats.checkpoint.Vocabulary`: what kind a tokenizer's file is, how its text is cleaned, and under which names."""

from __future__ import annotations

import json
import pathlib

import pytest

from albert_tf.errors import InputError
from albert_tf.formats.checkpoint import Vocabulary, find_vocabulary
from albert_tf.formats.hugging_face_tokenizer import write_vocabulary
from tests import toy_vocabulary as toy

MODEL = pathlib.Path(toy.number_model()).read_bytes()
WORDPIECES = pathlib.Path(toy.wordpiece_vocabulary()).read_bytes()


@pytest.mark.parametrize(
    ("name", "data", "written", "tokenizer_class"),
    [
        ("chinese.vocab", WORDPIECES, "vocab.txt", "BertTokenizer"),
        ("vocab.model", WORDPIECES, "vocab.txt", "BertTokenizer"),
        ("30k-clean.model", MODEL, "spiece.model", "AlbertTokenizer"),
        ("model.txt", MODEL, "spiece.model", "AlbertTokenizer"),
    ],
)
def test_the_content_tells_the_kind(tmp_path, name, data, written, tokenizer_class):
    vocabulary = Vocabulary(name, data)
    assert vocabulary.is_wordpiece == (written == "vocab.txt")
    assert vocabulary.is_wordpiece == (vocabulary.tokenizer().kind == "wordpiece")
    write_vocabulary(vocabulary, str(tmp_path), longest=16)
    assert {path.name for path in tmp_path.iterdir()} == {written, "tokenizer_config.json"}
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert settings["tokenizer_class"] == tokenizer_class and settings["model_max_length"] == 16
    assert find_vocabulary(tmp_path) == Vocabulary(written, data)


@pytest.mark.parametrize(
    ("settings", "do_lower_case", "keep_accents"),
    [
        (None, True, False),
        ({}, True, False),
        ({"do_lower_case": None, "strip_accents": None}, True, False),
        ({"do_lower_case": False}, False, False),
        ({"keep_accents": True, "remove_space": True}, True, True),
        ({"do_lower_case": True, "strip_accents": False}, True, True),
        ({"strip_accents": False, "keep_accents": False}, True, False),
        ({"strip_accents": True}, True, False),
    ],
)
@pytest.mark.parametrize(("name", "data"), [("vocab.txt", WORDPIECES), ("30k-clean.model", MODEL)])
def test_the_settings_beside_a_vocabulary_count(tmp_path, name, data, settings, do_lower_case, keep_accents):
    (tmp_path / name).write_bytes(data)
    if settings is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    expected = Vocabulary(name, data, do_lower_case, keep_accents)
    assert find_vocabulary(tmp_path) == Vocabulary.read(tmp_path / name) == expected
    assert find_vocabulary(tmp_path, do_lower_case=False) == Vocabulary(name, data, False, keep_accents)
    assert Vocabulary.read(tmp_path / name, do_lower_case=True, keep_accents=True) == Vocabulary(name, data, True, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", r"tokenizer_config\.json holds \[\] in place of a JSON object"),
        ('"lower"', "holds 'lower' in place"),
        ("{", r"tokenizer_config\.json is not a JSON file"),
        ('{"do_lower_case": "no"}', "do_lower_case is 'no': give true or false"),
        ('{"keep_accents": 1}', "keep_accents is 1: give true or false"),
    ],
)
def test_settings_that_are_none_are_told_in_one_sentence(tmp_path, text, message):
    (tmp_path / "spiece.model").write_bytes(MODEL)
    (tmp_path / "tokenizer_config.json").write_text(text)
    with pytest.raises(InputError, match=message):
        find_vocabulary(tmp_path)


def test_a_vocabulary_that_is_not_there(tmp_path):
    assert find_vocabulary(tmp_path) is None and find_vocabulary(tmp_path / "nowhere") is None
    with pytest.raises(InputError, match=r"cannot read the vocabulary .*absent\.model: No such file"):
        Vocabulary.read(tmp_path / "absent.model")


def test_the_only_model_is_the_vocabulary(tmp_path):
    (tmp_path / "one.model").write_bytes(MODEL)
    assert find_vocabulary(tmp_path) == Vocabulary("one.model", MODEL)
    (tmp_path / "two.model").write_bytes(MODEL)
    assert find_vocabulary(tmp_path) is None
    (tmp_path / "vocab.txt").write_bytes(WORDPIECES)
    assert find_vocabulary(tmp_path) == Vocabulary("vocab.txt", WORDPIECES)
