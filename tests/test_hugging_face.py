"""Hugging Face directories: names, orientation and configs both ways, without transformers or PyTorch."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest
import safetensors
import safetensors.numpy

from albert_tf import weight_names
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.formats import hugging_face, hugging_face_config, hugging_face_names, hugging_face_tensors
from albert_tf.formats.checkpoint import Checkpoint, Vocabulary
from albert_tf.head_config import LABELLED_KINDS, HeadConfig
from tests import oracle, toy_vocabulary
from tests.checkpoint_files import random_weights, small_config
from tests.hugging_face_files import (
    CLASSES,
    config_values,
    keras_name,
    random_tensors,
    write_bfloat16,
    write_directory,
    write_h5,
    write_shards,
)

BLOCK = "bert/encoder/transformer/group_{}/inner_group_{}"
HF_BLOCK = "albert.encoder.albert_layer_groups.{}.albert_layers.{}"


def config_of(**changes) -> AlbertConfig:
    """A config by Hugging Face's keys."""
    return hugging_face_config.read_config(config_values("AlbertModel", **changes), "config.json")


def checkpoint_of(config: AlbertConfig, head: HeadConfig | None = None, **changes) -> Checkpoint:
    """Random weights under released names."""
    return Checkpoint("here", "test", random_weights(config, head), config, head, **changes)


def stored_tensors(directory) -> dict[str, np.ndarray]:
    return safetensors.numpy.load_file(directory / "model.safetensors")


def assert_same(first, second) -> None:
    assert set(first) == set(second)
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)


# ---- whole directories


@pytest.mark.parametrize("architecture", CLASSES)
def test_a_class_is_read_and_given_back_bit_for_bit(tmp_path, architecture):
    values = config_values(architecture, num_hidden_groups=2, inner_group_num=2)
    tensors = random_tensors(architecture, values)
    checkpoint = hugging_face.read(write_directory(tmp_path / "theirs", values, tensors))
    assert checkpoint.head.kind == CLASSES[architecture] and not checkpoint.left_out and not checkpoint.notes
    shapes = {name: value.shape for name, value in checkpoint.weights.items()}
    assert shapes == weight_names.variable_shapes(checkpoint.config, checkpoint.head)
    assert hugging_face.write(checkpoint, tmp_path / "ours") == ()
    assert_same(stored_tensors(tmp_path / "ours"), tensors)
    with safetensors.safe_open(tmp_path / "ours" / "model.safetensors", "np") as file:
        assert file.metadata() == {"format": "pt"}
    written = json.loads((tmp_path / "ours" / "config.json").read_text())
    without_effect = {"torch_dtype", "transformers_version", "output_past", "gap_size"}
    assert {key: written[key] for key in values if key not in without_effect} == {
        key: value for key, value in values.items() if key not in without_effect
    }
    again = hugging_face.read(tmp_path / "ours")
    assert (again.config, again.head) == (checkpoint.config, checkpoint.head)


def test_names_and_orientation(tmp_path):
    values = config_values("AlbertForPreTraining", num_hidden_groups=2, inner_group_num=2)
    tensors = random_tensors("AlbertForPreTraining", values)
    weights = hugging_face.read(write_directory(tmp_path, values, tensors)).weights
    ours, theirs = BLOCK.format(1, 0), HF_BLOCK.format(1, 0)
    for released, other, transposed in (
        ("bert/embeddings/word_embeddings", "albert.embeddings.word_embeddings.weight", False),
        ("bert/embeddings/LayerNorm/gamma", "albert.embeddings.LayerNorm.weight", False),
        ("bert/embeddings/LayerNorm/beta", "albert.embeddings.LayerNorm.bias", False),
        (
            "bert/encoder/embedding_hidden_mapping_in/kernel",
            "albert.encoder.embedding_hidden_mapping_in.weight",
            True,
        ),
        (f"{ours}/attention_1/self/query/kernel", f"{theirs}.attention.query.weight", True),
        (f"{ours}/attention_1/output/dense/bias", f"{theirs}.attention.dense.bias", False),
        (f"{ours}/LayerNorm/gamma", f"{theirs}.attention.LayerNorm.weight", False),
        (f"{ours}/LayerNorm_1/gamma", f"{theirs}.full_layer_layer_norm.weight", False),
        (f"{ours}/ffn_1/intermediate/dense/kernel", f"{theirs}.ffn.weight", True),
        (f"{ours}/ffn_1/intermediate/output/dense/kernel", f"{theirs}.ffn_output.weight", True),
        ("bert/pooler/dense/kernel", "albert.pooler.weight", True),
        ("cls/predictions/transform/dense/kernel", "predictions.dense.weight", True),
        ("cls/predictions/transform/LayerNorm/beta", "predictions.LayerNorm.bias", False),
        ("cls/predictions/output_bias", "predictions.bias", False),
        ("cls/seq_relationship/output_weights", "sop_classifier.classifier.weight", False),
    ):
        value = tensors[other]
        np.testing.assert_array_equal(weights[released], value.T if transposed else value, err_msg=released)


def test_heads_on_top_are_not_transposed(tmp_path):
    for architecture, released, other in (
        ("AlbertForSequenceClassification", "output_weights", "classifier.weight"),
        ("AlbertForQuestionAnswering", "cls/squad/output_weights", "qa_outputs.weight"),
    ):
        values = config_values(architecture)
        tensors = random_tensors(architecture, values)
        weights = hugging_face.read(write_directory(tmp_path / architecture, values, tensors)).weights
        np.testing.assert_array_equal(weights[released], tensors[other])


def test_the_span_head_of_squad_v2_keeps_its_names_with_dots():
    assert hugging_face_names.to_hugging_face("end_logits/dense_0/kernel") == ("end_logits.dense_0.weight", True)
    assert hugging_face_names.to_hugging_face("end_logits/LayerNorm/beta") == ("end_logits.LayerNorm.bias", False)
    head = HeadConfig("answerable_span")
    for name in weight_names.variable_shapes(config_of(), head):
        other, transposed = hugging_face_names.to_hugging_face(name)
        assert hugging_face_names.from_hugging_face(other) == (name, transposed)


def test_names_of_other_models_have_no_translation():
    with pytest.raises(KeyError):
        hugging_face_names.to_hugging_face("bert/encoder/layer_0/attention/self/query/kernel")
    assert hugging_face_names.from_hugging_face("bert.encoder.layer.0.attention.self.query.weight") is None
    assert hugging_face_names.from_hugging_face("albert.albert.pooler.weight") is None


# ---- every kind of file


@pytest.mark.parametrize("architecture", CLASSES)
def test_the_h5_of_a_tensorflow_class(tmp_path, architecture):
    values = config_values(architecture, num_hidden_groups=2, inner_group_num=2)
    tensors = random_tensors(architecture, values)
    expected = hugging_face.read(write_directory(tmp_path / "pt", values, tensors))
    (tmp_path / "tf").mkdir()
    (tmp_path / "tf" / "config.json").write_text(json.dumps({**values, "architectures": [f"TF{architecture}"]}))
    write_h5(tmp_path / "tf" / "tf_model.h5", architecture, tensors)
    for path in (tmp_path / "tf", tmp_path / "tf" / "tf_model.h5"):
        checkpoint = hugging_face.read(path)
        assert_same(checkpoint.weights, expected.weights)
        assert (checkpoint.config, checkpoint.head) == (expected.config, expected.head)


def test_an_h5_that_contradicts_itself_is_refused(tmp_path):
    tensors = random_tensors("AlbertForMaskedLM", config_values("AlbertForMaskedLM"))
    write_h5(tmp_path / "tf_model.h5", "AlbertForMaskedLM", tensors)
    with h5py.File(tmp_path / "tf_model.h5", "r+") as file:
        file["predictions/tf_albert_for_masked_lm/albert/embeddings/word_embeddings/weight:0"][7] += 1
    with pytest.raises(InputError, match="two different values for albert.embeddings.word_embeddings.weight"):
        hugging_face.read(tmp_path)


def test_safetensors_of_a_tensorflow_class(tmp_path):
    values = config_values("AlbertForMaskedLM")
    tensors = random_tensors("AlbertForMaskedLM", values)
    expected = hugging_face.read(write_directory(tmp_path / "pt", values, tensors)).weights
    renamed = {}
    for name, value in tensors.items():
        # these lack the two first parts of the path in an .h5
        keras = keras_name(name, "AlbertForMaskedLM").split("/", 2)[2]
        renamed[keras] = value.T if keras.endswith("kernel:0") else value
    assert_same(hugging_face.read(write_directory(tmp_path / "tf", values, renamed)).weights, expected)


def test_shards_and_single_files(tmp_path):
    values = config_values("AlbertForPreTraining")
    tensors = random_tensors("AlbertForPreTraining", values)
    whole = hugging_face.read(write_directory(tmp_path / "whole", values, tensors))
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards" / "config.json").write_text(json.dumps(values))
    write_shards(tmp_path / "shards", tensors, 3)
    index = tmp_path / "shards" / "model.safetensors.index.json"
    for path in (tmp_path / "shards", index, tmp_path / "whole" / "model.safetensors"):
        checkpoint = hugging_face.read(path)
        assert_same(checkpoint.weights, whole.weights)
        assert (checkpoint.config, checkpoint.head) == (whole.config, whole.head)


def test_a_bare_file_without_config_tells_its_head_by_its_weights(tmp_path):
    for architecture, kind in CLASSES.items():
        values = config_values(architecture)
        path = write_directory(tmp_path / architecture, None, random_tensors(architecture, values))
        checkpoint = hugging_face.read(path / "model.safetensors")
        assert checkpoint.config is None
        # the single score of a multiple choice looks like a regression
        assert checkpoint.head.kind == ("classifier" if kind == "multiple_choice" else kind)
        if checkpoint.head.kind in LABELLED_KINDS:
            assert checkpoint.head.num_labels == (1 if kind == "multiple_choice" else 3)


def test_old_spellings(tmp_path):
    values = config_values("AlbertModel")
    tensors = random_tensors("AlbertModel", values)
    expected = hugging_face.read(write_directory(tmp_path / "new", values, tensors)).weights
    norms = {name.rpartition(".")[0] for name in tensors if "norm" in name.lower()}
    leaves = {"weight": "gamma", "bias": "beta"}
    old = {}
    for name, value in tensors.items():
        prefix, _, leaf = name.rpartition(".")
        old[f"albert.{prefix}.{leaves[leaf] if prefix in norms else leaf}"] = value
    assert_same(hugging_face.read(write_directory(tmp_path / "old", values, old)).weights, expected)
    with pytest.raises(InputError, match="twice"):
        hugging_face.read(write_directory(tmp_path / "both", values, {**tensors, **old}))


@pytest.mark.parametrize("kind", ["F16", "F64", "BF16"])
def test_other_types_become_float32_with_a_note(tmp_path, kind):
    values = config_values("AlbertModel")
    tensors = random_tensors("AlbertModel", values)
    if kind == "BF16":  # the upper halves of float32 numbers that end in zeros
        tensors = {n: (v.view(np.uint32) & 0xFFFF0000).view(np.float32) for n, v in tensors.items()}
        write_directory(tmp_path, values, {})
        write_bfloat16(tmp_path / "model.safetensors", tensors)
    else:
        tensors = {name: v.astype({"F16": np.float16, "F64": np.float64}[kind]) for name, v in tensors.items()}
        write_directory(tmp_path, values, tensors)
    checkpoint = hugging_face.read(tmp_path)
    assert len(checkpoint.notes) == 1 and "float32" in checkpoint.notes[0]
    query = checkpoint.weights[f"{BLOCK.format(0, 0)}/attention_1/self/query/kernel"]
    assert query.dtype == np.float32
    name = "encoder.albert_layer_groups.0.albert_layers.0.attention.query.weight"
    np.testing.assert_array_equal(query, tensors[name].T.astype(np.float32))


def test_whole_numbers_are_no_weights(tmp_path):
    values = config_values("AlbertModel")
    tensors = random_tensors("AlbertModel", values)
    tensors["pooler.weight"] = tensors["pooler.weight"].astype(np.int8)
    with pytest.raises(InputError, match="pooler.weight is of the type int8"):
        hugging_face.read(write_directory(tmp_path, values, tensors))


# ---- what is no weight of its own


@pytest.mark.parametrize("architecture", ["AlbertForPreTraining", "AlbertForMaskedLM"])
def test_tied_copies_and_position_numbers_are_left_out(tmp_path, architecture):
    values = config_values(architecture)
    tensors = random_tensors(architecture, values)
    plain = hugging_face.read(write_directory(tmp_path / "plain", values, tensors))
    copies = {
        "albert.embeddings.position_ids": np.arange(16)[None],
        "predictions.decoder.weight": tensors["albert.embeddings.word_embeddings.weight"],
        "predictions.decoder.bias": tensors["predictions.bias"],
    }
    checkpoint = hugging_face.read(write_directory(tmp_path / "copies", values, {**tensors, **copies}))
    assert_same(checkpoint.weights, plain.weights)
    assert set(checkpoint.left_out) == set(copies)
    alone = {**tensors, **copies}  # where the copies are kept instead of what they are tied to
    del alone["predictions.bias"], alone["albert.embeddings.word_embeddings.weight"]
    assert_same(hugging_face.read(write_directory(tmp_path / "alone", values, alone)).weights, plain.weights)


def test_an_untied_output_matrix_is_refused(tmp_path):
    values = config_values("AlbertForMaskedLM")
    tensors = random_tensors("AlbertForMaskedLM", values)
    tensors["predictions.decoder.weight"] = tensors["albert.embeddings.word_embeddings.weight"] * 2
    with pytest.raises(InputError, match="predictions.decoder.weight differs from .*word_embeddings.*not tied"):
        hugging_face.read(write_directory(tmp_path, values, tensors))


def test_of_two_output_biases_the_decoders_is_taken(tmp_path):
    """transformers (4.46 and 5.24) and its TensorFlow classes add the decoder's."""
    values = config_values("AlbertForMaskedLM")
    tensors = random_tensors("AlbertForMaskedLM", values)
    tensors["predictions.decoder.bias"] = tensors["predictions.bias"] + 1
    checkpoint = hugging_face.read(write_directory(tmp_path, values, tensors))
    np.testing.assert_array_equal(
        checkpoint.weights["cls/predictions/output_bias"], tensors["predictions.decoder.bias"]
    )
    assert "differs from predictions.decoder.bias" in checkpoint.left_out["predictions.bias"]


POOLER = {"albert.pooler.weight": np.ones((24, 24), np.float32), "albert.pooler.bias": np.ones(24, np.float32)}


@pytest.mark.parametrize("architecture", ["AlbertForQuestionAnswering", "AlbertForTokenClassification"])
def test_what_a_class_has_no_place_for_is_not_written(tmp_path, architecture):
    values = config_values(architecture)
    tensors = random_tensors(architecture, values)
    extra = {"my_head.weight": np.ones((2, 2), np.float32), **POOLER}
    checkpoint = hugging_face.read(write_directory(tmp_path / "theirs", values, {**tensors, **extra}))
    assert {"my_head.weight", "bert/pooler/dense/kernel"} < set(checkpoint.weights)
    (note,) = hugging_face.write(checkpoint, tmp_path / "ours")
    assert note == (
        f"not written, for {architecture} has no place for it: bert/pooler/dense/bias, bert/pooler/dense/kernel, "
        "my_head.weight"
    )
    assert_same(stored_tensors(tmp_path / "ours"), tensors)


def test_the_pooler_of_a_pretrained_masked_lm_is_kept(tmp_path):
    """The public AlbertForMaskedLM files have it, and classifiers start from it."""
    values = config_values("AlbertForMaskedLM")
    tensors = {**random_tensors("AlbertForMaskedLM", values), **POOLER}
    checkpoint = hugging_face.read(write_directory(tmp_path / "theirs", values, tensors))
    (note,) = hugging_face.write(checkpoint, tmp_path / "ours")
    assert "pooler is written" in note
    assert_same(stored_tensors(tmp_path / "ours"), tensors)


# ---- the config


@pytest.mark.parametrize(
    ("theirs", "ours", "back"),
    [
        ("gelu_new", "gelu", "gelu_new"),
        ("gelu_pytorch_tanh", "gelu", "gelu_new"),
        ("gelu_fast", "gelu", "gelu_new"),
        ("gelu", "gelu_erf", "gelu"),
        ("gelu_python", "gelu_erf", "gelu"),
        ("relu", "relu", "relu"),
        ("tanh", "tanh", "tanh"),
        ("linear", "linear", "linear"),
    ],
)
def test_activations(theirs, ours, back):
    config = config_of(hidden_act=theirs)
    assert config.hidden_act == ours
    assert hugging_face_config.to_values(config, HeadConfig("encoder"))["hidden_act"] == back


def test_missing_keys_are_those_of_xxlarge():
    config = hugging_face_config.read_config({"model_type": "albert"}, "config.json")
    sizes = (config.vocab_size, config.embedding_size, config.hidden_size, config.intermediate_size)
    assert sizes == (30000, 128, 4096, 16384)
    assert (config.num_attention_heads, config.num_hidden_layers, config.num_hidden_groups) == (64, 12, 1)
    assert (config.hidden_act, config.layer_norm_eps, config.classifier_dropout_prob) == ("gelu", 1e-12, 0.1)
    assert (config.hidden_dropout_prob, config.attention_probs_dropout_prob) == (0, 0)


def test_rates_and_epsilon_are_kept():
    changes = {"layer_norm_eps": 1e-5, "classifier_dropout_prob": 0.3, "hidden_dropout_prob": 0.2}
    config = config_of(**changes)
    values = hugging_face_config.to_values(config, HeadConfig("encoder"))
    assert {key: values[key] for key in changes} == changes
    assert config_of(classifier_dropout_prob=None, hidden_dropout_prob=0.2).classifier_dropout_prob == 0.2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "bert"}, "model_type is 'bert'.*a BERT"),
        ({"model_type": "roberta"}, "model_type is 'roberta'"),
        ({"hidden_act": "quick_gelu"}, "hidden_act is 'quick_gelu'"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ({"num_hidden_layers": 44, "num_hidden_groups": 22}, "num_hidden_layers 44 and num_hidden_groups 22, layer 30"),
        ({"hidden_size": 25}, "config.json: hidden_size 25 does not divide"),
    ],
)
def test_what_is_not_computed_here_is_refused_by_name(changes, message):
    with pytest.raises(InputError, match=message):
        config_of(**changes)
    with pytest.raises(InputError, match="no JSON object"):
        hugging_face_config.read_config([], "config.json")


def test_as_many_groups_as_layers_share_nothing():
    for layers in (4, 22, 44):  # at 22 and 44 the released rule gives two layers one group
        config = config_of(num_hidden_layers=layers, num_hidden_groups=layers)
        assert config.parameter_sharing == "none"
        assert config.layer_parts() == [(layer, layer) for layer in range(layers)]
    assert config_of(num_hidden_groups=2).layer_parts() == [(0, 0), (0, 0), (1, 1), (1, 1)]


@pytest.mark.parametrize("architecture", ["AlbertForSequenceClassification", "AlbertForTokenClassification"])
def test_labels(tmp_path, architecture):
    id2label = {"2": "c", "0": "a", "1": "b"}
    values = config_values(architecture, id2label=id2label, problem_type="multi_label_classification")
    checkpoint = hugging_face.read(write_directory(tmp_path / "a", values, random_tensors(architecture, values)))
    assert (checkpoint.head.labels, checkpoint.head.num_labels) == (("a", "b", "c"), 3)
    is_classifier = checkpoint.head.kind == "classifier"
    assert checkpoint.head.problem_type == ("multi_label_classification" if is_classifier else None)
    hugging_face.write(checkpoint, tmp_path / "b")
    written = json.loads((tmp_path / "b" / "config.json").read_text())
    assert written["id2label"] == id2label and written["label2id"] == {"a": 0, "b": 1, "c": 2}
    assert written.get("problem_type") == checkpoint.head.problem_type


def test_labels_without_names():
    weights = {"output_weights": np.zeros((5, 24)), "bert/pooler/dense/kernel": np.zeros((24, 24))}
    values = {"architectures": ["AlbertForSequenceClassification"]}
    assert hugging_face_config.read_head(values, weights) == (HeadConfig("classifier", 5), ())
    assert hugging_face_config.read_head({**values, "num_labels": 4}, weights)[0].num_labels == 4
    head, notes = hugging_face_config.read_head({**values, "id2label": {"0": "x", "1": "x"}}, weights)
    assert (head, len(notes)) == (HeadConfig("classifier", 2), 1)
    head, (note,) = hugging_face_config.read_head({"architectures": ["MyAlbert"]}, weights)
    assert head == HeadConfig("classifier", 5) and "MyAlbert" in note


# ---- models that Hugging Face cannot hold as they are


def outputs(config: AlbertConfig, weights) -> dict:
    random = np.random.default_rng(1)
    inputs = {
        "input_ids": random.integers(0, config.vocab_size, (2, 7)),
        "segment_ids": random.integers(0, 2, (2, 7)),
        "input_mask": np.array([[1] * 7, [1] * 4 + [0] * 3]),
        "masked_lm_positions": np.array([[1, 2], [0, 3]]),
    }
    # NumPy's products round by the layout in memory
    return oracle.forward(config, {name: np.ascontiguousarray(value) for name, value in weights.items()}, inputs)


@pytest.mark.parametrize(
    ("changes", "copied"),
    [
        ({"parameter_sharing": "attention"}, True),
        ({"parameter_sharing": "ffn", "inner_group_num": 2}, True),
        ({"parameter_sharing": "attention", "num_hidden_groups": 2}, True),
        ({"parameter_sharing": "none"}, False),
        ({"num_hidden_groups": 2, "inner_group_num": 2}, False),
        ({"num_hidden_groups": 4}, False),
        ({"num_hidden_groups": 12}, True),  # 8 of the 12 are never used
        ({"num_hidden_layers": 22, "num_hidden_groups": 22}, True),  # layers 14 and 15 share by the released rule
        ({"num_hidden_layers": 44, "num_hidden_groups": 22}, True),
    ],
)
def test_sharing_becomes_groups_with_the_same_numbers(tmp_path, changes, copied):
    config = small_config(**changes)
    checkpoint = checkpoint_of(config)
    notes = hugging_face.write(checkpoint, tmp_path / "model")
    assert len(notes) == copied and all(config.parameter_sharing in note for note in notes)
    values = json.loads((tmp_path / "model" / "config.json").read_text())
    tensors = stored_tensors(tmp_path / "model")
    layers, groups = values["num_hidden_layers"], values["num_hidden_groups"]
    assert groups == (layers if copied or changes.get("parameter_sharing") == "none" else config.num_hidden_groups)
    queries = {name for name in tensors if name.endswith("0.attention.query.weight")}
    assert queries == {f"{HF_BLOCK.format(group, 0)}.attention.query.weight" for group in range(groups)}
    again = hugging_face.read(tmp_path / "model")
    expected, found = outputs(config, checkpoint.weights), outputs(again.config, again.weights)
    for name in ("sequence_output", "pooled_output", "masked_lm_logits", "sentence_order_logits"):
        np.testing.assert_array_equal(found[name], expected[name])


def test_equal_widths_without_projection_get_the_identity_and_lose_it_again(tmp_path):
    config = config_of(embedding_size=24).replace(embedding_projection=None)
    checkpoint = checkpoint_of(config)
    (note,) = hugging_face.write(checkpoint, tmp_path / "model")
    assert "identity" in note
    tensors = stored_tensors(tmp_path / "model")
    np.testing.assert_array_equal(tensors["albert.encoder.embedding_hidden_mapping_in.weight"], np.eye(24))
    np.testing.assert_array_equal(tensors["albert.encoder.embedding_hidden_mapping_in.bias"], np.zeros(24))
    again = hugging_face.read(tmp_path / "model")
    assert again.config == config and len(again.notes) == 1 and "identity" in again.notes[0]
    assert_same(again.weights, checkpoint.weights)
    hugging_face.write(again, tmp_path / "again")
    hugging_face.write(again, tmp_path / "again")  # a model that is there already is replaced
    assert_same(stored_tensors(tmp_path / "again"), tensors)


@pytest.mark.parametrize("change", ["kernel", "bias"])
def test_a_real_projection_between_equal_widths_stays(tmp_path, change):
    values = config_values("AlbertModel", embedding_size=24)
    tensors = random_tensors("AlbertModel", values)
    if change == "bias":
        tensors["encoder.embedding_hidden_mapping_in.weight"] = np.eye(24, dtype=np.float32)
    checkpoint = hugging_face.read(write_directory(tmp_path / "theirs", values, tensors))
    assert checkpoint.config.embedding_projection is True and not checkpoint.notes
    assert hugging_face.write(checkpoint, tmp_path / "ours") == ()
    assert_same(stored_tensors(tmp_path / "ours"), tensors)


def test_what_cannot_be_written_is_refused_by_name(tmp_path):
    config = config_of()
    with pytest.raises(InputError, match="answerable_span"):
        hugging_face.write(checkpoint_of(config, HeadConfig("answerable_span")), tmp_path / "a")
    with pytest.raises(InputError, match="no sizes"):
        hugging_face.write(checkpoint_of(config).replace(config=None), tmp_path / "a")
    with pytest.raises(InputError, match="no output_weights and 1 others, which AlbertForSequenceClassification needs"):
        hugging_face.write(checkpoint_of(config).replace(head=HeadConfig("classifier", 2)), tmp_path / "a")
    assert not (tmp_path / "a").exists()


# ---- the vocabulary


def test_sentencepiece_travels(tmp_path):
    with open(toy_vocabulary.number_model(), "rb") as file:
        vocabulary = Vocabulary("30k-clean.model", file.read(), do_lower_case=False, keep_accents=True)
    hugging_face.write(checkpoint_of(config_of(), HeadConfig("encoder"), vocabulary=vocabulary), tmp_path / "model")
    assert (tmp_path / "model" / "spiece.model").read_bytes() == vocabulary.data
    settings = json.loads((tmp_path / "model" / "tokenizer_config.json").read_text())
    assert settings["tokenizer_class"] == "AlbertTokenizer" and settings["model_max_length"] == 16
    assert (settings["cls_token"], settings["pad_token"], settings["do_lower_case"]) == ("[CLS]", "<pad>", False)
    assert hugging_face.read(tmp_path / "model").vocabulary == Vocabulary(
        "spiece.model", vocabulary.data, do_lower_case=False, keep_accents=True
    )
    values = json.loads((tmp_path / "model" / "config.json").read_text())
    assert (values["pad_token_id"], values["bos_token_id"], values["eos_token_id"]) == (0, 2, 3)


def test_wordpiece_travels(tmp_path):
    with open(toy_vocabulary.wordpiece_vocabulary(), "rb") as file:
        vocabulary = Vocabulary("vocab.txt", file.read(), keep_accents=True)
    hugging_face.write(checkpoint_of(config_of(), HeadConfig("encoder"), vocabulary=vocabulary), tmp_path / "model")
    settings = json.loads((tmp_path / "model" / "tokenizer_config.json").read_text())
    assert settings["tokenizer_class"] == "BertTokenizer" and settings["strip_accents"] is False
    values = json.loads((tmp_path / "model" / "config.json").read_text())
    pieces = toy_vocabulary.WORDPIECES
    assert [values[f"{key}_token_id"] for key in ("pad", "bos", "eos")] == [
        pieces.index(piece) for piece in ("[PAD]", "[CLS]", "[SEP]")
    ]
    assert hugging_face.read(tmp_path / "model").vocabulary == vocabulary
    settings = {"do_lower_case": True, "strip_accents": False, "tokenizer_class": "BertTokenizer"}
    (tmp_path / "model" / "tokenizer_config.json").write_text(json.dumps(settings))
    assert hugging_face.read(tmp_path / "model").vocabulary == vocabulary


# ---- files that are missing or damaged


def test_absent_and_damaged_files_are_named(tmp_path):
    with pytest.raises(InputError, match="nothing holds no Hugging Face weights"):
        hugging_face_tensors.find_file(str(tmp_path / "nothing"))
    (tmp_path / "flax_model.msgpack").touch()
    with pytest.raises(InputError, match="flax_model.msgpack alone"):
        hugging_face.read(tmp_path)
    values = config_values("AlbertModel")
    path = write_directory(tmp_path / "a", values, random_tensors("AlbertModel", values)) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="cannot read .*model.safetensors"):
        hugging_face.read(tmp_path / "a")
    (tmp_path / "a" / "config.json").write_text("{")
    with pytest.raises(InputError, match="config.json is not a JSON file"):
        hugging_face.read(tmp_path / "a")
    (tmp_path / "tf_model.h5").write_bytes(b"no HDF5")
    with pytest.raises(InputError, match="cannot read .*tf_model.h5"):
        hugging_face.read(tmp_path)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ({"weight_map": {"a": "../model.safetensors"}}, "shards must lie beside"),
        ({"weight_map": {"a": "model-00001-of-00001.safetensors"}}, "names the shard model-00001"),
        ({"weight_map": {}}, "no 'weight_map'"),
        ([], "no 'weight_map'"),
    ],
)
def test_a_broken_index_is_told(tmp_path, index, message):
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(InputError, match=message):
        hugging_face.read(tmp_path)


def test_a_bin_without_pytorch_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(hugging_face_tensors, "_has_torch", lambda: False)
    (tmp_path / "pytorch_model.bin").touch()
    with pytest.raises(InputError, match="pip install torch, or take the model's .safetensors"):
        hugging_face.read(tmp_path)
    values = config_values("AlbertModel")
    tensors = random_tensors("AlbertModel", values)
    write_h5(tmp_path / "tf_model.h5", "AlbertModel", tensors)  # which can be read without it
    assert_same(
        hugging_face.read(tmp_path).weights,
        hugging_face.read(write_directory(tmp_path / "pt", values, tensors)).weights,
    )
