"""A vector for each text, in the order of the rows, from any model; and the .npy files that predict writes of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import predict, text_vectors
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.head_config import HeadConfig
from albert_tf.models import AlbertModel
from albert_tf.task_models import AlbertForSequenceClassification, AlbertForTokenClassification
from albert_tf.text_vectors import TextVectors
from albert_tf.tokenization import load_tokenizer
from albert_tf.vector_file import write_vectors
from tests.own_flags import parsed, refusal

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "door", "is", "open", "shut", ".", "red"]
TEXTS = ["the door is open .", "", "red", "the " * 40 + "door", "shut . red", "the door", "unheard words", "red " * 9]
LENGTH = 32


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    path.write_text("\n".join(WORDS) + "\n")
    return load_tokenizer(path)


def config() -> AlbertConfig:
    return AlbertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        embedding_size=8,
        max_position_embeddings=LENGTH,
        initializer_range=0.5,
    )


@pytest.fixture(scope="module")
def model():
    tf.keras.utils.set_random_seed(1)
    return AlbertModel(config())


@pytest.fixture(scope="module")
def directory(model, tokenizer, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model"
    model.save_pretrained(path, tokenizer)
    return path


def expected(model, tokenizer, text: str, pair: str | None, pooling: str) -> np.ndarray:
    """By the model alone, one text without padding."""
    first = tokenizer.encode(text)[: LENGTH - 2]
    second = tokenizer.encode(pair) + [tokenizer.sep_id] if pair is not None else []
    ids = [tokenizer.cls_id, *first, tokenizer.sep_id, *second]
    segments = [0] * (len(ids) - len(second)) + [1] * len(second)
    outputs = model({"input_ids": tf.constant([ids]), "segment_ids": tf.constant([segments])}, training=False)
    sequence = outputs["sequence_output"].numpy()[0].astype(np.float64)
    return {"pooled": outputs["pooled_output"].numpy()[0], "mean": sequence.mean(0), "cls": sequence[0]}[pooling]


@pytest.mark.parametrize("pooling", ["pooled", "mean", "cls"])
def test_each_row_is_that_of_its_text_alone(model, tokenizer, pooling):
    vectors = TextVectors.of_model(model, tokenizer, pooling=pooling, max_seq_length=LENGTH, batch_size=3)(TEXTS)
    assert vectors.shape == (len(TEXTS), 16) and vectors.dtype == np.float32
    for row, text in zip(vectors, TEXTS):
        np.testing.assert_allclose(row, expected(model, tokenizer, text, None, pooling), atol=1e-5, rtol=0)


def test_pairs_are_one_sequence(model, tokenizer):
    pairs = ["red", None, "the door", "", None, "shut", None, None]
    vectors = TextVectors.of_model(model, tokenizer, max_seq_length=LENGTH, batch_size=8)
    for row, text, pair in zip(vectors(TEXTS, pairs), TEXTS, pairs):
        if len(text) < 100:
            np.testing.assert_allclose(row, expected(model, tokenizer, text, pair, "pooled"), atol=1e-5, rtol=0)
    assert vectors.cut == 1


def test_a_batch_is_no_larger_than_what_is_asked(model, tokenizer, monkeypatch):
    vectors = TextVectors.of_model(model, tokenizer, max_seq_length=LENGTH, batch_size=8)
    shapes, of_batch = [], vectors._vectors
    monkeypatch.setattr(vectors, "_vectors", lambda ids, *more: [shapes.append(ids.shape[0]), of_batch(ids, *more)][1])
    for count in (1, 3, 20):
        vectors(["red door"] * count)
    assert shapes == [1, 3, 8, 8, 8]


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"pooling": "max"}, "must be one of pooled, mean, cls"), ({"max_seq_length": 33}, "has 32 positions")],
)
def test_what_the_model_cannot_do_is_refused(model, tokenizer, settings, message):
    with pytest.raises(InputError, match=message):
        TextVectors.of_model(model, tokenizer, **{"max_seq_length": LENGTH, **settings})


def test_there_must_be_a_pooler(tokenizer):
    with pytest.raises(InputError, match="no pooler"):
        TextVectors.of_model(AlbertModel(config(), with_pooler=False), tokenizer, max_seq_length=LENGTH)


def test_vectors_are_written_block_by_block(tmp_path):
    blocks = [np.full((count, 4), count, np.float64) for count in (3, 0, 120000)]
    assert write_vectors(str(tmp_path / "x.npy"), 4, iter(blocks)) == 120003
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), np.concatenate(blocks).astype(np.float32))

    def failing():
        yield blocks[0]
        raise InputError("a bad row")

    with pytest.raises(InputError, match="a bad row"):
        write_vectors(str(tmp_path / "y.npy"), 4, failing())
    assert os.listdir(tmp_path) == ["x.npy"]


# The command


def test_fine_tuned_models_have_vectors_too(tokenizer, tmp_path):
    """Those of classifiers have a pooler; those of taggers have none, and a random one is never taken."""
    (tmp_path / "texts.txt").write_text("the door\n\n")
    given = [f"--input={tmp_path / 'texts.txt'}", f"--output={tmp_path / 'x.npy'}"]
    classifier = AlbertForSequenceClassification(config(), HeadConfig("classifier", 2))
    classifier.save_pretrained(tmp_path / "classifier", tokenizer)
    assert refusal(predict, f"--model={tmp_path / 'classifier'}", *given) == ""
    row = expected(classifier.albert, tokenizer, "the door", None, "pooled")
    np.testing.assert_allclose(np.load(tmp_path / "x.npy")[0], row, atol=1e-5, rtol=0)

    tagger = AlbertForTokenClassification(config(), HeadConfig("tagger", 2))
    tagger.save_pretrained(tmp_path / "tagger", tokenizer)
    assert "--pooling=mean" in refusal(predict, f"--model={tmp_path / 'tagger'}", *given)
    assert refusal(predict, f"--model={tmp_path / 'tagger'}", "--pooling=mean", *given) == ""
    assert np.load(tmp_path / "x.npy").shape == (2, 16)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model=nowhere"], "nowhere"),
        (["--max_seq_length=99"], "has 32 positions"),
        (["--columns=text=7"], "no column '7'"),
    ],
)
def test_wrong_arguments(monkeypatch, directory, tmp_path, arguments, message):
    (tmp_path / "texts.tsv").write_text("one\n")
    monkeypatch.chdir(tmp_path)
    assert message in refusal(predict, f"--model={directory}", "--input=texts.tsv", "--output=x.npy", *arguments)
    assert os.listdir(tmp_path) == ["texts.tsv"]


def test_a_model_without_its_vocabulary(model, tmp_path):
    model.save_pretrained(tmp_path / "model")
    (tmp_path / "texts.txt").write_text("one\n")
    arguments = [f"--input={tmp_path / 'texts.txt'}", f"--output={tmp_path / 'x.npy'}"]
    assert "has no vocabulary" in refusal(predict, f"--model={tmp_path / 'model'}", *arguments)


def test_a_kill_leaves_no_output(directory, tmp_path):
    (tmp_path / "texts.txt").write_text("the door is open .\n" * 400_000)
    output = tmp_path / "out" / "vectors.npy"
    command = [sys.executable, "-m", "albert_tf.predict", f"--model={directory}", f"--output={output}"]
    process = subprocess.Popen([*command, f"--input={tmp_path / 'texts.txt'}"], stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 60
        while not (output.parent.is_dir() and any(file.stat().st_size > 1e5 for file in output.parent.iterdir())):
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.05)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not output.exists()


def test_the_two_lists_of_poolings_are_one():
    assert parsed(predict)["pooling"].parser.enum_values == list(text_vectors.POOLINGS)
