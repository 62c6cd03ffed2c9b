"""albert_tf.checkpointing: whole checkpoints or none, and exact values back."""

from __future__ import annotations

import json
import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import checkpointing, run_settings
from albert_tf.errors import InputError
from albert_tf.formats.reading import read_checkpoint

NAMES = {
    "bert/embeddings/word_embeddings": (7, 3),
    "bert/encoder/transformer/group_0/inner_group_0/LayerNorm/gamma": (3,),
    "bert/pooler/dense/kernel": (3, 3),
    "cls/predictions/output_bias": (7,),
    "cls/seq_relationship/output_weights": (2, 3),
}


def make_weights(seed=0, **shapes):
    draw = np.random.default_rng(seed)
    return {
        name: tf.Variable(draw.normal(size=shape).astype(np.float32))
        for name, shape in {**NAMES, **shapes}.items()
        if shape is not None
    }


def make_variables(seed=0):
    weights = make_weights(seed)
    moments = {f"{name}/m": tf.Variable(weights[name] * 2.0) for name in weights}
    optimizer = {"iterations": tf.Variable(seed, dtype=tf.int64), **moments}
    return checkpointing.training_variables(weights, optimizer, {"loss_scale/value": tf.Variable(8.0 + seed)})


def values(variables):
    return {name: variable.numpy().tolist() for name, variable in variables.items()}


def restore(directory, variables):
    warnings: list[str] = []
    return checkpointing.restore_latest(str(directory), variables, warnings.append), warnings


def test_everything_comes_back_bit_for_bit(tmp_path):
    saved, state = make_variables(1), {"interval": {"loss": 0.1 + 0.2, "steps": 3.0}}
    path = checkpointing.save(str(tmp_path), 20, saved, state)
    variables = make_variables(2)
    (restored, warnings) = restore(tmp_path, variables)
    assert (restored.path, restored.step, restored.state, warnings) == (path, 20, state, [])
    assert values(variables) == values(saved)


def test_without_a_checkpoint_nothing_is_restored(tmp_path):
    variables = make_variables()
    assert restore(tmp_path, variables) == (None, [])
    assert values(variables) == values(make_variables())


def test_the_newest_ones_stay(tmp_path):
    for step in (5, 10, 15, 100):
        checkpointing.save(str(tmp_path), step, make_variables(), {}, keep=2)
    assert sorted(os.listdir(tmp_path / "checkpoints")) == ["step-00000015", "step-00000100"]
    assert restore(tmp_path, make_variables())[0].step == 100


def _cut(path: pathlib.Path) -> None:
    file = path / "variables.data-00000-of-00001"
    os.truncate(file, file.stat().st_size - 1)


def _flip_a_bit(path: pathlib.Path) -> None:
    file = path / "variables.data-00000-of-00001"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))


def _damage_the_index(path: pathlib.Path) -> None:
    file = path / "variables.index"
    file.write_bytes(b"\0" * file.stat().st_size)


def _lose_the_index(path: pathlib.Path) -> None:
    (path / "variables.index").unlink()


def _lose_the_manifest(path: pathlib.Path) -> None:
    (path / "checkpoint.json").unlink()


def _break_the_manifest(path: pathlib.Path) -> None:
    (path / "checkpoint.json").write_text('{"step": 10, "fil')


def _empty_the_manifest(path: pathlib.Path) -> None:
    (path / "checkpoint.json").write_text('{"files": {}}')


SPOILERS = [
    _cut,
    _flip_a_bit,
    _damage_the_index,
    _lose_the_index,
    _lose_the_manifest,
    _break_the_manifest,
    _empty_the_manifest,
]


@pytest.mark.parametrize("spoil", SPOILERS)
def test_a_damaged_checkpoint_is_passed_over_with_a_warning(tmp_path, spoil):
    checkpointing.save(str(tmp_path), 5, make_variables(5), {})
    spoil(pathlib.Path(checkpointing.save(str(tmp_path), 10, make_variables(10), {})))
    variables = make_variables()
    restored, warnings = restore(tmp_path, variables)
    assert restored.step == 5 and len(warnings) == 1 and "step-00000010 is damaged" in warnings[0]
    assert values(variables) == values(make_variables(5))
    checkpointing.save(str(tmp_path), 10, make_variables(11), {})  # the run comes there again
    assert restore(tmp_path, variables)[0].step == 10


def test_only_damaged_checkpoints_are_an_error_and_no_silent_new_start(tmp_path):
    _cut(pathlib.Path(checkpointing.save(str(tmp_path), 5, make_variables(), {})))
    with pytest.raises(InputError, match="none of the 1 checkpoints"):
        restore(tmp_path, make_variables())


def test_a_checkpoint_under_way_is_not_seen_and_goes_with_the_next(tmp_path):
    checkpointing.save(str(tmp_path), 5, make_variables(), {})
    half = tmp_path / "checkpoints/step-00000010.partial"
    half.mkdir()
    (half / "variables.index").write_bytes(b"x")
    assert restore(tmp_path, make_variables())[0].step == 5
    checkpointing.save(str(tmp_path), 15, make_variables(), {})
    assert not half.exists()


def test_the_other_stack_refuses_in_one_sentence(tmp_path):
    path = pathlib.Path(checkpointing.save(str(tmp_path), 5, make_variables(), {}))
    manifest = json.loads((path / "checkpoint.json").read_text())
    (path / "checkpoint.json").write_text(json.dumps({**manifest, "stack": "Keras 4"}))
    with pytest.raises(
        InputError, match=f"written with Keras 4 and this is {checkpointing.STACK}: .*--init_checkpoint"
    ):
        restore(tmp_path, make_variables())


def test_another_model_or_optimizer_is_refused_by_name(tmp_path):
    checkpointing.save(str(tmp_path), 5, make_variables(), {})
    with pytest.raises(InputError, match="has no optimizer/velocity"):
        restore(tmp_path, {**make_variables(), "optimizer/velocity": tf.Variable(0.0)})
    name = "weights/cls/predictions/output_bias"
    with pytest.raises(InputError, match=rf"{name} of shape \[7\], this run \[8\]"):
        restore(tmp_path, {**make_variables(), name: tf.Variable(tf.zeros([8]))})


def test_an_address_works_like_a_local_path(tmp_path):
    directory = f"file://{tmp_path}"
    for step in (5, 10):
        checkpointing.save(directory, step, make_variables(step), {"at": step}, keep=1)
    variables = make_variables()
    restored, _ = restore(directory, variables)
    assert (restored.step, restored.state) == (10, {"at": 10})
    assert values(variables) == values(make_variables(10))
    found = read_checkpoint(directory)
    assert {name: value.tolist() for name, value in found.weights.items()} == values(make_weights(10))
    assert found.path == directory and len(found.slots) == len(NAMES) + 2


# Settings


def test_changed_settings_are_named_with_both_values(tmp_path):
    settings = {"seed": 1, "train_batch_size": 8, "records": [["a", 3]]}
    assert run_settings.changed_settings(str(tmp_path), settings) == []
    run_settings.record_settings(str(tmp_path), settings)
    assert run_settings.changed_settings(str(tmp_path), settings) == []
    changed = run_settings.changed_settings(str(tmp_path), {**settings, "seed": 2, "new": True})
    assert changed == ["new was not set, now true", "seed was 1, now 2"]


def test_of_settings_with_parts_those_that_differ_are_named(tmp_path):
    model = {"hidden_size": 128, "dropout": {"head": 0.1, "encoder": 0.0}, "labels": ["a", "b"]}
    run_settings.record_settings(str(tmp_path), {"model": model, "columns": {}})
    changed = {**model, "dropout": {"head": 0.2, "encoder": 0.0}, "labels": ["a", "c"]}
    assert run_settings.changed_settings(str(tmp_path), {"model": changed, "columns": {"label": "x"}}) == [
        "columns was {}, now not set",
        'columns.label was not set, now "x"',
        "model.dropout.head was 0.1, now 0.2",
        'model.labels was ["a", "b"], now ["a", "c"]',
    ]


def test_a_run_is_held_to_its_settings_unless_changes_are_allowed(tmp_path):
    directory = str(tmp_path)
    run_settings.claim(directory, {"seed": 3}, "Do something.")
    run_settings.claim(directory, {"seed": 1}, "Do something.")  # nothing came of the first start
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(InputError, match=r"with other settings: seed was 1, now 2\. Do something\."):
        run_settings.claim(directory, {"seed": 2}, "Do something.")
    assert run_settings.changed_settings(directory, {"seed": 1}) == []
    run_settings.claim(directory, {"seed": 2}, "Do something.", allow_changes=True)
    assert run_settings.changed_settings(directory, {"seed": 2}) == []


def test_settings_that_are_none_are_told(tmp_path):
    (tmp_path / "run.json").write_text("[1]")
    for read in (run_settings.holds_fine_tuning, lambda path: run_settings.changed_settings(path, {})):
        with pytest.raises(InputError, match="run.json holds no settings of a run"):
            read(str(tmp_path))
