"""albert_tf.record_flags: flags, vocabulary and records that contradict each other are refused."""

from __future__ import annotations

import pathlib

import pytest

from albert_tf import record_flags
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.files import sha256
from tests import own_flags
from tests import pretraining_records as toy

CONFIG = AlbertConfig(**toy.CONFIG)


def write_vocabulary(path: pathlib.Path, first_word: str) -> pathlib.Path:
    words = [first_word, *(f"w{number}" for number in range(6, toy.VOCAB_SIZE))]
    path.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]) + "\n")
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> pathlib.Path:
    directory = tmp_path_factory.mktemp("data")
    vocabulary = write_vocabulary(directory / "vocab.txt", "w5")
    paths = toy.write_shards(directory, [4, 4])
    settings = {"vocab_file": str(vocabulary), "vocab_sha256": sha256(vocabulary), "kind": "wordpiece"}
    toy.write_metadata(directory, paths, [4, 4], do_lower_case=False, keep_accents=True, **settings)
    return directory


def agree(monkeypatch: pytest.MonkeyPatch, data: pathlib.Path, **given):
    own_flags.use_for_pretraining(monkeypatch, input_file=data / "train-*.tfrecord", **given)
    training, held_out = record_flags.find_records()
    tokenizer = record_flags.find_tokenizer(training, CONFIG)
    return record_flags.agree_on_shape([records for records in (training, held_out) if records], CONFIG, tokenizer)


def test_what_agrees_is_taken(monkeypatch, data):
    shape = agree(monkeypatch, data, max_predictions_per_seq=toy.P, do_lower_case=False, vocab_file=data / "vocab.txt")
    assert (shape.max_seq_length, shape.max_predictions_per_seq) == (toy.S, toy.P)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"max_predictions_per_seq": 5}, "max_predictions_per_seq is 3 .* but 5 by --max_predictions_per_seq"),
        ({"do_lower_case": True}, "do_lower_case is False .* but True by --do_lower_case"),
        ({"keep_accents": False}, "keep_accents is True .* but False by --keep_accents"),
    ],
)
def test_flags_that_the_records_contradict_are_refused(monkeypatch, data, given, expected):
    with pytest.raises(InputError, match=expected):
        agree(monkeypatch, data, **given)


def test_another_vocabulary_of_the_same_size_is_refused(monkeypatch, data, tmp_path):
    other = write_vocabulary(tmp_path / "other.txt", "another")
    expected = f"vocab_sha256 is '{sha256(data / 'vocab.txt')}' .* but '{sha256(other)}' by the vocabulary {other}"
    with pytest.raises(InputError, match=expected):
        agree(monkeypatch, data, vocab_file=other)


def test_held_out_records_are_not_trained_on(monkeypatch, data, tmp_path):
    (tmp_path / "link").symlink_to(data)
    path = tmp_path / "link" / "train-00001-of-00002.tfrecord"
    with pytest.raises(InputError, match=f"{path} is named by --input_file and by --eval_input_file"):
        agree(monkeypatch, data, eval_input_file=path)
    agree(monkeypatch, data, eval_input_file=path, do_eval=False)
