"""TF1 checkpoints: every way to name one, what is left out, what is damaged, and the way back."""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.formats import tf1, tf1_writing
from albert_tf.formats.checkpoint import Checkpoint, Vocabulary
from albert_tf.formats.optimizer_slots import slots_among
from albert_tf.head_config import HeadConfig
from albert_tf.models import AlbertForPreTraining, AlbertModel
from tests import checkpoint_files, tf1_files, toy_vocabulary

WORDS = "bert/embeddings/word_embeddings"
WORDPIECES = "\n".join(toy_vocabulary.WORDPIECES).encode()


def tensors_of(prefix):
    reader = tf.train.load_checkpoint(str(prefix))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def assert_same_bits(left, right):
    assert sorted(left) == sorted(right)
    for name in left:
        assert np.asarray(left[name]).dtype == np.asarray(right[name]).dtype, name
        assert np.asarray(left[name]).tobytes() == np.asarray(right[name]).tobytes(), name


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A directory like the released archives', with both pre-training heads."""
    directory = tmp_path_factory.mktemp("tf1") / "albert_small"
    checkpoint_files.write_tf1(directory / "model.ckpt-best", checkpoint_files.random_weights(tf1_files.SMALL))
    tf1_files.SMALL.to_json_file(directory / "albert_config.json")
    (directory / "30k-clean.model").write_bytes(b"pieces")
    return directory


@pytest.fixture()
def copy(released, tmp_path):
    """A copy of it that a test may change."""
    return shutil.copytree(released, tmp_path / "copy")


def pack(directory, archive, top="albert_small"):
    with tarfile.open(archive, "w:gz" if str(archive).endswith("gz") else "w") as tar:
        tar.add(directory, arcname=top)
    return archive


@pytest.mark.parametrize(
    "folder, kind, labels",
    [
        ("model_shared", "pretraining", None),
        ("model_groups", "pretraining", None),
        ("head_classifier", "classifier", 3),
        ("head_squad_v1", "span", None),
    ],
)
def test_reads_the_reference_checkpoints_bit_for_bit(shared, folder, kind, labels):
    path = shared / "fixtures" / folder
    checkpoint = tf1.read(path / "model.ckpt")
    assert_same_bits(checkpoint.weights, tensors_of(path / "model.ckpt"))
    stored = json.loads((path / "config.json").read_text())
    assert all(getattr(checkpoint.config, key) == value for key, value in stored.items())
    assert (checkpoint.head.kind, checkpoint.head.num_labels) == (kind, labels)
    assert not checkpoint.slots and not checkpoint.notes and not checkpoint.left_out


@pytest.mark.parametrize("folder", ["model_shared", "model_groups"])
def test_the_loaded_model_computes_the_reference_numbers(shared, folder):
    path = shared / "fixtures" / folder
    checkpoint = tf1.read(path)
    model = AlbertForPreTraining(checkpoint.config)
    checkpoint_files.assign(model, checkpoint.weights)
    inputs, expected = dict(np.load(path / "inputs.npz")), np.load(path / "outputs.npz")
    names = ("input_ids", "input_mask", "segment_ids", "masked_lm_positions")
    outputs = model({name: tf.constant(inputs[name]) for name in names})
    np.testing.assert_allclose(outputs["sequence_output"], expected["sequence_output"], atol=2e-5, rtol=1e-5)
    np.testing.assert_allclose(outputs["pooled_output"], expected["pooled_output"], atol=2e-5, rtol=1e-5)
    logits = np.reshape(outputs["masked_lm_logits"], expected["masked_lm_logits"].shape)
    np.testing.assert_allclose(logits, expected["masked_lm_logits"], atol=5e-5, rtol=1e-5)


def test_slots_are_named_and_not_read(shared):
    path = shared / "fixtures" / "train_steps_lamb" / "model.ckpt-6"
    stored = tensors_of(path)
    checkpoint = tf1.read(path)
    assert set(checkpoint.slots) == {n for n in stored if n.endswith(("/adam_m", "/adam_v")) or n == "global_step"}
    assert_same_bits(checkpoint.weights, {n: value for n, value in stored.items() if n not in checkpoint.slots})


def test_which_names_are_slots():
    slots = ["a/Adam", "a/Adam_1", "a/ExponentialMovingAverage", "a/lamb_m", "beta1_power", "x/beta2_power_1"]
    weights = ["a", "head/Adam", "output_bias", "b/m"]
    assert slots_among([*slots, *weights]) == tuple(slots)


@pytest.mark.parametrize(
    "name", ["", "model.ckpt-best", "model.ckpt-best.index", "model.ckpt-best.data-00000-of-00001"]
)
def test_every_name_of_a_checkpoint(released, name):
    checkpoint = tf1.read(os.path.join(released, name) if name else released)
    assert_same_bits(checkpoint.weights, tensors_of(released / "model.ckpt-best"))
    assert checkpoint.config == tf1_files.SMALL
    assert checkpoint.vocabulary == Vocabulary("30k-clean.model", b"pieces")


@pytest.mark.parametrize("name, top", [("a.tar.gz", "albert_small"), ("a.tgz", "."), ("a.tar", "./x/y")])
def test_archives(released, tmp_path, name, top):
    path = pack(released, tmp_path / name, top)
    checkpoint = tf1.read(path)
    assert checkpoint.path == str(path)
    assert_same_bits(checkpoint.weights, tensors_of(released / "model.ckpt-best"))
    assert (checkpoint.config, checkpoint.vocabulary.data) == (tf1_files.SMALL, b"pieces")
    assert tf1.read(path, tf1_files.SMALL.replace(hidden_act="relu")).config == tf1_files.SMALL


def test_cut_and_damaged_archives(released, tmp_path):
    path = pack(released, tmp_path / "a.tar.gz")
    content = path.read_bytes()
    plain = pack(released, tmp_path / "a.tar").read_bytes()
    for name, damaged in (
        ("cut.tar.gz", content[: len(content) // 2]),
        ("flipped.tar.gz", content[:2000] + bytes([content[2000] ^ 255]) + content[2001:]),
        ("cut.tar", plain[: len(plain) // 3]),
        ("page.tar.gz", b"<html>not found</html>"),
        ("empty.tgz", b""),
    ):
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(InputError, match=name):
            tf1.read(tmp_path / name)


@pytest.mark.parametrize("kind", ["absolute", "parent", "symbolic link", "hard link"])
def test_archives_write_nowhere_else(released, tmp_path, kind):
    path, outside = tmp_path / "a.tar", tmp_path / "outside"
    member = tarfile.TarInfo({"absolute": str(outside), "parent": "x/../../outside"}.get(kind, "link"))
    with tarfile.open(path, "w") as tar:
        if "link" in kind:
            member.type = tarfile.SYMTYPE if kind == "symbolic link" else tarfile.LNKTYPE
            member.linkname = str(outside)
            tar.addfile(member)
        else:
            member.size = 3
            tar.addfile(member, io.BytesIO(b"abc"))
        tar.add(released, arcname="albert_small")
    with pytest.raises(InputError, match=r"a\.tar is not unpacked"):
        tf1.read(path)
    assert not outside.exists()


def add_checkpoint(directory, name, value):
    weights = {**checkpoint_files.random_weights(tf1_files.SMALL), "marker": np.float32(value)}
    checkpoint_files.write_tf1(os.path.join(directory, name), weights)


@pytest.mark.parametrize("pointer", ["/somewhere/else/model.ckpt-1", "../model.ckpt-1", "model.ckpt-77"])
def test_the_checkpoint_file_is_not_followed_out_of_its_directory(copy, pointer):
    (copy / "checkpoint").write_text(f'model_checkpoint_path: "{pointer}"\n')
    checkpoint = tf1.read(copy)
    assert_same_bits(checkpoint.weights, tensors_of(copy / "model.ckpt-best"))
    assert pointer in checkpoint.notes[0]


def test_the_checkpoint_file_and_then_the_highest_step_choose(tmp_path):
    for step in (9, 10, 2):
        add_checkpoint(tmp_path, f"model.ckpt-{step}", step)
    checkpoint = tf1.read(tmp_path)
    assert checkpoint.weights["marker"] == 10 and "model.ckpt-10 was taken" in checkpoint.notes[0]
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-2"\n')
    assert tf1.read(tmp_path).weights["marker"] == 2
    add_checkpoint(tmp_path, "other.ckpt-11", 11)
    assert tf1.read(tmp_path).weights["marker"] == 2
    os.remove(tmp_path / "checkpoint")
    with pytest.raises(InputError, match=r"model\.ckpt-10, model\.ckpt-2, model\.ckpt-9, other\.ckpt-11"):
        tf1.read(tmp_path)


def test_missing_and_damaged_files_are_named(copy, tmp_path):
    with pytest.raises(InputError, match=r"nothing\.index"):
        tf1.read(tmp_path / "nothing")
    data, index = copy / "model.ckpt-best.data-00000-of-00001", copy / "model.ckpt-best.index"
    content = data.read_bytes()
    data.write_bytes(content[:-100])
    with pytest.raises(InputError, match=r"model\.ckpt-best\.data-.* cut or damaged"):
        tf1.read(copy)
    data.write_bytes(content[:50] + bytes([content[50] ^ 1]) + content[51:])
    with pytest.raises(InputError, match=r"model\.ckpt-best\.data-.* cut or damaged"):
        tf1.read(copy)
    archive = pack(copy, tmp_path / "a.tar")
    with pytest.raises(InputError, match=r"a\.tar/model\.ckpt-best\.data-"):
        tf1.read(archive)
    data.unlink()
    with pytest.raises(InputError, match=r"model\.ckpt-best\.data-00000-of-00001 is missing"):
        tf1.read(copy)
    index.write_bytes(index.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"cannot read the checkpoint index .*model\.ckpt-best\.index"):
        tf1.read(copy)
    index.unlink()
    with pytest.raises(InputError, match=r"no file ending in \.index"):
        tf1.read(copy)


def test_a_checkpoint_of_objects_is_told_as_such(tmp_path):
    path = tf.train.Checkpoint(weight=tf.Variable([1.0])).write(str(tmp_path / "ckpt"))
    with pytest.raises(InputError, match="object-based checkpoint of TensorFlow 2"):
        tf1.read(path)


def test_index_files_of_public_checkpoints(shared):
    layout = shared / "data" / "ckpt_layout"
    for name in ("zh_tiny_google", "zh_tiny_google_finetuned"):
        with pytest.raises(InputError, match=rf"{name}\.ckpt\.data-00000-of-00001 is missing"):
            tf1.read(layout / f"{name}.ckpt.index")
    with pytest.raises(InputError, match="not a google-style ALBERT"):
        tf1.read(layout / "zh_tiny_brightmart.ckpt")


def test_other_floats_become_float32_and_text_is_left_out(tmp_path):
    weights = checkpoint_files.random_weights(tf1_files.SMALL)
    stored = {**weights, WORDS: weights[WORDS].astype(np.float16), "steps": np.int64(3), "text": np.array("x")}
    checkpoint = tf1.read(checkpoint_files.write_tf1(tmp_path / "m", stored))
    np.testing.assert_array_equal(checkpoint.weights[WORDS], weights[WORDS].astype(np.float16).astype(np.float32))
    assert checkpoint.weights[WORDS].dtype == np.float32
    assert checkpoint.notes == ("1 float16 arrays were turned into float32",)
    assert checkpoint.weights["steps"] == 3 and list(checkpoint.left_out) == ["text"]


def test_config_files(copy):
    os.rename(copy / "albert_config.json", copy / "my_config_base.json")
    assert tf1.read(copy).config == tf1_files.SMALL
    shutil.copy(copy / "my_config_base.json", copy / "my_config_large.json")
    checkpoint = tf1.read(copy)
    assert checkpoint.config is None and "my_config_base.json, my_config_large.json" in checkpoint.notes[0]
    (copy / "albert_config.json").write_text("{")
    with pytest.raises(InputError, match=r"albert_config\.json is not a JSON file"):
        tf1.read(copy)


@pytest.mark.parametrize("name", ["train_config.json", "albert_config.json"])
@pytest.mark.parametrize("content", ['{"lr": 1}', "[]", "{"])
def test_a_config_that_cannot_be_used_matters_only_where_none_is_given(copy, tmp_path, name, content):
    (copy / "albert_config.json").unlink()
    (copy / name).write_text(content)
    with pytest.raises(InputError, match=name):
        tf1.read(copy)
    given = tf1_files.SMALL.replace(hidden_dropout_prob=0.5)
    for path in (copy, pack(copy, tmp_path / "a.tar")):
        checkpoint = tf1.read(path, given)
        (note,) = checkpoint.notes
        assert checkpoint.config == given and "the given config was taken" in note and f" {name}" in note
    (copy / name).unlink()
    assert tf1.read(copy, given).config == given and tf1.read(copy, given).notes == ()


@pytest.mark.parametrize("activation, read", [("gelu", "gelu_erf"), ("gelu_new", "gelu")])
@pytest.mark.parametrize("embedding_size", [6, 12])
@pytest.mark.parametrize("telltale", [{"model_type": "albert"}, {"architectures": ["AlbertForPreTraining"]}])
def test_a_config_of_hugging_face_beside_the_files(tmp_path, activation, read, embedding_size, telltale):
    config = tf1_files.SMALL.replace(hidden_act=read, embedding_size=embedding_size)
    prefix = checkpoint_files.write_tf1(tmp_path / "model.ckpt", checkpoint_files.random_weights(config))
    theirs = {"hidden_act": activation, "classifier_dropout_prob": 0.1, **telltale, "pad_token_id": 0}
    (tmp_path / "config.json").write_text(json.dumps({**config.to_dict(), **theirs}))
    assert tf1.read(prefix).config == config


def test_two_names_of_one_variable_are_refused(tmp_path):
    weights = checkpoint_files.random_weights(tf1_files.SMALL)
    query = "attention_1/self/query/kernel"
    twice = {**weights, "bert/encoder/layer_0/attention/self/query/kernel": np.zeros([12, 12], np.float32)}
    with pytest.raises(InputError, match=rf"m has two values for .*group_0/inner_group_0/{query}, .*layer_0.* and "):
        tf1.read(checkpoint_files.write_tf1(tmp_path / "m", twice))


@pytest.mark.parametrize(
    "head",
    [
        HeadConfig("encoder"),
        HeadConfig("pretraining"),
        HeadConfig("masked_lm"),
        HeadConfig("classifier", 5),
        HeadConfig("classifier", 1),
        HeadConfig("span"),
        HeadConfig("answerable_span"),
        HeadConfig("multiple_choice"),
        HeadConfig("tagger", labels=("O", "B", "I")),
        HeadConfig("classifier", labels=("no", "yes")),
    ],
    ids=lambda head: f"{head.kind}_{head.num_labels}",
)
def test_there_and_back_with_every_head(tmp_path, head):
    weights = checkpoint_files.random_weights(tf1_files.SMALL, head)
    notes = tf1_writing.write(Checkpoint("x", "model", weights, tf1_files.SMALL, head), tmp_path / "out")
    checkpoint = tf1.read(tmp_path / "out")
    assert notes == () and checkpoint.notes == ()
    assert_same_bits(checkpoint.weights, weights)
    assert (checkpoint.config, checkpoint.head) == (tf1_files.SMALL, head)


def test_there_and_back_keeps_every_bit(tmp_path):
    weights = {
        **checkpoint_files.random_weights(tf1_files.SMALL),
        "my_head/scale": np.array([np.nan, -0.0, 1e-42, np.inf], np.float32),
        "my_head/table": np.arange(6, dtype=np.int64).reshape(2, 3),
        "alone": np.float32(0.1),
    }
    slots = {f"{name}/adam_m": value for name, value in weights.items()}
    first = checkpoint_files.write_tf1(tmp_path / "model.ckpt-5", {**weights, **slots, "global_step": np.int64(5)})
    tf1_files.SMALL.to_json_file(tmp_path / "albert_config.json")
    tf1_writing.write(tf1.read(first), tmp_path / "out", prefix="model.ckpt-new")
    assert_same_bits(tensors_of(tmp_path / "out" / "model.ckpt-new"), weights)
    assert sorted(os.listdir(tmp_path / "out")) == [
        "albert_config.json",
        "checkpoint",
        "model.ckpt-new.data-00000-of-00001",
        "model.ckpt-new.index",
    ]
    assert json.loads((tmp_path / "out" / "albert_config.json").read_text()) == tf1_files.SMALL.to_dict()


def test_a_tf1_saver_restores_what_was_written(tmp_path):
    weights = checkpoint_files.random_weights(tf1_files.SMALL)
    tf1_writing.write(Checkpoint("x", "model", weights, tf1_files.SMALL), tmp_path / "out")
    v1 = tf.compat.v1
    path = tf.train.latest_checkpoint(str(tmp_path / "out"))
    assert path == str(tmp_path / "out" / "model.ckpt-best")
    with tf.Graph().as_default(), v1.Session() as session:
        variables = {name: v1.get_variable(name, value.shape) for name, value in weights.items()}
        v1.train.Saver(variables).restore(session, path)
        assert_same_bits(session.run(variables), weights)


@pytest.mark.parametrize(
    "name, data, written",
    [
        ("x.model", b"pieces", "30k-clean.model"),
        ("pieces.txt", b"pieces", "30k-clean.model"),
        ("chinese.vocab", WORDPIECES, "vocab.txt"),
    ],
)
def test_the_vocabulary_gets_the_released_name_of_its_kind(tmp_path, name, data, written):
    vocabulary = Vocabulary(name, data, do_lower_case=False, keep_accents=True)
    weights = checkpoint_files.random_weights(tf1_files.SMALL)
    tf1_writing.write(Checkpoint("x", "model", weights, tf1_files.SMALL, vocabulary=vocabulary), tmp_path / "out")
    assert (tmp_path / "out" / written).read_bytes() == data
    assert tf1.read(tmp_path / "out").vocabulary == Vocabulary(written, data, False, True)


@pytest.mark.parametrize("inner_groups", [1, 2])
@pytest.mark.parametrize("sharing, groups", [("none", 1), ("none", 4), ("attention", 1), ("ffn", 1), ("attention", 2)])
def test_other_sharing_becomes_groups_of_one_layer(tmp_path, sharing, groups, inner_groups):
    config = tf1_files.SMALL.replace(parameter_sharing=sharing, num_hidden_groups=groups, inner_group_num=inner_groups)
    head = HeadConfig("encoder")
    weights = checkpoint_files.random_weights(config, head)
    (note,) = tf1_writing.write(Checkpoint("x", "model", weights, config, head), tmp_path / "out")
    assert sharing in note
    checkpoint = tf1.read(tmp_path / "out")
    assert (checkpoint.config.parameter_sharing, checkpoint.config.num_hidden_groups) == ("all", 4)
    models = AlbertModel(config), AlbertModel(checkpoint.config)
    for model, values in zip(models, (weights, checkpoint.weights)):
        checkpoint_files.assign(model, values)
    assert set(checkpoint.weights) == set(models[1].named_variables())
    left, right = (model(checkpoint_files.encoder_inputs(config))["sequence_output"] for model in models)
    np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize(
    "changes, named",
    [
        ({"layer_norm_eps": 1e-5}, "layer_norm_eps 1e-05"),
        ({"hidden_act": "gelu_erf"}, "gelu_erf"),
        ({"embedding_size": 12, "embedding_projection": True}, "embedding_projection"),
        ({"num_hidden_layers": 22, "num_hidden_groups": 1, "parameter_sharing": "ffn"}, "num_hidden_layers 22"),
        ({"num_hidden_layers": 22, "num_hidden_groups": 1, "parameter_sharing": "none"}, "num_hidden_layers 22"),
    ],
)
def test_what_the_released_form_cannot_hold_is_refused_by_name(tmp_path, changes, named):
    config = tf1_files.SMALL.replace(**changes)
    with pytest.raises(InputError, match=named):
        tf1_writing.write(Checkpoint("x", "model", checkpoint_files.random_weights(config), config), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_earlier_checkpoint_is_replaced_and_nothing_else(tmp_path):
    config, out = tf1_files.SMALL, tmp_path / "out"
    head, vocabulary = HeadConfig("classifier", labels=("no", "yes")), Vocabulary("vocab.txt", WORDPIECES)
    tf1_writing.write(
        Checkpoint("x", "m", checkpoint_files.random_weights(config, head), config, head, vocabulary=vocabulary), out
    )
    weights = checkpoint_files.random_weights(config)
    tf1_writing.write(Checkpoint("x", "m", weights, config), out)
    assert_same_bits(tf1.read(out).weights, weights)
    assert (tf1.read(out).vocabulary, tf1.read(out).head) == (None, HeadConfig("pretraining"))
    (out / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"notes\.txt"):
        tf1_writing.write(Checkpoint("x", "m", weights, config), out)
    assert (out / "notes.txt").read_text() == "mine"


def test_a_config_is_needed_to_write(tmp_path):
    with pytest.raises(InputError, match="config is not known"):
        tf1_writing.write(Checkpoint("x", "model", {}), tmp_path / "out")
