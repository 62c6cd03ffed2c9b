"""Counting and adding up."""

from __future__ import annotations

import json

import numpy as np
import pytest

from data_prep.batches import Batch
from data_prep.masking import MaskedBatch
from data_prep.statistics import RecordCounts, Statistics, TextCounts


def _batch(lengths, width=64):
    sizes = np.array(lengths, np.int32)
    zeros = np.zeros((len(lengths), width), np.int32)
    batch = Batch(zeros, sizes - 4, np.ones_like(sizes), np.arange(len(lengths), dtype=np.int32) % 2)
    masked = MaskedBatch(
        zeros,
        zeros,
        zeros,
        zeros,
        np.full(len(lengths), 5),
        np.full(len(lengths), 6),
        np.array([3, 2, 1]),
        np.array([8, 1, 1]),
    )
    return batch, masked


def _statistics(lengths):
    counts = RecordCounts()
    counts.add(*_batch(lengths))
    text = TextCounts(bytes=10, documents=2, sentences=3, pieces=100, unknown_pieces=6, skipped_documents=1)
    return Statistics(text, {"train": counts})


def test_summary_of_a_batch():
    summary = _statistics([64, 64, 8, 9]).summary()
    train = summary["train"]
    assert train["records"] == 4
    assert train["pieces"] == 145
    assert train["padding_share"] == pytest.approx(1 - 145 / 256)
    assert train["length_histogram"] == {
        "<=8": 1, "<=16": 1, "<=24": 0, "<=32": 0, "<=40": 0, "<=48": 0, "<=56": 0, "<=64": 2,
    }  # fmt: skip
    assert train["ngram_histogram"] == {"1": 3, "2": 2, "3": 1}
    assert train["predictions"] == 20 and train["missed_predictions"] == 4
    assert train["label_1_share"] == 0.5
    assert summary["text"]["unknown_share"] == 0.06


def test_adding_shards_equals_counting_together():
    total = Statistics()
    total.add(_statistics([64, 10]))
    total.add(Statistics())
    total.add(_statistics([30]))
    train = total.summary()["train"]
    assert train["records"] == 3 and train["pieces"] == 104
    assert train["ngram_histogram"] == {"1": 6, "2": 4, "3": 2}
    assert train["padding_share"] == pytest.approx(1 - 104 / 192)
    assert total.text.pieces == 200


def test_goes_through_json_unchanged():
    statistics = _statistics([64, 12])
    assert Statistics.from_dict(json.loads(json.dumps(statistics.to_dict()))) == statistics


def test_table_shows_every_part():
    table = _statistics([64, 64]).table()
    for part in (
        "text",
        "train",
        "unknown share        6.00%",
        "label 1 share        50.00%",
        "<=64: 100.0%",
        "3: 16.7%",
    ):
        assert part in table
    assert Statistics().table().startswith("text")
