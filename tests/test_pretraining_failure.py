"""albert_tf.pretraining_failure: what is said, and that step and shards are always in it."""

from __future__ import annotations

import os
import re

import pytest
import tensorflow as tf

from albert_tf import input_pipeline, pretraining_failure, record_files
from albert_tf.errors import InputError
from tests import pretraining_records as toy

SHAPE = input_pipeline.RecordShape(toy.S, toy.P, toy.VOCAB_SIZE, 2, has_label=True)
ORDER = {"global_batch_size": 4, "seed": 1, "shuffle_buffer_size": 3}
STEPS_OF_AN_EPOCH = 6


@pytest.fixture
def records(tmp_path):
    toy.write_shards(tmp_path, [8, 8, 8])
    return record_files.find_record_files(str(tmp_path / "train-*.tfrecord"), "input_file")


def tell(error: Exception, records) -> int:
    return pretraining_failure.tell(error, 4, 7, [records], SHAPE, ORDER)


def test_a_shard_that_is_deleted_in_the_middle_of_a_run_is_named(records):
    batches = iter(input_pipeline.training_batches(records, SHAPE, **ORDER))
    next(batches)
    os.remove(records.paths[1])
    with pytest.raises(tf.errors.OpError) as raised:
        for _ in range(3 * STEPS_OF_AN_EPOCH):
            next(batches)
    with pytest.raises(InputError, match=f"at step 5: --input_file: {records.paths[1]} cannot be read: "):
        tell(raised.value, records)


@pytest.mark.parametrize("name", ["DataLossError", "PermissionDeniedError", "UnavailableError", "UnknownError"])
def test_an_error_of_reading_is_looked_into(records, name):
    os.truncate(records.paths[2], 100)
    with pytest.raises(InputError, match=f"at step 5: --input_file: {records.paths[2]} cannot be read"):
        tell(getattr(tf.errors, name)(None, None, "no such luck"), records)


def test_full_memory_is_a_sentence(records):
    with pytest.raises(InputError, match="at step 5: the memory of the device is full: raise --gradient_accumulation"):
        tell(tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor"), records)


def test_a_full_disk_is_not_taken_for_full_memory(records):
    full = tf.errors.ResourceExhaustedError(None, None, "run/checkpoints/step-8.partial/x; No space left on device")
    with pytest.raises(InputError, match="at step 5: cannot write below --output_dir: No space left on device"):
        tell(full, records)


def test_a_damaged_record_is_told_without_names_of_operations(records):
    with open(records.paths[1], "r+b") as file:
        file.seek(40)
        file.write(bytes(8))
    with pytest.raises(tf.errors.DataLossError) as raised:
        list(tf.data.TFRecordDataset(records.paths))
    with pytest.raises(InputError) as told:
        tell(raised.value, records)
    assert re.fullmatch(
        rf"at step 5: --input_file: {records.paths[1]} cannot be read after record 0: [a-z0-9 ]+", str(told.value)
    )


@pytest.mark.parametrize("are_readable", [True, False])
def test_anything_else_has_its_step_and_shards_at_the_end(records, capsys, are_readable):
    shards = input_pipeline.files_of_batch(records, 4, **ORDER)
    if not are_readable:
        os.remove(records.paths[0])
    assert tell(RuntimeError("something else"), records) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "RuntimeError: something else"
    assert said[-1].startswith("error: steps 5..7 failed (epoch 1; ")
    assert (f"shards {', '.join(shards)}): RuntimeError: something else" in said[-1]) is are_readable
    assert ("shards cannot be read again: " in said[-1]) is not are_readable
