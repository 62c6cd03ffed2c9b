"""The vocabulary script: the released layout of ids, its sampling, its clean-up and its errors."""

from __future__ import annotations

import gzip
import os
import random
import subprocess
import sys

import pytest

from albert_tf.errors import InputError
from albert_tf.progress import Progress
from albert_tf.tokenization import SentencePieceTokenizer, load_tokenizer
from data_prep import train_sentencepiece as script
from tests import toy_vocabulary as toy


def run(repository, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "data_prep.train_sentencepiece", *arguments]
    return subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=120)


def test_the_script_gives_the_released_layout_and_samples_its_input(repository, tmp_path):
    (tmp_path / "My Text").mkdir()
    lines = (toy.number_lines() * 50)[:50_000]
    (tmp_path / "My Text/a.txt").write_text("\n".join(lines[:25_000]))
    with gzip.open(tmp_path / "My Text/b.txt.gz", "wt") as file:
        file.write("\n".join(lines[25_000:]))
    arguments = [f"--input_file={tmp_path}/My Text/*", "--vocab_size=150", "--input_sentence_size=1000"]
    for name in ("one", "two"):
        result = run(repository, *arguments, f"--output_prefix={tmp_path}/{name}")
        assert result.returncode == 0, result.stderr
        assert f"wrote {tmp_path}/{name}.model" in result.stdout
        assert "1,000 lines from 2 file(s)" in result.stdout

    tokenizer = load_tokenizer(tmp_path / "one.model")
    assert tokenizer.vocab_size == 150
    assert tokenizer.pieces()[:13] == ["<pad>", "<unk>", *toy.SPECIALS, *toy.SYMBOLS]
    assert (tmp_path / "one.model").read_bytes() == (tmp_path / "two.model").read_bytes()
    listing = (tmp_path / "one.vocab").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[0] for line in listing] == tokenizer.pieces()
    assert sorted(os.listdir(tmp_path)) == ["My Text", "one.model", "one.vocab", "two.model", "two.vocab"]


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        (b"a few words only\n" * 20, ["--vocab_size=5000"], "--vocab_size=5000 is too large for this text"),
        (b"abcdefghijklmnopqrstuvwxyz\n" * 20, ["--vocab_size=20"], "--vocab_size=20 is too small for this text"),
        (b"\n \n\t\n", [], "only blank lines"),
        (b"good\nb\xffd\n", [], "line 2"),
        (b"word\n", ["--output_prefix=/tmp/"], "--output_prefix"),
        (b"word\n", ["--input_file=/nope/*.txt"], "/nope/"),
        (b"word\n", ["--vocab_size=3"], "vocab_size"),
        (b"word\n", ["--character_coverage=nan"], "--character_coverage=nan"),
        (b"word\n", ["--output_prefix=/dev/null/x"], "--output_prefix"),
    ],
)
def test_wrong_input_is_one_sentence_and_leaves_nothing(repository, tmp_path, content, arguments, message):
    (tmp_path / "text.txt").write_bytes(content)
    result = run(repository, f"--input_file={tmp_path}/text.txt", f"--output_prefix={tmp_path}/out", *arguments)
    assert result.returncode == 1
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and message in errors[0]
    assert "Traceback" not in result.stderr
    assert os.listdir(tmp_path) == ["text.txt"]


def test_bytes_that_are_no_text_may_be_replaced(repository, tmp_path):
    (tmp_path / "text.txt").write_bytes(b"good words of b\xffd text\n" * 50)
    prefix = f"--output_prefix={tmp_path}/out"
    result = run(repository, f"--input_file={tmp_path}/text.txt", prefix, "--vocab_size=25", "--errors=replace")
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("do_lower_case", "keep_accents", "expected"),
    [(True, False, "cafe ete"), (True, True, "café été"), (False, True, "CAFÉ ÉTÉ"), (False, False, "CAFE ETE")],
)
def test_the_text_is_cleaned_as_encoding_cleans_it(tmp_path, do_lower_case, keep_accents, expected):
    (tmp_path / "a.txt").write_text("CAFÉ\u3000 ÉTÉ \n\n  CAFÉ ÉTÉ", encoding="utf-8")
    with Progress(None, "reading", "B") as progress:
        lines = list(script.training_lines([str(tmp_path / "a.txt")], do_lower_case, keep_accents, "strict", progress))
    assert lines == [expected, expected]


def test_long_lines_are_cut_not_dropped():
    for line in ("word " * 3000 + "end", "中文" * 4000, "a" * 10_000, "short", "a" * script.MAX_LINE_BYTES):
        parts = list(script.cut_line(line))
        assert max(len(part.encode()) for part in parts) <= script.MAX_LINE_BYTES
        assert "".join(parts).replace(" ", "") == line.replace(" ", "")
        assert all(part == part.strip() for part in parts)
    assert len(list(script.cut_line("a" * script.MAX_LINE_BYTES))) == 1
    assert list(script.cut_line("")) == []


def test_the_sample_is_uniform_and_bounded():
    counts = [0] * 20
    for seed in range(2000):
        sample = script.sample_lines((str(i) for i in range(20)), 5, random.Random(seed))
        assert len(set(sample)) == 5
        for line in sample:
            counts[int(line)] += 1
    assert all(abs(count - 500) < 100 for count in counts)  # 5 standard deviations
    assert script.sample_lines(iter("abc"), 0, random.Random(0)) == ["a", "b", "c"]
    assert script.sample_lines(iter("abc"), 10, random.Random(0)) == ["a", "b", "c"]


def test_a_model_with_other_ids_is_refused():
    with pytest.raises(InputError, match="instead of"):
        script.check_model(load_tokenizer(toy.alphabet_model()), 299)
    quote_swallows = toy.train_model(toy.number_lines()[:300], 100, user_defined_symbols=",".join(toy.SYMBOLS))
    tokenizer = SentencePieceTokenizer("a.model", quote_swallows, True, False)
    with pytest.raises(InputError, match="instead of"):
        script.check_model(tokenizer, 100)
