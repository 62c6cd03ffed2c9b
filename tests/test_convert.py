"""python -m albert_tf.convert: any form to any form, bit for bit, and what goes wrong in one sentence."""

from __future__ import annotations

import pathlib
import re

import numpy as np
import pytest
import safetensors.numpy

from albert_tf.errors import InputError
from albert_tf.formats import hugging_face, portable, tf1_writing
from albert_tf.formats.checkpoint import Checkpoint, Vocabulary
from albert_tf.formats.reading import read_checkpoint
from albert_tf.head_config import HeadConfig
from tests import toy_vocabulary
from tests.checkpoint_files import random_weights, small_config, write_tf1
from tests.script_driver import Driver

VOCABULARY = Vocabulary("30k-clean.model", pathlib.Path(toy_vocabulary.number_model()).read_bytes())


@pytest.fixture(scope="module")
def driver():
    made = Driver("albert_tf.convert")
    yield made
    made.close()


def checkpoint(config=None, head=None) -> Checkpoint:
    config, head = config or small_config(), head or HeadConfig("pretraining")
    return Checkpoint("source", "model", random_weights(config, head), config, head, vocabulary=VOCABULARY)


def assert_same(found: Checkpoint, expected: Checkpoint) -> None:
    assert set(found.weights) == set(expected.weights)
    for name, value in expected.weights.items():
        np.testing.assert_array_equal(found.weights[name], value, err_msg=name)
    assert found.config == expected.config


def test_a_released_checkpoint_with_slots_and_a_foreign_head_becomes_portable_and_goes_back(driver, tmp_path):
    source = checkpoint()
    slots = {f"{name}/{slot}": value for name, value in source.weights.items() for slot in ("adam_m", "adam_v")}
    foreign = {"cls/squad/output_weights": np.ones((2, 24), np.float32), "my/own/thing": np.ones(3, np.float32)}
    write_tf1(
        tmp_path / "released" / "model.ckpt-best",
        {**source.weights, **slots, **foreign, "global_step": np.array(7, np.int64)},
    )
    source.config.to_json_file(tmp_path / "released" / "albert_config.json")
    (tmp_path / "released" / "30k-clean.model").write_bytes(VOCABULARY.data)
    text = driver.run("--input", tmp_path / "released", "--output", tmp_path / "portable")
    lines = text.splitlines()
    assert f"  ignored: {len(slots)} slots, global_step" in lines
    unused = [line.split()[2] for line in lines if line.startswith("  not used: ")]
    assert unused == ["cls/squad/output_weights", "my/own/thing"]
    parameters = sum(value.size for value in source.weights.values())
    count = len(source.weights)
    assert lines[-1] == f"wrote {tmp_path / 'portable'} (portable): {count} variables, {parameters:,} parameters"
    driver.run("--input", tmp_path / "portable", "--output", tmp_path / "back", "--to=tf1")
    expected = source.replace(weights={**source.weights, **foreign})
    assert_same(read_checkpoint(tmp_path / "back"), expected)
    assert (tmp_path / "back" / "30k-clean.model").read_bytes() == VOCABULARY.data


HEADS = [
    HeadConfig("encoder"),
    HeadConfig("masked_lm"),
    HeadConfig("classifier", labels=("no", "yes", "maybe")),
    HeadConfig("classifier", num_labels=1, problem_type="regression"),
    HeadConfig("multiple_choice"),
    HeadConfig("span"),
    HeadConfig("answerable_span"),
    HeadConfig("tagger", num_labels=5),
]


@pytest.mark.parametrize("head", HEADS, ids=lambda head: f"{head.kind}-{head.num_labels}")
@pytest.mark.parametrize("sharing", ["all", "attention", "ffn", "none"])
def test_a_portable_directory_keeps_everything(tmp_path, head, sharing):
    source = checkpoint(small_config(parameter_sharing=sharing), head)
    portable.write(source, tmp_path / "model")
    found = read_checkpoint(tmp_path / "model")
    assert_same(found, source)
    assert found.head == head
    assert (found.vocabulary.data, found.vocabulary.do_lower_case) == (VOCABULARY.data, True)
    held = sharing in ("all", "none") and head.kind != "answerable_span"
    assert (tmp_path / "model" / "config.json").exists() == held


def test_what_the_target_cannot_hold_is_changed_exactly_and_said(driver, tmp_path):
    source = checkpoint(small_config(parameter_sharing="attention"))
    portable.write(source, tmp_path / "model")
    for form in ("huggingface", "tf1"):
        text = driver.run("--input", tmp_path / "model", "--output", tmp_path / form, f"--to={form}")
        assert any(line.startswith("note: ") and "attention" in line for line in text.splitlines())
        found = read_checkpoint(tmp_path / form)
        assert {group for group in range(9) if any(f"group_{group}/" in name for name in found.weights)} == {0, 1, 2, 3}
        name = "bert/encoder/transformer/group_{}/inner_group_0/attention_1/self/query/kernel"
        for group in range(4):
            np.testing.assert_array_equal(found.weights[name.format(group)], source.weights[name.format(0)])


def test_positions_and_a_vocabulary_can_be_changed_on_the_way(driver, tmp_path):
    source = checkpoint()
    tf1_writing.write(source.replace(vocabulary=None), tmp_path / "released")
    (tmp_path / "mine.model").write_bytes(VOCABULARY.data)
    text = driver.run(
        "--input", tmp_path / "released", "--output", tmp_path / "model", "--max_position_embeddings=40",
        "--vocabulary", tmp_path / "mine.model", "--nodo_lower_case",
    )  # fmt: skip
    assert "had 16 rows, now 40" in text
    found = read_checkpoint(tmp_path / "model")
    assert found.config.max_position_embeddings == 40 and found.vocabulary.data == VOCABULARY.data
    assert (found.vocabulary.do_lower_case, found.vocabulary.keep_accents) == (False, False)


def test_bad_input_is_told_in_one_sentence_and_writes_nothing(driver, tmp_path):
    weights = dict(checkpoint().weights)
    bare = write_tf1(tmp_path / "bare" / "model.ckpt", weights)
    weights["bert/pooler/dense/kernel_renamed"] = weights.pop("bert/pooler/dense/kernel")
    renamed = write_tf1(tmp_path / "renamed" / "model.ckpt", weights)
    config = tmp_path / "config.json"
    small_config().to_json_file(config)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear")
    out = tmp_path / "out"
    cases = [
        (["--input", tmp_path / "nothing", "--output", out], "nothing holds no weights"),
        (["--input", "", "--output", out], "path of the checkpoint is empty"),
        (["--input", bare, "--output", out], "--albert_config_file"),
        (
            ["--input", renamed, "--output", out, "--albert_config_file", config],
            "no value for bert/pooler/dense/kernel",
        ),
        (["--input", bare, "--output", tmp_path / "full", "--albert_config_file", config], "letter.txt"),
        (["--input", bare, "--output", config, "--albert_config_file", config], "it is a file"),
        (["--input", bare, "--output", out, "--albert_config_file", "albert_base_v2"], r"has shape \[320, 8\]"),
        (["--output", out], "input"),
        (["--input", bare, "--output", ""], "--output is empty"),
    ]
    for arguments, message in cases:
        text = driver.run(*arguments, expect=1)
        assert "Traceback" not in text
        assert re.search(message, text), text
        assert not out.exists()
    assert (tmp_path / "full" / "letter.txt").read_text() == "dear"


def test_what_the_model_has_no_place_for_is_kept_in_a_file_of_its_own(tmp_path):
    source = checkpoint(head=HeadConfig("span"))
    extra = {
        "bert/pooler/dense/kernel": np.ones((24, 24), np.float32),
        "bert/pooler/dense/bias": np.ones(24, np.float32),
        "my/counter": np.array(5, np.int64),
    }
    source = source.replace(weights={**source.weights, **extra})
    portable.write(source, tmp_path / "model")
    assert "albert.pooler.weight" not in safetensors.numpy.load_file(tmp_path / "model" / "model.safetensors")
    found = read_checkpoint(tmp_path / "model")
    assert_same(found, source)
    assert found.weights["my/counter"].shape == () and found.head == HeadConfig("span")
    tf1_writing.write(found, tmp_path / "back")
    assert_same(read_checkpoint(tmp_path / "back"), source)


def test_what_is_written_is_what_the_table_says(driver, tmp_path):
    """A shared checkpoint given a config of a model that shares nothing becomes one, in every form."""
    source = checkpoint()
    prefix = write_tf1(tmp_path / "bare" / "model.ckpt", source.weights)
    small_config(parameter_sharing="none").to_json_file(tmp_path / "none.json")
    for form in ("portable", "huggingface", "tf1"):
        text = driver.run(
            "--input", prefix, "--albert_config_file", tmp_path / "none.json", "--output", tmp_path / form,
            f"--to={form}",
        )  # fmt: skip
        assert "copied to groups 1 to 3" in text
        found = read_checkpoint(tmp_path / form)
        name = "bert/encoder/transformer/group_{}/inner_group_0/ffn_1/intermediate/dense/kernel"
        for group in range(4):
            np.testing.assert_array_equal(found.weights[name.format(group)], source.weights[name.format(0)])


def test_another_model_written_over_a_portable_one_is_told(tmp_path):
    head = HeadConfig("masked_lm")
    source = checkpoint(head=head)
    pooler = {"bert/pooler/dense/kernel": np.ones((24, 24), np.float32)}
    portable.write(source.replace(weights={**source.weights, **pooler}), tmp_path / "model")
    hugging_face.write(checkpoint(head=HeadConfig("classifier", num_labels=3)), tmp_path / "other")
    for name in ("config.json", "model.safetensors"):
        (tmp_path / "model" / name).write_bytes((tmp_path / "other" / name).read_bytes())
    with pytest.raises(InputError, match="albert.pooler.weight is in model.safetensors and in other_weights"):
        read_checkpoint(tmp_path / "model")
    (tmp_path / "model" / "other_weights.safetensors").unlink()
    with pytest.raises(InputError, match="config.json has architectures .*another model was written over this one"):
        read_checkpoint(tmp_path / "model")
    for name in ("albert_config.json", "head_config.json"):
        (tmp_path / "model" / name).unlink()
    assert read_checkpoint(tmp_path / "model").head == HeadConfig("classifier", num_labels=3)


def test_an_incomplete_head_is_not_written(driver, tmp_path):
    source = checkpoint(head=HeadConfig("span"))
    weights = {name: value for name, value in source.weights.items() if name != "cls/squad/output_bias"}
    with pytest.raises(InputError, match="has no cls/squad/output_bias, which AlbertForQuestionAnswering needs"):
        portable.write(source.replace(weights=weights), tmp_path / "model")
    prefix = write_tf1(tmp_path / "bare" / "model.ckpt", weights)
    small_config().to_json_file(tmp_path / "bare" / "albert_config.json")
    text = driver.run("--input", prefix, "--output", tmp_path / "out", expect=1)
    assert "no cls/squad/output_bias, so its head is not complete" in text
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", [tf1_writing, hugging_face, portable])
@pytest.mark.parametrize(("told", "held"), [(1, 2), (2, 1)])
def test_groups_that_the_config_beside_the_weights_does_not_tell_are_an_error(driver, tmp_path, form, told, held):
    form.write(checkpoint(small_config(num_hidden_groups=held)), tmp_path / "model")
    for file in ("config.json", "albert_config.json"):
        path = tmp_path / "model" / file
        if path.exists():
            path.write_text(path.read_text().replace(f'"num_hidden_groups": {held}', f'"num_hidden_groups": {told}'))
    text = driver.run("--input", tmp_path / "model", "--output", tmp_path / "out", "--to=huggingface", expect=1)
    assert "group_1/inner_group_0" in text, text
    assert not (tmp_path / "out").exists()
