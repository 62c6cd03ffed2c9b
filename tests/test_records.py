"""The bytes of records and of TFRecord files against TensorFlow's own readers."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf import record_spec
from albert_tf.errors import InputError
from data_prep.batches import Batch
from data_prep.masking import MaskedBatch
from data_prep.records import decode_record, encode_batch
from data_prep.show_records import show_record
from data_prep.tfrecord import frames, read_records
from tests.preparation import small_tokenizer

# What the released run_pretraining parses (its feature spec), P = 5.
RELEASED = {
    "input_ids": ([32], tf.int64),
    "input_mask": ([32], tf.int64),
    "segment_ids": ([32], tf.int64),
    "masked_lm_positions": ([5], tf.int64),
    "masked_lm_ids": ([5], tf.int64),
    "masked_lm_weights": ([5], tf.float32),
    "next_sentence_labels": ([1], tf.int64),
    "token_boundary": ([32], tf.int64),
}


def _records(largest=30_000, *, size=40, width=32, slots=5, seed=0, has_second=True):
    rng = np.random.default_rng(seed)
    first = rng.integers(1, width // 2 - 2, size).astype(np.int32)
    second = rng.integers(1, width // 2 - 1, size).astype(np.int32) * has_second
    ids = rng.integers(0, largest, (size, width)).astype(np.int32)
    batch = Batch(ids, first, second, rng.integers(0, 2, size).astype(np.int32))
    positions = rng.integers(0, width, (size, slots)).astype(np.int32)
    labels = rng.integers(0, largest, (size, slots)).astype(np.int32)
    boundary = rng.integers(0, 2, (size, width)).astype(np.uint8)
    counts = rng.integers(0, slots + 1, size)
    return batch, MaskedBatch(ids, boundary, positions, labels, counts, counts, np.zeros(3, int), np.zeros(3, int))


def _expected(batch, masked, row):
    first, second = int(batch.first_lengths[row]), int(batch.second_lengths[row])
    width, slots = batch.input_ids.shape[1], masked.positions.shape[1]
    used = [0] * (first + 2) + ([1] * (second + 1) if second else [])
    return {
        "input_ids": masked.input_ids[row].tolist(),
        "input_mask": [1] * len(used) + [0] * (width - len(used)),
        "segment_ids": used + [0] * (width - len(used)),
        "token_boundary": masked.token_boundary[row].tolist(),
        "masked_lm_positions": masked.positions[row].tolist(),
        "masked_lm_ids": masked.labels[row].tolist(),
        "masked_lm_weights": [float(slot < masked.counts[row]) for slot in range(slots)],
        "sentence_order_label": [int(batch.labels[row])],
        "next_sentence_labels": [int(batch.labels[row])],
    }


@pytest.mark.parametrize("largest", [2, 128, 129, 16_384, 16_385, 250_000, 3_000_000])
@pytest.mark.parametrize("has_second", [True, False])
def test_tensorflow_reads_what_was_meant(largest, has_second):
    batch, masked = _records(largest, has_second=has_second)
    for row, record in enumerate(encode_batch(batch, masked)):
        example = tf.train.Example.FromString(record)
        found = {
            name: list(value.int64_list.value) or list(value.float_list.value)
            for name, value in example.features.feature.items()
        }
        expected = _expected(batch, masked, row)
        assert found == expected
        assert set(found) == {
            *record_spec.SEQUENCE_FEATURES,
            *record_spec.PREDICTION_FEATURES,
            record_spec.SENTENCE_ORDER_LABEL,
            record_spec.OLD_SENTENCE_LABEL,
        }
        assert {name: values.tolist() for name, values in decode_record(record).items()} == expected
        # The same message in its shortest form: no byte is spent that TensorFlow's writer would not spend.
        assert len(record) == len(example.SerializeToString())


def test_long_records():
    batch, masked = _records(30_000, size=3, width=512, slots=77)
    for row, record in enumerate(encode_batch(batch, masked)):
        features = tf.train.Example.FromString(record).features.feature
        assert list(features["input_ids"].int64_list.value) == masked.input_ids[row].tolist()
        assert list(features["masked_lm_ids"].int64_list.value) == masked.labels[row].tolist()


def test_released_feature_spec_accepts_them():
    batch, masked = _records()
    spec = {name: tf.io.FixedLenFeature(shape, kind) for name, (shape, kind) in RELEASED.items()}
    for row, record in enumerate(encode_batch(batch, masked)):
        parsed = tf.io.parse_single_example(record, spec)
        expected = _expected(batch, masked, row)
        for name, values in parsed.items():
            assert values.numpy().tolist() == expected[name]


@given(st.lists(st.binary(max_size=300), max_size=8))
@settings(max_examples=30, deadline=None)
def test_tfrecord_framing(tmp_path_factory, records):
    ours = tmp_path_factory.mktemp("tfrecord") / "ours"
    ours.write_bytes(frames(records))
    assert [record.numpy() for record in tf.data.TFRecordDataset(str(ours))] == records
    theirs = ours.parent / "theirs"
    with tf.io.TFRecordWriter(str(theirs)) as writer:
        for record in records:
            writer.write(record)
    assert theirs.read_bytes() == ours.read_bytes()
    assert list(read_records(str(theirs))) == records


@pytest.mark.parametrize("cut", [3, 11, 20, -2])
def test_damaged_files_are_named(tmp_path, cut):
    path = tmp_path / "cut.tfrecord"
    path.write_bytes(frames([b"a record"])[:cut])
    with pytest.raises(InputError, match=r"cut\.tfrecord: record 0"):
        list(read_records(str(path)))
    path.write_bytes(frames([b"fine", b"a record"])[:-6] + b"x" * 6)
    with pytest.raises(InputError, match=r"cut\.tfrecord: record 1"):
        list(read_records(str(path)))


def test_text_is_no_record(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("this is text and no TFRecord file\n")
    with pytest.raises(InputError, match="no TFRecord file"):
        list(read_records(str(path)))
    with pytest.raises(ValueError, match=r"not a tf\.train\.Example"):
        decode_record(b"\x0a\xff\xff\xff\x7f text")


def test_records_of_the_released_script_are_read(shared):
    folders = sorted((shared / "fixtures" / "pretraining_data" / "small").iterdir())
    assert folders
    for folder in folders:
        wanted = json.loads((folder / "settings.json").read_text())
        records = list(read_records(str(folder / "instances.tfrecord")))
        assert len(records) == wanted["instances"]
        for record in records:
            features = tf.train.Example.FromString(record).features.feature
            for name, values in decode_record(record).items():
                kind = features[name].WhichOneof("kind")
                assert values.tolist() == list(getattr(features[name], kind).value)


def test_shown_record_marks_what_was_masked():
    tokenizer = small_tokenizer()
    pieces = tokenizer.encode("bakeli.")
    ids = [tokenizer.cls_id, *pieces, tokenizer.sep_id, *pieces, tokenizer.sep_id, 0, 0]
    size = len(ids) - 2
    masked_ids = list(ids)
    masked_ids[1] = tokenizer.mask_id
    record = {
        "input_ids": np.array(masked_ids),
        "input_mask": np.array([1] * size + [0, 0]),
        "segment_ids": np.array([0] * (len(pieces) + 2) + [1] * (len(pieces) + 1) + [0, 0]),
        "masked_lm_positions": np.array([1, 0]),
        "masked_lm_ids": np.array([ids[1], 0]),
        "masked_lm_weights": np.array([1.0, 0.0]),
        "next_sentence_labels": np.array([1]),
    }
    title, first, second = show_record(record, tokenizer).split("\n")
    shown = [tokenizer.id_to_piece(i) for i in pieces]
    assert title == f"label 1, {size} of {len(ids)} pieces, 1 predicted"
    assert first.split() == ["A:", "[CLS]", f"{{{shown[0]}>[MASK]}}", *shown[1:], "[SEP]"]
    assert second.split() == ["B:", *shown, "[SEP]"]
