"""The graph side of the tokenizers gives the Python side's ids on every string."""

from __future__ import annotations

import functools
import json
import time

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.tokenization import load_tokenizer
from tests import toy_vocabulary as toy

pytest.importorskip("tensorflow_text")

VOCABULARIES = [toy.number_model, toy.alphabet_model, toy.wordpiece_vocabulary]
BATCH = 64


@functools.cache
def sides(file: str, do_lower_case: bool, keep_accents: bool):
    tokenizer = load_tokenizer(file, do_lower_case=do_lower_case, keep_accents=keep_accents)
    return tokenizer, tokenizer.to_graph()


def assert_equal_ids(tokenizer, graph, texts):
    ids = graph(tf.constant([text.encode() for text in texts], tf.string))
    assert ids.dtype == tf.int32
    for text, row in zip(texts, ids.to_list()):
        assert row == tokenizer.encode(text), ascii(text)


@pytest.mark.parametrize("keep_accents", [False, True])
@pytest.mark.parametrize("do_lower_case", [True, False])
@pytest.mark.parametrize("vocabulary", VOCABULARIES)
class TestEqualIds:
    def test_on_odd_strings(self, vocabulary, do_lower_case, keep_accents):
        texts = toy.odd_strings()
        assert len(set(texts)) >= 200
        assert_equal_ids(*sides(vocabulary(), do_lower_case, keep_accents), texts)

    @settings(max_examples=30, deadline=None)
    @given(texts=st.lists(toy.odd_text(), max_size=6))
    def test_on_any_text(self, vocabulary, do_lower_case, keep_accents, texts):
        assert_equal_ids(*sides(vocabulary(), do_lower_case, keep_accents), texts)

    def test_on_every_character(self, vocabulary, do_lower_case, keep_accents):
        characters = [chr(c) for c in range(0x30000) if not 0xD800 <= c <= 0xDFFF]
        characters += [chr(c) for c in range(0x30000, 0x110000, 0x101)]
        texts = ["a".join(characters[i : i + BATCH]) for i in range(0, len(characters), BATCH)]
        assert_equal_ids(*sides(vocabulary(), do_lower_case, keep_accents), texts)

    def test_on_bytes_that_are_no_text(self, vocabulary, do_lower_case, keep_accents):
        tokenizer, graph = sides(vocabulary(), do_lower_case, keep_accents)
        broken = [b"a\xff\xfeb", b"\xe2\x82 x", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\x00a\x00", b"\xc3", b"\xc0\x80,"]
        expected = [tokenizer.encode(data.decode("utf-8", "replace")) for data in broken]
        assert graph(tf.constant(broken)).to_list() == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=12), min_size=1, max_size=4))
def test_bytes_are_read_as_python_reads_them(data):
    tokenizer, graph = sides(toy.alphabet_model(), True, False)
    assert graph(tf.constant(data)).to_list() == [tokenizer.encode(one.decode("utf-8", "replace")) for one in data]


@pytest.mark.parametrize("do_lower_case", [True, False])
@pytest.mark.parametrize(
    "file", ["fixtures/spm/spm_a.model", "data/albert_en/30k-clean.model", "data/albert_zh/vocab.txt"]
)
def test_equal_ids_on_the_fixtures_and_on_real_lines(shared, file, do_lower_case):
    texts = toy.corpus_lines(shared, 1000)
    assert len(texts) >= 1000
    for cases in sorted(shared.glob("fixtures/tokenization_*/cases.json")):
        texts += [case["text"] for case in json.loads(cases.read_text())]
    assert_equal_ids(*sides(str(shared / file), do_lower_case, False), texts)


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_saved_model_and_data_pipeline_give_the_same_ids(vocabulary, tmp_path):
    tokenizer, graph = sides(vocabulary(), True, False)
    texts = toy.odd_strings() + toy.number_lines()
    expected = [tokenizer.encode(text) for text in texts]

    tf.saved_model.save(graph, str(tmp_path / "saved"))
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    assert loaded(tf.constant([text.encode() for text in texts])).to_list() == expected

    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(50).map(graph, num_parallel_calls=tf.data.AUTOTUNE)
    assert [row for batch in dataset for row in batch.to_list()] == expected


def test_a_parallel_map_over_ten_thousand_lines_ends_soon():
    _, graph = sides(toy.number_model(), True, False)
    texts = (toy.number_lines() * 10)[:10_000]
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(10)
    dataset = dataset.map(graph, num_parallel_calls=tf.data.AUTOTUNE)
    start = time.monotonic()
    assert sum(1 for _ in dataset) == 1000
    assert time.monotonic() - start < 60


def test_empty_batches():
    for vocabulary in VOCABULARIES:
        _, graph = sides(vocabulary(), True, False)
        assert graph(tf.constant([], tf.string)).to_list() == []
        assert graph(tf.constant(["", " \t"])).to_list() == [[], []]
