"""albert_tf.embed: a vector for each row, in the order of the rows, from any model."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import embed, text_vectors
from albert_tf.config import AlbertConfig
from albert_tf.embed import TextRow, read_rows
from albert_tf.errors import InputError
from albert_tf.head_config import HeadConfig
from albert_tf.models import AlbertModel
from albert_tf.task_models import AlbertForSequenceClassification, AlbertForTokenClassification
from albert_tf.tasks.text_file import Columns
from albert_tf.text_vectors import TextVectors
from albert_tf.tokenization import load_tokenizer
from albert_tf.vector_file import write_vectors

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
    vectors = TextVectors(model, tokenizer, pooling=pooling, max_seq_length=LENGTH, batch_size=3)(TEXTS)
    assert vectors.shape == (len(TEXTS), 16) and vectors.dtype == np.float32
    for row, text in zip(vectors, TEXTS):
        np.testing.assert_allclose(row, expected(model, tokenizer, text, None, pooling), atol=1e-5, rtol=0)


def test_pairs_are_one_sequence(model, tokenizer):
    pairs = ["red", None, "the door", "", None, "shut", None, None]
    vectors = TextVectors(model, tokenizer, max_seq_length=LENGTH, batch_size=8)
    for row, text, pair in zip(vectors(TEXTS, pairs), TEXTS, pairs):
        if len(text) < 100:
            np.testing.assert_allclose(row, expected(model, tokenizer, text, pair, "pooled"), atol=1e-5, rtol=0)
    assert vectors.cut == 1


def test_a_batch_is_no_larger_than_what_is_asked(model, tokenizer, monkeypatch):
    vectors = TextVectors(model, tokenizer, max_seq_length=LENGTH, batch_size=8)
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
        TextVectors(model, tokenizer, **{"max_seq_length": LENGTH, **settings})


def test_there_must_be_a_pooler(tokenizer):
    with pytest.raises(InputError, match="no pooler"):
        TextVectors(AlbertModel(config(), with_pooler=False), tokenizer, max_seq_length=LENGTH)


# Rows of files


def test_every_line_of_a_text_file_is_a_row(tmp_path):
    content = "\ufeffone\n\n two \r\nthree\u2028four\tfive\n\n".encode()
    lines = ["one", "", " two ", "three\u2028four\tfive", ""]
    (tmp_path / "a.txt").write_bytes(content)
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(content[:-1]))
    for name in ("a.txt", "b.txt.gz"):
        count, rows = read_rows(str(tmp_path / name), Columns())
        assert [row.text for row in rows] == lines[: len(lines) - (name == "b.txt.gz")]
        assert count == len(lines) - (name == "b.txt.gz")


@pytest.mark.parametrize(
    ("name", "content", "columns", "rows"),
    [
        ("a.tsv", "sentence\tlabel\none\t1\ntwo\t\n", Columns(), [("one", None), ("two", None)]),
        ("b.tsv", "one\t1\ntwo\t0\n", Columns(), [("one", None), ("two", None)]),
        ("c.csv", 'x,y\n"a, b",c\n', Columns("x", "y"), [("a, b", "c")]),
        ("d.jsonl", '{"text": "one", "label": ["[", "b"]}\n{"text": ""}\n', Columns(), [("one", None), ("", None)]),
        ("e.tsv", "sentence1\tsentence2\na\tb\n", Columns(), [("a", "b")]),
    ],
)
def test_rows_of_tables(tmp_path, name, content, columns, rows):
    (tmp_path / name).write_text(content)
    count, found = read_rows(str(tmp_path / name), columns)
    assert list(found) == [TextRow(*row) for row in rows] and count == len(rows)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"good\n\xff\n", "a.txt, line 2: the byte 0xff"),
        ("b.txt.gz", gzip.compress(b"text\n" * 99, mtime=0)[:-9], "not a whole gzip file"),
        ("c.txt.gz", b"text", "not a whole gzip file"),
        ("d.tsv", b"a\tb\nc\n", "line 2 has 1 column"),
        ("e.txt", None, "is not a file"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_rows(str(tmp_path / name), Columns())


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


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "albert_tf.embed", *arguments], capture_output=True, text=True)


def test_the_command_writes_a_row_for_each_line(model, tokenizer, directory, tmp_path):
    (tmp_path / "texts.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    output = tmp_path / "new" / "vectors.npy"
    done = run(f"--model={directory}", f"--input_file={tmp_path / 'texts.txt'}", f"--output_file={output}")
    assert done.returncode == 0, done.stderr
    assert "8 rows of 16 numbers" in done.stdout and "1 of 8 examples" in done.stderr
    vectors = np.load(output, mmap_mode="r")
    assert vectors.dtype == np.float32 and vectors.shape == (8, 16)
    for row, text in zip(vectors, TEXTS):
        np.testing.assert_allclose(row, expected(model, tokenizer, text, None, "pooled"), atol=1e-5, rtol=0)
    assert os.listdir(output.parent) == ["vectors.npy"]


def script(monkeypatch, *arguments: str) -> str:
    """What main says when it refuses; "" when it does not."""
    values = flagged(*arguments)
    monkeypatch.setattr(embed, "FLAGS", values)
    try:
        return "" if embed.main([]) == 0 else "failed"
    except InputError as error:
        return str(error)


def flagged(*arguments: str):
    """The script's flags, apart from those of other scripts."""
    from absl import flags

    values = flags.FlagValues()
    with pytest.MonkeyPatch.context() as patch:
        for kind in ("string", "enum", "bool", "integer"):
            define = getattr(flags, f"DEFINE_{kind}")
            patch.setattr(flags, f"DEFINE_{kind}", lambda *a, define=define, **k: define(*a, flag_values=values, **k))
        patch.setattr(flags, "mark_flags_as_required", lambda names: None)
        embed.define_flags()
    values(["embed", *arguments])
    return values


def test_fine_tuned_models_have_vectors_too(monkeypatch, tokenizer, tmp_path):
    """Those of classifiers have a pooler; those of taggers have none, and a random one is never taken."""
    (tmp_path / "texts.txt").write_text("the door\n\n")
    given = [f"--input_file={tmp_path / 'texts.txt'}", f"--output_file={tmp_path / 'x.npy'}"]
    classifier = AlbertForSequenceClassification(config(), HeadConfig("classifier", 2))
    classifier.save_pretrained(tmp_path / "classifier", tokenizer)
    assert script(monkeypatch, f"--model={tmp_path / 'classifier'}", *given) == ""
    row = expected(classifier.albert, tokenizer, "the door", None, "pooled")
    np.testing.assert_allclose(np.load(tmp_path / "x.npy")[0], row, atol=1e-5, rtol=0)

    tagger = AlbertForTokenClassification(config(), HeadConfig("tagger", 2))
    tagger.save_pretrained(tmp_path / "tagger", tokenizer)
    assert "--pooling=mean" in script(monkeypatch, f"--model={tmp_path / 'tagger'}", *given)
    assert script(monkeypatch, f"--model={tmp_path / 'tagger'}", "--pooling=mean", *given) == ""
    assert np.load(tmp_path / "x.npy").shape == (2, 16)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output_file=x.npy"], "is empty"),
        (["--output_file=x.txt"], "must end in .npy"),
        (["--output_file=x.npy", "--model=nowhere"], "nowhere"),
        (["--output_file=x.npy", "--max_seq_length=99"], "has 32 positions"),
        (["--output_file=x.npy", "--text_column=text"], "no column 'text'"),
    ],
)
def test_wrong_arguments(monkeypatch, directory, tmp_path, arguments, message):
    empty = message == "is empty"
    name = "texts.tsv" if "--text_column=text" in arguments else "texts.txt"
    (tmp_path / name).write_text("" if empty else "one\n")
    arguments = [f"--model={directory}", f"--input_file={tmp_path / name}", *arguments]
    monkeypatch.chdir(tmp_path)
    assert message in script(monkeypatch, *arguments)
    assert os.listdir(tmp_path) == [name]


def test_a_model_without_its_vocabulary(monkeypatch, model, tmp_path):
    model.save_pretrained(tmp_path / "model")
    (tmp_path / "texts.txt").write_text("one\n")
    arguments = [f"--input_file={tmp_path / 'texts.txt'}", f"--output_file={tmp_path / 'x.npy'}"]
    assert "has no vocabulary" in script(monkeypatch, f"--model={tmp_path / 'model'}", *arguments)


def test_a_kill_leaves_no_output(directory, tmp_path):
    (tmp_path / "texts.txt").write_text("the door is open .\n" * 400_000)
    output = tmp_path / "out" / "vectors.npy"
    command = [sys.executable, "-m", "albert_tf.embed", f"--model={directory}", f"--output_file={output}"]
    process = subprocess.Popen([*command, f"--input_file={tmp_path / 'texts.txt'}"], stderr=subprocess.DEVNULL)
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
    assert flagged()["pooling"].parser.enum_values == list(text_vectors.POOLINGS)
