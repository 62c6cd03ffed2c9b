"""albert_tf.input_pipeline and record_files: one global order, whole batches, and bad files told by name."""

from __future__ import annotations

import collections
import itertools
import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import input_pipeline, record_files
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from tests import pretraining_records as toy
from tests.pretraining_records import P, S

SHAPE = input_pipeline.RecordShape(S, P, toy.VOCAB_SIZE, 2, has_label=True)
COUNTS = [13, 8, 5]


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    directory = tmp_path_factory.mktemp("records")
    return toy.write_shards(directory, COUNTS)


@pytest.fixture(scope="module")
def records(shards):
    return find(shards)


def find(paths, **arguments):
    return record_files.find_record_files(",".join(map(str, paths)), "input_file", **arguments)


def order(records, start=0, count=100, seed=3, shuffle_buffer_size=7):
    dataset = input_pipeline.example_order(records, seed=seed, shuffle_buffer_size=shuffle_buffer_size, start=start)
    return [example for example, _ in dataset.take(count).as_numpy_iterator()]


# The order


@pytest.mark.parametrize("shuffle_buffer_size", [1, 7, 1000])
def test_each_epoch_holds_every_record_once_in_another_order(records, shuffle_buffer_size):
    examples = order(records, count=3 * 26, shuffle_buffer_size=shuffle_buffer_size)
    epochs = [examples[:26], examples[26:52], examples[52:]]
    for epoch in epochs:
        assert sorted(epoch) == sorted(epochs[0]) and len(set(epoch)) == 26
    assert epochs[0] != epochs[1] != epochs[2]


@pytest.mark.parametrize("start", [1, 6, 7, 8, 25, 26, 27, 60])
def test_the_order_from_a_position_on_is_the_rest_of_the_whole_order(records, start):
    assert order(records, start, count=40) == order(records, count=100)[start : start + 40]


def test_the_order_depends_on_the_seed_alone(records):
    tf.random.set_seed(1)
    first = order(records)
    tf.random.set_seed(2)
    assert order(records) == first
    assert order(records, seed=4) != first


def batches(records, count, replicas=1, workers=1, worker=0, start_step=0):
    dataset = input_pipeline.training_batches(
        records,
        SHAPE,
        global_batch_size=8,
        seed=3,
        shuffle_buffer_size=7,
        start_step=start_step,
        replicas=replicas,
        workers=workers,
        worker=worker,
    )
    return list(dataset.take(count).as_numpy_iterator())


@pytest.mark.parametrize(("replicas", "workers"), [(2, 1), (4, 1), (2, 2), (4, 2)])
def test_replicas_and_workers_share_the_same_global_batches(records, replicas, workers):
    whole = batches(records, 5)
    per_worker = replicas // workers
    parts = [batches(records, 5 * per_worker, replicas, workers, worker) for worker in range(workers)]
    for step in range(5):
        slices = [part[step * per_worker + r] for part in parts for r in range(per_worker)]
        for name, value in whole[step].items():
            np.testing.assert_array_equal(np.concatenate([piece[name] for piece in slices]), value)


def test_batches_from_a_step_on_go_on_where_the_step_ended(records):
    for resumed, whole in zip(batches(records, 4, start_step=3), batches(records, 7)[3:]):
        np.testing.assert_equal(resumed, whole)


def test_batches_have_static_shapes_and_go_on_over_epochs(records):
    dataset = input_pipeline.training_batches(records, SHAPE, global_batch_size=10, seed=0, shuffle_buffer_size=5)
    shapes = {name: tuple(spec.shape) for name, spec in dataset.element_spec.items()}
    assert shapes["input_ids"] == (10, S) and shapes["masked_lm_weights"] == (10, P)
    assert shapes["sentence_order_label"] == (10,)
    assert {dtype for dtype in (spec.dtype for spec in dataset.element_spec.values())} == {tf.int32, tf.float32}
    assert sum(1 for _ in dataset.take(9)) == 9


def test_files_of_a_batch_are_those_its_examples_come_from(records, shards):
    where = {}
    for path in shards:
        for example in tf.data.TFRecordDataset(path).as_numpy_iterator():
            where[example] = path
    examples = order(records, count=40, seed=3, shuffle_buffer_size=7)
    for step in range(5):
        found = input_pipeline.files_of_batch(records, step, global_batch_size=8, seed=3, shuffle_buffer_size=7)
        assert found == sorted({where[example] for example in examples[step * 8 : step * 8 + 8]})


# Evaluation


@pytest.mark.parametrize(("batch", "replicas"), [(4, 1), (4, 2), (26, 1), (64, 2)])
def test_evaluation_counts_each_record_once_and_fills_up_with_weight_0(records, batch, replicas):
    dataset = input_pipeline.evaluation_batches(records, SHAPE, global_batch_size=batch, replicas=replicas)
    parts = list(dataset.as_numpy_iterator())
    assert len(parts) == -(-26 // batch) * replicas
    weights = np.concatenate([part["example_weight"] for part in parts])
    np.testing.assert_array_equal(weights, [1.0] * 26 + [0.0] * (len(weights) - 26))
    masked = np.concatenate([part["masked_lm_weights"] for part in parts])
    assert masked.sum() == 26 * P and not masked[26:].any()
    ids = np.concatenate([part["input_ids"] for part in parts])[:26]
    expected = [record["input_ids"] for number, count in enumerate(COUNTS) for record in toy.examples(count, number)]
    np.testing.assert_array_equal(ids, expected)


def test_evaluation_steps_are_those_of_one_pass_or_fewer(records):
    assert [input_pipeline.evaluation_steps(records, size) for size in (4, 13, 26, 64)] == [7, 2, 1, 1]
    assert input_pipeline.evaluation_steps(records, 4, 2) == 2 and input_pipeline.evaluation_steps(records, 4, 9) == 7


def test_what_a_strategy_gets_has_static_shapes_and_no_end(records):
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    for batches, arguments in (
        (input_pipeline.training_batches, {"seed": 0, "shuffle_buffer_size": 5}),
        (input_pipeline.evaluation_batches, {}),
    ):
        made = input_pipeline.distribute(strategy, batches, records, SHAPE, global_batch_size=10, **arguments)
        assert all(spec.shape.is_fully_defined() for spec in made.element_spec.values())
        assert sum(1 for _ in itertools.islice(made, 9)) == 9


def test_masked_pieces_are_counted_by_weight(records):
    labels = collections.Counter(
        piece
        for number, count in enumerate(COUNTS)
        for record in toy.examples(count, number)
        for piece in record["masked_lm_ids"]
    )
    counts = input_pipeline.masked_piece_counts(records, SHAPE, 1000)
    assert {piece: int(count) for piece, count in enumerate(counts) if count} == dict(labels)


def test_pieces_of_some_records_are_counted_in_all_shards(tmp_path):
    paths = []
    for number, count in enumerate(COUNTS):
        paths.append(tmp_path / f"{number}.tfrecord")
        with tf.io.TFRecordWriter(str(paths[-1])) as writer:
            for record in toy.examples(count, number):
                writer.write(toy.serialize({**record, "masked_lm_ids": [number] * P}))
    counted = input_pipeline.masked_piece_counts(find(paths), SHAPE, 13)[: len(COUNTS)] / P
    assert counted.sum() == 13 and counted == pytest.approx([count / 2 for count in COUNTS], abs=0.51)


# What the records look like


def test_records_of_the_released_script_are_read(tmp_path):
    path = tmp_path / "old.tfrecord"
    expected = toy.examples(3, 0, label="next_sentence_labels")
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in expected:
            writer.write(toy.serialize({**record, "token_boundary": [1] * S}))
    found = find([path])
    settings = input_pipeline.record_settings(found)
    assert settings == {"max_seq_length": S, "max_predictions_per_seq": P}
    (batch,) = input_pipeline.evaluation_batches(found, SHAPE, global_batch_size=3).as_numpy_iterator()
    assert batch["sentence_order_label"].tolist() == [record["next_sentence_labels"][0] for record in expected]


def test_released_fixture_is_read(shared):
    path = shared / "fixtures/pretraining_data/small/ngram3_wwm/instances.tfrecord"
    found = find([path])
    assert found.records == 47
    assert input_pipeline.record_settings(found) == {"max_seq_length": 64, "max_predictions_per_seq": 10}
    shape = input_pipeline.RecordShape(64, 10, 2000, 2, has_label=True)
    assert input_pipeline.find_bad_record(found, shape) is None
    batches = input_pipeline.evaluation_batches(found, shape, global_batch_size=8).as_numpy_iterator()
    assert sum(batch["example_weight"].sum() for batch in batches) == 47


def test_records_without_a_label_are_those_of_the_objective_none(tmp_path):
    found = find(toy.write_shards(tmp_path, [4], label=None))
    assert input_pipeline.record_settings(found)["sentence_objective"] == "none"
    shape = input_pipeline.RecordShape(S, P, toy.VOCAB_SIZE, 2, has_label=False)
    (batch,) = input_pipeline.evaluation_batches(found, shape, global_batch_size=4)
    assert "sentence_order_label" not in batch


def test_both_labels_may_be_there(tmp_path):
    with tf.io.TFRecordWriter(str(tmp_path / "both.tfrecord")) as writer:
        for record in toy.examples(4, 0):
            writer.write(toy.serialize({**record, "next_sentence_labels": record["sentence_order_label"]}))
    (batch,) = input_pipeline.evaluation_batches(find([tmp_path / "both.tfrecord"]), SHAPE, global_batch_size=4)
    assert batch["sentence_order_label"].numpy().tolist() == [r["sentence_order_label"][0] for r in toy.examples(4, 0)]


# Metadata


def test_counts_and_settings_come_from_the_metadata(tmp_path):
    paths = toy.write_shards(tmp_path, COUNTS)
    toy.write_metadata(tmp_path, paths, COUNTS, do_lower_case=False)
    found = find([tmp_path / "*.tfrecord"])
    assert [shard.records for shard in found.shards] == COUNTS
    assert found.settings["do_lower_case"] is False and found.settings["max_seq_length"] == S
    assert input_pipeline.record_settings(found) == found.settings


def test_a_shard_that_is_shorter_than_the_metadata_says_is_refused(tmp_path):
    paths = toy.write_shards(tmp_path, COUNTS)
    toy.write_metadata(tmp_path, paths, COUNTS)
    size = os.path.getsize(paths[1])
    os.truncate(paths[1], size - 7)
    with pytest.raises(InputError, match=f"{paths[1]} has {size - 7} bytes but {size}"):
        find(paths)


def test_an_empty_shard_is_fine_if_the_metadata_says_so(tmp_path):
    paths = toy.write_shards(tmp_path, [4, 0])
    toy.write_metadata(tmp_path, paths, [4, 0])
    assert find(paths).paths == paths[:1]


def test_directories_of_different_settings_do_not_mix(tmp_path):
    for number, length in enumerate((S, 2 * S)):
        paths = toy.write_shards(tmp_path / str(number), [4])
        toy.write_metadata(tmp_path / str(number), paths, [4], max_seq_length=length)
    with pytest.raises(InputError, match=f"max_seq_length is {S} .*{2 * S}"):
        find([tmp_path / "*/*.tfrecord"])


def test_metadata_of_another_format_is_refused(tmp_path):
    paths = toy.write_shards(tmp_path, [4])
    (tmp_path / "metadata.json").write_text('{"format": 99}')
    with pytest.raises(InputError, match="metadata.json"):
        find(paths)


def test_a_disagreement_names_both_values():
    with pytest.raises(
        InputError, match="max_seq_length is 64 in the records of --input_file but 128 by --max_seq_length"
    ):
        record_files.check_against(
            {"max_seq_length": 64},
            {"max_predictions_per_seq": 20, "max_seq_length": 128},
            records_flag="input_file",
            flags={"max_seq_length": "--max_seq_length"},
        )
    record_files.check_against({"max_seq_length": 64}, {"max_seq_length": None}, records_flag="input_file", flags={})


@pytest.mark.parametrize(
    ("settings", "numbers"), [({"max_seq_length": 600}, ("600", "512")), ({"vocab_size": 31000}, ("31000", "30000"))]
)
def test_records_must_fit_the_model(settings, numbers):
    config = AlbertConfig(
        vocab_size=30000, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8
    )
    with pytest.raises(InputError) as caught:
        record_files.check_fits_model(settings, config, "input_file")
    assert all(number in str(caught.value) for number in numbers)


# Bad files


def test_record_lengths_are_walked_over_like_tensorflow_reads_them(shards):
    assert [record_files.count_records(path) for path in shards] == COUNTS


def _text(path: pathlib.Path) -> None:
    path.write_text("just some text, longer than a header\n" * 3)


def _cut(path: pathlib.Path) -> None:
    os.truncate(path, path.stat().st_size - 7)


def _cut_in_a_header(path: pathlib.Path) -> None:
    path.write_bytes(path.read_bytes() + b"\x05\x00\x00")


def _empty(path: pathlib.Path) -> None:
    os.truncate(path, 0)


def _damage_a_length(path: pathlib.Path) -> None:
    content = bytearray(path.read_bytes())
    content[3] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("spoil", [_text, _cut, _cut_in_a_header, _empty, _damage_a_length])
def test_a_file_that_is_no_whole_shard_is_refused_by_name_or_left_out(tmp_path, spoil):
    paths = toy.write_shards(tmp_path, COUNTS)
    spoil(pathlib.Path(paths[1]))
    with pytest.raises(InputError, match=paths[1]):
        find(paths)
    found = find(paths, skip_bad=True)
    assert found.left_out == (paths[1],) and found.records == 18


def test_a_damaged_record_is_found_by_its_checksum(tmp_path):
    paths = toy.write_shards(tmp_path, COUNTS)
    content = bytearray(pathlib.Path(paths[2]).read_bytes())
    content[len(content) // 2] ^= 1
    pathlib.Path(paths[2]).write_bytes(bytes(content))
    found = find(paths)  # lengths and headers are right, so only reading tells
    with pytest.raises(tf.errors.DataLossError):
        list(input_pipeline.example_order(found, seed=0, shuffle_buffer_size=1).take(26))
    assert f"{paths[2]} cannot be read after record 2" in str(input_pipeline.find_bad_record(found, SHAPE))
    kept = record_files.leave_out(found, input_pipeline.is_damaged)
    assert (kept.paths, kept.left_out) == (paths[:2], (paths[2],))


def test_all_shards_bad_is_an_error_even_when_they_may_be_left_out(tmp_path):
    _text(tmp_path / "a.tfrecord")
    with pytest.raises(InputError, match="none of the files holds a record"):
        find([tmp_path / "a.tfrecord"], skip_bad=True)
    found = find(toy.write_shards(tmp_path / "b", [4]))
    with pytest.raises(InputError, match="--input_file: all shards are damaged"):
        record_files.leave_out(found, lambda path: True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"input_ids": [toy.VOCAB_SIZE] * S}, "input_ids holds 60, outside 0..59"),
        ({"input_ids": [-1] * S}, "input_ids holds -1"),
        ({"masked_lm_ids": [0, 99, 0]}, "masked_lm_ids holds 99"),
        ({"masked_lm_positions": [0, 1, S]}, f"masked_lm_positions holds {S}"),
        ({"segment_ids": [2] * S}, "segment_ids holds 2"),
        ({"sentence_order_label": [2]}, "sentence_order_label holds 2"),
        ({"input_ids": [5] * (S + 1)}, f"input_ids has {S + 1} values instead of {S}"),
        ({"masked_lm_weights": [1.0] * (P - 1)}, "masked_lm_weights has 2 values instead of 3"),
    ],
)
def test_a_record_out_of_range_stops_the_reading_and_is_named(tmp_path, changes, message):
    path = tmp_path / "bad.tfrecord"
    good, bad = toy.examples(2, 0)
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(toy.serialize(good))
        writer.write(toy.serialize({**bad, **changes}))
    found = find([path])
    with pytest.raises(tf.errors.InvalidArgumentError):
        list(input_pipeline.evaluation_batches(found, SHAPE, global_batch_size=2))
    assert f"record 2 of {path}: {message}" in str(input_pipeline.find_bad_record(found, SHAPE))


def test_other_records_are_told_from_pretraining_records(tmp_path):
    path = tmp_path / "other.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(toy.serialize({"label_ids": [1]}))
    with pytest.raises(InputError, match="no pre-training records"):
        input_pipeline.record_settings(find([path]))


def test_addresses_are_read_through_tensorflow():
    for number, path in enumerate(("ram://shards/a.tfrecord", "ram://shards/b.tfrecord")):
        with tf.io.TFRecordWriter(path) as writer:
            for record in toy.examples(3 + number, 0):
                writer.write(toy.serialize(record))
    found = record_files.find_record_files("ram://shards/*.tfrecord", "input_file")
    assert found.records == 7
    assert len(order(found, count=7)) == 7
