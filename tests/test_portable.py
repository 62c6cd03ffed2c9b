"""The portable directory and the loading of released checkpoints."""

from __future__ import annotations

import json

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

from albert_tf import portable
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.formats import hugging_face_names
from albert_tf.models import AlbertForPreTraining, AlbertModel

SMALL = {
    "vocab_size": 50,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 48,
    "embedding_size": 8,
    "max_position_embeddings": 16,
}


def save_tf1(path, values: dict[str, np.ndarray]) -> str:
    """Writes a name-based checkpoint as TF1 does."""
    graph = tf.Graph()
    with graph.as_default(), tf.compat.v1.Session() as session:
        variables = {name: tf.compat.v1.Variable(value, name=name) for name, value in values.items()}
        session.run(tf.compat.v1.global_variables_initializer())
        return tf.compat.v1.train.Saver(variables).save(session, str(path), write_meta_graph=False)


def values_of(model) -> dict[str, np.ndarray]:
    return {name: np.array(variable) for name, variable in model.named_variables().items()}


def assert_same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> None:
    assert set(first) == set(second)
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)


@pytest.mark.parametrize("sharing", ["all", "attention", "ffn", "none"])
def test_round_trip_is_bit_equal(tmp_path, sharing):
    model = AlbertForPreTraining(AlbertConfig.from_dict({**SMALL, "parameter_sharing": sharing}))
    model.save_pretrained(tmp_path / "model")
    loaded = AlbertForPreTraining.from_pretrained(tmp_path / "model")
    assert loaded.config == model.config
    assert_same(values_of(model), values_of(loaded))
    encoder = AlbertModel.from_pretrained(tmp_path / "model")
    assert set(encoder.named_variables()) < set(model.named_variables())
    assert (tmp_path / "model" / "config.json").exists() == (sharing in ("all", "none"))
    model.save_pretrained(tmp_path / "model")  # a directory that is there already is replaced whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


def test_hugging_face_names_and_config(tmp_path):
    model = AlbertForPreTraining(AlbertConfig(**SMALL))
    model.save_pretrained(tmp_path / "model")
    tensors = safetensors.numpy.load_file(tmp_path / "model" / "model.safetensors")
    block = "albert.encoder.albert_layer_groups.0.albert_layers.0"
    expected = {
        "albert.embeddings.word_embeddings.weight",
        "albert.embeddings.token_type_embeddings.weight",
        "albert.embeddings.position_embeddings.weight",
        "predictions.bias",
    }
    for prefix in (
        "albert.embeddings.LayerNorm",
        "albert.encoder.embedding_hidden_mapping_in",
        f"{block}.attention.query",
        f"{block}.attention.key",
        f"{block}.attention.value",
        f"{block}.attention.dense",
        f"{block}.attention.LayerNorm",
        f"{block}.full_layer_layer_norm",
        f"{block}.ffn",
        f"{block}.ffn_output",
        "albert.pooler",
        "predictions.dense",
        "predictions.LayerNorm",
        "sop_classifier.classifier",
    ):
        expected |= {f"{prefix}.weight", f"{prefix}.bias"}
    assert set(tensors) == expected
    assert tensors[f"{block}.ffn.weight"].shape == (48, 24)  # [out, in] there, [in, out] here
    kernel = model.named_variables()["bert/encoder/transformer/group_0/inner_group_0/ffn_1/intermediate/dense/kernel"]
    np.testing.assert_array_equal(tensors[f"{block}.ffn.weight"].T, np.asarray(kernel))
    values = json.loads((tmp_path / "model" / "config.json").read_text())
    assert values["hidden_act"] == "gelu_new" and values["model_type"] == "albert"


def test_a_name_that_is_not_an_alberts_has_no_translation():
    with pytest.raises(KeyError):
        hugging_face_names.to_hugging_face("bert/encoder/layer_0/attention/self/query/kernel")


@pytest.mark.parametrize("suffix", ["", ".index"])
def test_tf1_checkpoint_with_slots_and_an_unknown_head(tmp_path, suffix):
    source = AlbertForPreTraining(AlbertConfig(**SMALL))
    values = values_of(source)
    slots = {f"{name}/{slot}": np.zeros_like(value) for name, value in values.items() for slot in ("adam_m", "adam_v")}
    extra = {"global_step": np.array(7, np.int64), "cls/squad/output_bias": np.ones(2, np.float32)}
    prefix = save_tf1(tmp_path / "model.ckpt", {**values, **slots, **extra})
    target = AlbertForPreTraining(AlbertConfig(**SMALL))
    report = portable.load(prefix + suffix, target.named_variables())
    assert_same(values, values_of(target))
    assert report.unused == ["cls/squad/output_bias"] and not report.missing
    assert len(report.slots) == len(slots) + 1


def test_missing_variables_are_reported_and_keep_their_values(tmp_path):
    values = values_of(AlbertModel(AlbertConfig(**SMALL)))
    prefix = save_tf1(tmp_path / "encoder.ckpt", values)
    model = AlbertForPreTraining(AlbertConfig(**SMALL))
    before = np.array(model.named_variables()["cls/predictions/output_bias"])
    report = portable.load(prefix, model.named_variables())
    assert all(name.startswith("cls/") for name in report.missing) and len(report.missing) == 7
    np.testing.assert_array_equal(np.array(model.named_variables()["cls/predictions/output_bias"]), before)


def test_what_is_not_an_albert_is_refused_by_name(tmp_path):
    variables = AlbertModel(AlbertConfig(**SMALL)).named_variables()
    bert = save_tf1(
        tmp_path / "bert.ckpt", {"bert/encoder/layer_0/attention/self/query/kernel": np.ones((2, 2), np.float32)}
    )
    with pytest.raises(InputError, match="not one variable.*BERT"):
        portable.load(bert, variables)
    other = save_tf1(tmp_path / "zh.ckpt", {"bert/embeddings/word_embeddings_2": np.ones((2, 2), np.float32)})
    with pytest.raises(InputError, match="other ALBERT family"):
        portable.load(other, variables)


def test_a_wrong_shape_names_both(tmp_path):
    AlbertForPreTraining(AlbertConfig(**SMALL)).save_pretrained(tmp_path / "model")
    wider = AlbertForPreTraining(AlbertConfig.from_dict({**SMALL, "vocab_size": 60}))
    with pytest.raises(InputError, match=r"word_embeddings has shape \[50, 8\].*\[60, 8\]"):
        portable.load(tmp_path / "model", wider.named_variables())


def test_absent_and_damaged_files_are_named(tmp_path):
    variables = AlbertModel(AlbertConfig(**SMALL)).named_variables()
    with pytest.raises(InputError, match="nothing_here holds no weights"):
        portable.load(tmp_path / "nothing_here", variables)
    with pytest.raises(InputError, match="is not a directory"):
        AlbertModel.from_pretrained(tmp_path / "nothing_here")
    AlbertModel(AlbertConfig(**SMALL)).save_pretrained(tmp_path / "model")
    weights = tmp_path / "model" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(InputError, match="cannot read .*model.safetensors"):
        AlbertModel.from_pretrained(tmp_path / "model")
    (tmp_path / "broken.ckpt.index").write_bytes(b"not a checkpoint")
    with pytest.raises(InputError, match="cannot read the checkpoint .*broken.ckpt"):
        portable.load(tmp_path / "broken.ckpt", variables)


def test_an_encoder_cannot_pass_for_a_pretraining_model(tmp_path):
    AlbertModel(AlbertConfig(**SMALL)).save_pretrained(tmp_path / "model")
    with pytest.raises(InputError, match="no weights for cls/predictions/transform/dense/kernel"):
        AlbertForPreTraining.from_pretrained(tmp_path / "model")
