"""Kept features: the same as made anew, never those of something else, whole under any number of writers."""

from __future__ import annotations

import dataclasses
import logging
import threading

import numpy as np
import pytest

from albert_tf import feature_cache
from albert_tf.errors import InputError
from albert_tf.feature_cache import cached_features
from albert_tf.head_config import HeadConfig
from albert_tf.task_kinds.choices import ChoiceKind
from albert_tf.task_kinds.tags import TagKind
from albert_tf.task_kinds.texts import TextKind
from albert_tf.tasks.examples import ChoiceExample, TagExample, TextExample
from albert_tf.tokenization import load_tokenizer
from tests import toy_vocabulary

HEAD = HeadConfig("classifier", labels=("no", "yes"))
EXAMPLES = [TextExample(str(n), f"the house {n} " * 9, None if n % 2 else "old", "no", f"line {n}") for n in range(40)]
CASES = {
    "text": (TextKind(HEAD, max_seq_length=128), EXAMPLES),
    "choice": (
        ChoiceKind(HeadConfig("multiple_choice"), max_seq_length=24),
        [ChoiceExample("0", "the house", "is _", ("a", "b", "c"), 1), ChoiceExample("1", "red", "_", ("a", "b"), 0)],
    ),
    "tag": (TagKind(HeadConfig("tagger", labels=("O",)), max_seq_length=12), [TagExample("0", ("the",) * 20)]),
}


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(toy_vocabulary.number_model())


class Counting(TextKind):
    """Counts how often features are made."""

    made = 0

    def features(self, examples, tokenizer, *, training):
        type(self).made += 1
        return super().features(examples, tokenizer, training=training)


@pytest.fixture
def counting():
    Counting.made = 0
    return Counting


def assert_equal(one, other) -> None:
    for field in dataclasses.fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if not isinstance(a, dict):
            a, b = {"": a}, {"": b}
        assert set(a) == set(b)
        for name in a:
            np.testing.assert_array_equal(a[name], b[name])
            assert getattr(a[name], "dtype", None) == getattr(b[name], "dtype", None)


@pytest.mark.parametrize("name", CASES)
def test_they_are_made_once_and_stay_the_same(name, tmp_path, tokenizer, caplog):
    kind, examples = CASES[name]
    with caplog.at_level(logging.INFO, logger="absl"):
        made = cached_features(kind, examples, tokenizer, training=False, directory=tmp_path / "cache")
        assert "made, and kept in" in caplog.text
        assert "read from" not in caplog.text
        read = cached_features(kind, examples, tokenizer, training=False, directory=tmp_path / "cache")
        assert "read from" in caplog.text
    assert_equal(made, kind.features(examples, tokenizer, training=False))
    assert_equal(read, made)


def test_other_settings_are_never_taken_for_the_same(tmp_path, tokenizer, counting):
    """Features made with length 128 and asked for with 64 in the same directory are made anew."""
    base = {"kind": counting(HEAD, max_seq_length=128), "examples": EXAMPLES, "tokenizer": tokenizer, "training": True}
    accents = load_tokenizer(toy_vocabulary.number_model(), keep_accents=True)
    changes = [
        {},
        {"kind": counting(HEAD, max_seq_length=64)},
        {"kind": counting(HeadConfig("classifier", labels=("yes", "no")), max_seq_length=128)},
        {"examples": EXAMPLES[:-1]},
        {"examples": EXAMPLES[::-1]},
        {"examples": [dataclasses.replace(EXAMPLES[0], label="yes"), *EXAMPLES[1:]]},
        {"examples": [dataclasses.replace(EXAMPLES[0], text_b=None), *EXAMPLES[1:]]},
        {"tokenizer": accents},
        {"tokenizer": load_tokenizer(toy_vocabulary.alphabet_model())},
        {"training": False},
    ]
    for number, change in enumerate(changes, start=1):
        arguments = {**base, **change}
        kind, examples, used = (arguments.pop(name) for name in ("kind", "examples", "tokenizer"))
        for _ in range(2):
            features = cached_features(kind, examples, used, **arguments, directory=tmp_path)
            assert counting.made == number
        assert features.sizes.max() <= kind.max_seq_length
    moved = [dataclasses.replace(example, place="elsewhere") for example in EXAMPLES]
    cached_features(base["kind"], moved, tokenizer, training=True, directory=tmp_path)
    assert counting.made == len(changes)


def test_other_code_is_never_taken_for_the_same(tmp_path, tokenizer, counting, monkeypatch):
    kind = counting(HEAD, max_seq_length=128)
    cached_features(kind, EXAMPLES, tokenizer, training=True, directory=tmp_path)
    monkeypatch.setattr(feature_cache, "_code", lambda: "other")
    cached_features(kind, EXAMPLES, tokenizer, training=True, directory=tmp_path)
    assert counting.made == 2


@pytest.mark.parametrize("damage", ["cut", "empty", "noise", "flipped", "shorter", "other"])
def test_a_damaged_file_is_made_again(damage, tmp_path, tokenizer, counting, caplog):
    kind, examples = counting(HEAD, max_seq_length=128), EXAMPLES * 10
    wanted = cached_features(kind, examples, tokenizer, training=True, directory=tmp_path)
    (path,) = tmp_path.glob("*" + feature_cache.SUFFIX)
    data = path.read_bytes()
    length = len(wanted.input_ids)
    place = data.index(b"input_ids.npy") + 300
    path.write_bytes(
        {
            "cut": data[: len(data) // 2],
            "empty": b"",
            "noise": b"\x93NUMPY" + bytes(range(200)),
            "flipped": data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :],
            "shorter": data.replace(b"(%d,)" % length, b"(%d,)" % (length - 2000)),
            "other": data,
        }[damage]
    )
    if damage == "other":  # a file that somebody renamed
        cached_features(kind, examples[:3], tokenizer, training=True, directory=tmp_path)
        (other,) = set(tmp_path.glob("*" + feature_cache.SUFFIX)) - {path}
        other.replace(path)
        counting.made = 1
    with caplog.at_level(logging.WARNING, logger="absl"):
        again = cached_features(kind, examples, tokenizer, training=True, directory=tmp_path)
    assert counting.made == 2
    assert f"the features in {path} cannot be read" in caplog.text
    assert_equal(again, wanted)
    cached_features(kind, examples, tokenizer, training=True, directory=tmp_path)
    assert counting.made == 2


def test_several_at_once_make_them_once(tmp_path, tokenizer, counting):
    kind = counting(HEAD, max_seq_length=128)
    results = []

    def work() -> None:
        results.append(cached_features(kind, EXAMPLES, tokenizer, training=True, directory=tmp_path))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counting.made == 1
    assert len(results) == 6
    for features in results:
        assert_equal(features, results[0])


def test_what_was_cut_is_told_again(tmp_path, tokenizer, caplog):
    kind = TextKind(HEAD, max_seq_length=20)
    for _ in range(2):
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="absl"):
            cached_features(kind, EXAMPLES, tokenizer, training=True, directory=tmp_path)
        assert "40 of 40 examples (100.0 %)" in caplog.text


def test_without_a_directory_nothing_is_kept(tmp_path, tokenizer, counting, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        cached_features(counting(HEAD, max_seq_length=128), EXAMPLES, tokenizer, training=True, directory=None)
    assert counting.made == 2
    assert not list(tmp_path.iterdir())


def test_errors_leave_nothing_behind(tmp_path, tokenizer):
    bad = [dataclasses.replace(EXAMPLES[0], label="maybe")]
    with pytest.raises(InputError, match="line 0: the label is 'maybe'"):
        cached_features(TextKind(HEAD, max_seq_length=64), bad, tokenizer, training=True, directory=tmp_path)
    assert not list(tmp_path.glob("*" + feature_cache.SUFFIX))
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot make the directory"):
        cached_features(
            TextKind(HEAD, max_seq_length=64), EXAMPLES, tokenizer, training=True, directory=tmp_path / "file" / "x"
        )
