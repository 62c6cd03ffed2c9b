"""albert_tf.formats.reading: every form is known by what is there, and what is none of them is told in one sentence."""

from __future__ import annotations

import json
import pathlib
import shutil
import tarfile
import tempfile

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

from albert_tf import checkpointing
from albert_tf.errors import InputError
from albert_tf.formats import hugging_face, portable, tf1_writing, training_run
from albert_tf.formats.checkpoint import Checkpoint, Vocabulary
from albert_tf.formats.reading import read_checkpoint
from albert_tf.head_config import HeadConfig
from tests import toy_vocabulary
from tests.checkpoint_files import random_weights, small_config, write_tf1


@pytest.fixture(scope="module")
def source() -> Checkpoint:
    config = small_config()
    vocabulary = Vocabulary("30k-clean.model", pathlib.Path(toy_vocabulary.number_model()).read_bytes())
    return Checkpoint(
        "source", "model", random_weights(config), config, HeadConfig("pretraining"), vocabulary=vocabulary
    )


def _run(directory, source):
    variables = {name: tf.Variable(value) for name, value in source.weights.items()}
    named = checkpointing.training_variables(variables, {"iterations": tf.Variable(7, dtype=tf.int64)})
    source.config.to_json_file(directory / "albert_config.json")
    source.vocabulary.write(directory)
    return checkpointing.save(str(directory), 1000, named, {})


def _archive(directory, source):
    tf1_writing.write(source, directory / "albert_small")
    with tarfile.open(directory / "albert_small.tar.gz", "w:gz") as tar:
        tar.add(directory / "albert_small", "albert_small")
    shutil.rmtree(directory / "albert_small")
    return directory / "albert_small.tar.gz"


def _portable(directory, source):
    portable.write(source, directory / "model")
    return directory / "model"


def _hugging_face(directory, source):
    hugging_face.write(source, directory / "model")
    return directory / "model"


def _tf1(directory, source):
    tf1_writing.write(source, directory / "model")
    return directory / "model"


FORMS = {
    "portable directory": _portable,
    "Hugging Face directory": _hugging_face,
    "safetensors file": lambda *arguments: _hugging_face(*arguments) / "model.safetensors",
    "TF1 directory": _tf1,
    "TF1 prefix": lambda *arguments: _tf1(*arguments) / "model.ckpt-best",
    "TF1 index": lambda *arguments: _tf1(*arguments) / "model.ckpt-best.index",
    "TF1 data": lambda *arguments: _tf1(*arguments) / "model.ckpt-best.data-00000-of-00001",
    "TF1 archive": _archive,
    "run": lambda directory, source: pathlib.Path(_run(directory, source)).parent.parent,
    "checkpoint of a run": _run,
}


@pytest.mark.parametrize("form", FORMS)
def test_weights_config_head_and_vocabulary_come_from_every_form(tmp_path, source, form):
    path = FORMS[form](tmp_path, source)
    found = read_checkpoint(path)
    assert set(found.weights) == set(source.weights)
    for name, value in source.weights.items():
        assert found.weights[name].dtype == np.float32
        np.testing.assert_array_equal(found.weights[name], value, err_msg=name)
    assert found.config == source.config
    assert found.vocabulary is not None and found.vocabulary.data == source.vocabulary.data
    assert found.vocabulary.tokenizer().cls_id == 2
    if "run" not in form:
        assert found.head == source.head


def test_a_config_is_taken_where_the_source_has_none(tmp_path, source):
    prefix = write_tf1(tmp_path / "model.ckpt", source.weights)
    assert read_checkpoint(prefix).config is None
    assert read_checkpoint(prefix, source.config).config == source.config
    tf1_writing.write(source, tmp_path / "told")
    other = small_config(hidden_dropout_prob=0.5)
    assert read_checkpoint(tmp_path / "told", other).config == source.config


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("folder", ["model", "my.data-bucket"])
def test_an_address_works_like_a_local_path(tmp_path, source, form, folder):
    (tmp_path / folder).mkdir()
    path = FORMS[form](tmp_path / folder, source)
    found = read_checkpoint(f"file://{path}")
    assert found.path == f"file://{path}" and found.config == source.config
    assert found.vocabulary is not None and found.vocabulary.data == source.vocabulary.data
    np.testing.assert_array_equal(
        found.weights["cls/predictions/output_bias"], source.weights["cls/predictions/output_bias"]
    )


def test_a_folder_with_data_in_its_name_is_no_checkpoint(tmp_path, source):
    (tmp_path / "my.data-bucket").mkdir()
    prefix = write_tf1(tmp_path / "my.data-bucket" / "model.ckpt.data-1", source.weights)
    assert set(read_checkpoint(prefix).weights) == set(source.weights)
    with pytest.raises(InputError, match="my.data-bucket/nothing holds no weights: there is no such file"):
        read_checkpoint(tmp_path / "my.data-bucket" / "nothing")


def test_the_index_of_a_sharded_model_by_its_address(tmp_path, source):
    directory = _hugging_face(tmp_path, source)
    tensors = safetensors.numpy.load_file(directory / "model.safetensors")
    (directory / "model.safetensors").unlink()
    weight_map = {}
    for shard, names in enumerate((sorted(tensors)[::2], sorted(tensors)[1::2])):
        file = f"part-{shard}.safetensors"
        safetensors.numpy.save_file({name: tensors[name] for name in names}, directory / file)
        weight_map.update(dict.fromkeys(names, file))
    index = directory / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    for path in (directory, index, f"file://{directory}", f"file://{index}"):
        found = read_checkpoint(path)
        assert set(found.weights) == set(source.weights) and found.config == source.config
    (directory / "part-1.safetensors").unlink()
    with pytest.raises(InputError, match="file://.*/model/model.safetensors.index.json names the shard part-1"):
        read_checkpoint(f"file://{index}")


@pytest.mark.parametrize(
    "form, file",
    [
        ("portable directory", "model/model.safetensors"),
        ("safetensors file", "model/model.safetensors"),
        ("TF1 directory", "model/model.ckpt-best.index"),
        ("TF1 prefix", "model/model.ckpt-best.index"),
        ("TF1 archive", "albert_small.tar.gz"),
        ("run", "checkpoints/step-00001000"),
        ("checkpoint of a run", "checkpoints/step-00001000"),
    ],
)
def test_damage_at_an_address_is_told_by_the_address(tmp_path, source, form, file):
    path = FORMS[form](tmp_path, source)
    damaged = tmp_path / file
    if damaged.is_dir():
        damaged = damaged / "variables.index"
    damaged.write_bytes(damaged.read_bytes()[: damaged.stat().st_size // 2])
    with pytest.raises(InputError) as told:
        read_checkpoint(f"file://{path}")
    assert f"file://{tmp_path / file}" in str(told.value)
    assert f"{tempfile.gettempdir()}/tmp" not in str(told.value)  # where the copy was


def test_a_directory_is_of_hugging_face_only_by_the_names_of_its_weights(tmp_path, source):
    directory = _tf1(tmp_path, source)
    for name in ("training_args.bin", "scores.h5", "optimizer.safetensors"):
        (directory / name).write_bytes(b"something else")
    assert read_checkpoint(directory).form == "TF1 checkpoint"


def test_a_run_without_a_whole_checkpoint_is_told_by_its_damage(tmp_path, source):
    step = pathlib.Path(_run(tmp_path, source))
    checkpointing.save(str(tmp_path), 2000, {"weights/x": tf.Variable(1.0)}, {})
    for name in ("step-00001000", "step-00002000"):
        (step.parent / name / "variables.index").unlink()
    for path in (tmp_path, f"file://{tmp_path}"):
        with pytest.raises(InputError, match="step-00002000 is damaged, as are all .*: variables.index is not of"):
            read_checkpoint(path)
    (step / "checkpoint.json").unlink()
    for path in (step, f"file://{step}"):
        with pytest.raises(InputError, match="step-00001000 is damaged: checkpoint.json is missing"):
            read_checkpoint(path)
    with pytest.raises(InputError, match="nothing is no run of pre-training"):
        training_run.read(str(tmp_path / "nothing"))


@pytest.mark.parametrize("content", ["[]", "{}", '{"step": 1, "stack": "", "state": {}, "files": []}'])
def test_a_checkpoint_with_another_kind_of_manifest_is_damaged(tmp_path, source, content):
    step = pathlib.Path(_run(tmp_path, source))
    (step / "checkpoint.json").write_text(content)
    with pytest.raises(InputError, match="step-00001000 is damaged: checkpoint.json is missing or broken"):
        read_checkpoint(step)


def test_a_checkpoint_that_was_moved_has_its_companions_beside_its_files(tmp_path, source):
    _run(tmp_path, source)
    moved = tmp_path / "elsewhere" / "deep" / "step-00001000"
    shutil.copytree(tmp_path / "checkpoints" / "step-00001000", moved)
    for path in (moved, f"file://{moved}"):
        found = read_checkpoint(path)
        assert (found.config, found.vocabulary) == (None, None)
        assert set(found.weights) == set(source.weights)
    source.config.to_json_file(moved / "albert_config.json")
    for path in (moved, f"file://{moved}"):
        assert read_checkpoint(path).config == source.config


def test_what_is_no_checkpoint_is_told(tmp_path):
    with pytest.raises(InputError, match="path of the checkpoint is empty"):
        read_checkpoint("")
    with pytest.raises(InputError, match="nothing_here holds no weights: .*albert_base_v2"):
        read_checkpoint(tmp_path / "nothing_here")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty holds no weights: none of its 0 files"):
        read_checkpoint(tmp_path / "empty")
    (tmp_path / "text.txt").write_text("hello")
    with pytest.raises(InputError, match="text.txt holds no weights that are known here"):
        read_checkpoint(tmp_path / "text.txt")
    (tmp_path / "no.tar.gz").write_bytes(b"not an archive")
    with pytest.raises(InputError, match="cannot unpack the archive .*no.tar.gz") as caught:
        read_checkpoint(tmp_path / "no.tar.gz")
    assert "\n" not in str(caught.value)


def test_damage_is_told_with_the_file(tmp_path, source):
    portable.write(source, tmp_path / "m")
    weights = tmp_path / "m" / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-100])
    with pytest.raises(InputError, match="cannot read .*model.safetensors"):
        read_checkpoint(tmp_path / "m")
    weights.write_bytes(b"")
    with pytest.raises(InputError, match="cannot read .*model.safetensors"):
        read_checkpoint(tmp_path / "m")
    weights.write_bytes(whole)
    (tmp_path / "m" / "albert_config.json").write_text("{")
    with pytest.raises(InputError, match="albert_config.json is not a JSON file"):
        read_checkpoint(tmp_path / "m")


def test_a_directory_that_may_not_be_read_is_told(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("albert_tf.formats.reading.os.listdir", refuse)
    with pytest.raises(InputError, match="cannot read the directory .*: Permission denied"):
        read_checkpoint(tmp_path)


def test_a_directory_whose_writer_was_killed_between_two_renames_is_there_again(tmp_path, source):
    portable.write(source, tmp_path / "model.0123abcd.partial" / "old")
    assert read_checkpoint(tmp_path / "model").config == source.config
    assert [path.name for path in tmp_path.iterdir() if path.name == "model"]
