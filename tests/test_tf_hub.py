"""TF-Hub modules in both forms: the loaded model computes what they compute, and their graph tells the sizes."""

from __future__ import annotations

import os
import re
import shutil
import tarfile

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import run_pretraining
from albert_tf.errors import InputError
from albert_tf.formats import tf_hub
from albert_tf.models import AlbertModel
from tests import checkpoint_files, tf1_files
from tests.tf_models_encoder import SPECIFICATION, Encoder

ARGUMENTS = ("input_ids", "input_mask", "segment_ids")
GROUPED = tf1_files.SMALL.replace(inner_group_num=2)
SHARED = tf1_files.SMALL.replace(num_hidden_groups=1, num_hidden_layers=11)


def assert_computes(checkpoint, expected, batch):
    model = AlbertModel(checkpoint.config)
    checkpoint_files.assign(model, checkpoint.weights)
    outputs = model({name: tf.constant(value) for name, value in batch.items()})
    for name in ("sequence_output", "pooled_output"):
        np.testing.assert_allclose(outputs[name], expected[name], atol=2e-5, rtol=1e-5)


def save_tf1_module(directory, config, scope="", **options):
    """A module as the released code exports one; returns what it computes for `checkpoint_files.encoder_inputs`."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(5)
        inputs = {name: v1.placeholder(tf.int32, [None, None], name) for name in ARGUMENTS}
        with v1.variable_scope(scope) if scope else v1.name_scope("whole"):
            sequence_output, pooled_output = tf1_files.build_graph(config, **inputs, **options)
        outputs = {"sequence_output": sequence_output, "pooled_output": pooled_output}
        session.run(v1.global_variables_initializer())
        computed = session.run(
            outputs, {inputs[name]: value for name, value in checkpoint_files.encoder_inputs(config).items()}
        )
        information = {"do_lower_case": v1.saved_model.build_tensor_info(tf.constant(False))}
        signatures = {
            "tokens": v1.saved_model.predict_signature_def(inputs, outputs),
            "tokenization_info": v1.saved_model.build_signature_def(outputs=information),
        }
        builder = v1.saved_model.builder.SavedModelBuilder(str(directory))
        builder.add_meta_graph_and_variables(session, [], signatures)
        builder.save()
    (directory / "tfhub_module.pb").write_bytes(b"\x08\x03")
    (directory / "assets").mkdir(exist_ok=True)
    (directory / "assets" / "30k-clean.model").write_bytes(b"pieces")
    return computed


@pytest.mark.parametrize("scope", ["", "module"])
@pytest.mark.parametrize("config", [GROUPED, SHARED], ids=["groups", "shared"])
def test_a_tf1_module(tmp_path, config, scope):
    computed = save_tf1_module(tmp_path / "hub", config, scope)
    checkpoint = tf_hub.read(tmp_path / "hub")
    assert checkpoint.config == config and checkpoint.head.kind == "encoder"
    assert any("dropout" in note for note in checkpoint.notes)
    assert (checkpoint.vocabulary.data, checkpoint.vocabulary.do_lower_case) == (b"pieces", False)
    assert_computes(checkpoint, computed, checkpoint_files.encoder_inputs(config))


def test_heads_that_only_the_scale_of_the_scores_tells(tmp_path):
    computed = save_tf1_module(tmp_path / "hub", SHARED, splits_kernels=False)
    checkpoint = tf_hub.read(tmp_path / "hub")
    assert checkpoint.config == SHARED
    assert_computes(checkpoint, computed, checkpoint_files.encoder_inputs(SHARED))


@pytest.fixture(scope="module")
def tf2_module(tmp_path_factory):
    """A TF2-form module of 11 layers that share, with the masked-LM head; and what it computes."""
    directory = tmp_path_factory.mktemp("tf2") / "hub"
    encoder = Encoder(SHARED, masked_lm=True)
    encoder.do_lower_case = tf.Variable(False, trainable=False)
    encoder.vocabulary = tf.saved_model.Asset(_file(directory.parent / "spm.model"))
    tf.saved_model.save(encoder, str(directory))
    return directory, encoder(**checkpoint_files.encoder_inputs(SHARED)), encoder


def _file(path):
    path.write_bytes(b"pieces")
    return str(path)


def test_a_tf2_module(tf2_module):
    directory, computed, encoder = tf2_module
    checkpoint = tf_hub.read(directory)
    assert checkpoint.config == SHARED and checkpoint.head.kind == "masked_lm"
    assert (checkpoint.vocabulary.name, checkpoint.vocabulary.do_lower_case) == ("spm.model", False)
    assert list(checkpoint.left_out) == ["do_lower_case"]
    assert_computes(checkpoint, computed, checkpoint_files.encoder_inputs(SHARED))
    kernel = encoder.variable("bert/cls/predictions/transform/dense/kernel")
    np.testing.assert_array_equal(checkpoint.weights["cls/predictions/transform/dense/kernel"], kernel)


def test_an_archive_of_a_module(tf2_module, tmp_path):
    with tarfile.open(tmp_path / "hub.tar.gz", "w:gz") as tar:
        for name in os.listdir(tf2_module[0]):
            tar.add(tf2_module[0] / name, arcname=name)
    assert tf_hub.read(tmp_path / "hub.tar.gz").config == SHARED


@pytest.mark.parametrize("activation", ["gelu_erf", "relu", "tanh"])
def test_the_graph_tells_activation_and_epsilon(tmp_path, activation):
    config = SHARED.replace(hidden_act=activation, layer_norm_eps=1e-6, num_hidden_layers=2)
    encoder = Encoder(config)
    tf.saved_model.save(encoder, str(tmp_path / "hub"))
    checkpoint = tf_hub.read(tmp_path / "hub")
    assert checkpoint.config == config
    assert_computes(
        checkpoint, encoder(**checkpoint_files.encoder_inputs(config)), checkpoint_files.encoder_inputs(config)
    )


def test_each_layer_its_own_is_a_bert(tmp_path):
    config = SHARED.replace(embedding_size=12, parameter_sharing="none")
    encoder = Encoder(config)
    tf.saved_model.save(encoder, str(tmp_path / "hub"))
    checkpoint = tf_hub.read(tmp_path / "hub")
    assert checkpoint.config == config and any("BERT" in note for note in checkpoint.notes)
    assert_computes(
        checkpoint, encoder(**checkpoint_files.encoder_inputs(config)), checkpoint_files.encoder_inputs(config)
    )


class Variables(tf.Module):
    """The variables of an encoder without its functions: a graph that tells nothing."""

    def __init__(self, config):
        super().__init__()
        self.kept = Encoder(config).kept


def test_layers_that_the_graph_does_not_tell(tmp_path):
    tf.saved_model.save(Variables(SHARED), str(tmp_path / "hub"))
    with pytest.raises(InputError, match="hub does not tell its num_hidden_layers .* give a config"):
        tf_hub.read(tmp_path / "hub")
    assert tf_hub.read(tmp_path / "hub", SHARED).config == SHARED


def test_layers_of_a_released_size(tmp_path):
    sizes = {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12}
    tf.saved_model.save(Variables(SHARED.replace(**sizes)), str(tmp_path / "hub"))
    checkpoint = tf_hub.read(tmp_path / "hub")
    assert checkpoint.config.num_hidden_layers == 12
    for guess in ("number of layers, 12", "hidden_act", "layer_norm_eps .* 1e-12", "dropout"):
        assert any(re.search(guess, note) for note in checkpoint.notes), guess


def test_a_given_config_counts_where_the_module_tells_nothing(tmp_path):
    tf.saved_model.save(Variables(SHARED), str(tmp_path / "hub"))
    given = SHARED.replace(
        num_attention_heads=4,
        num_hidden_layers=5,
        hidden_act="relu",
        layer_norm_eps=1e-6,
        hidden_dropout_prob=0.2,
        attention_probs_dropout_prob=0.3,
        classifier_dropout_prob=0.4,
        initializer_range=0.05,
    )
    checkpoint = tf_hub.read(tmp_path / "hub", given)
    assert checkpoint.config == given.replace(num_attention_heads=3)  # the shape of the query tells the heads
    assert checkpoint.notes == ()


@pytest.mark.parametrize(
    "told",
    [{"num_attention_heads": 2}, {"hidden_act": "relu"}, {"layer_norm_eps": 1e-5}, {"num_hidden_layers": 5}],
    ids=lambda changes: next(iter(changes)),
)
def test_what_the_module_tells_stands_against_a_given_config(tf2_module, told):
    rates = {"hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.3, "classifier_dropout_prob": 0.4}
    given = SHARED.replace(**told, **rates)
    assert tf_hub.read(tf2_module[0], given).config == SHARED.replace(**rates)
    if "num_hidden_layers" in told:
        report = AlbertModel.from_pretrained(tf2_module[0], config=given).load_report
        assert "a model of 11 layers starts one of 5 layers" in report.notes
    else:
        with pytest.raises(InputError, match=f"{next(iter(told))} .*other numbers"):
            AlbertModel.from_pretrained(tf2_module[0], config=given)


@pytest.mark.parametrize("sharing, groups", [("none", 1), ("none", 3), ("all", 3)])
def test_a_given_config_that_says_the_same_in_other_words(tmp_path, sharing, groups):
    config = SHARED.replace(embedding_size=12, parameter_sharing="none", num_hidden_layers=3)
    tf.saved_model.save(Encoder(config), str(tmp_path / "hub"))
    given = config.replace(parameter_sharing=sharing, num_hidden_groups=groups, embedding_projection=False)
    assert tf_hub.read(tmp_path / "hub", given).config == given


def test_pretraining_begins_from_a_module_that_its_config_completes(tmp_path):
    encoder = Variables(SHARED)
    tf.saved_model.save(encoder, str(tmp_path / "hub"))
    model = AlbertModel(SHARED)
    run_pretraining.load_weights(str(tmp_path / "hub"), model.named_variables(), SHARED)
    (words,) = [value for value in encoder.kept if value.name.startswith("word_embeddings/")]
    np.testing.assert_array_equal(model.named_variables()["bert/embeddings/word_embeddings"], words)


class WithSomethingElse(Encoder):
    """An encoder whose graph has a rectifier that is not its activation."""

    @tf.function(input_signature=[SPECIFICATION] * 3)
    def __call__(self, input_ids, input_mask, segment_ids):
        outputs = super().__call__(tf.nn.relu(input_ids), input_mask, segment_ids)
        return {name: tf.nn.relu(value + 100.0) - 100.0 for name, value in outputs.items()}


def test_two_activations_tell_nothing(tmp_path):
    config = SHARED.replace(num_hidden_layers=2)
    tf.saved_model.save(WithSomethingElse(config), str(tmp_path / "hub"))
    checkpoint = tf_hub.read(tmp_path / "hub")
    assert checkpoint.config == config
    assert any("hidden_act is not told" in note and "gelu, relu" in note for note in checkpoint.notes)
    given = config.replace(hidden_act="gelu_erf")
    assert tf_hub.read(tmp_path / "hub", given).config == given


class Fused(Encoder):
    """An encoder whose LayerNorms are fused operations, as Keras traces those of larger epsilons."""

    def norm(self, x, name):
        shape = tf.shape(x)
        rows = shape[0] * shape[1]
        normal, _, _ = tf.compat.v1.nn.fused_batch_norm(
            tf.reshape(x, [1, rows, shape[2], 1]),
            scale=tf.ones([rows]),
            offset=tf.zeros([rows]),
            epsilon=self.config.layer_norm_eps,
            data_format="NCHW",
        )
        normal = tf.ensure_shape(tf.reshape(normal, shape), x.shape)
        return normal * self.variable(f"{name}/gamma") + self.variable(f"{name}/beta")


@pytest.mark.parametrize("epsilon", [1e-3, 1e-4])  # 1e-4 is the operation's default, which is not stored
def test_the_epsilon_of_fused_norms(tmp_path, epsilon):
    config = SHARED.replace(num_hidden_layers=2, layer_norm_eps=epsilon)
    encoder = Fused(config)
    tf.saved_model.save(encoder, str(tmp_path / "hub"))
    checkpoint = tf_hub.read(tmp_path / "hub")
    assert checkpoint.config == config
    assert_computes(
        checkpoint, encoder(**checkpoint_files.encoder_inputs(config)), checkpoint_files.encoder_inputs(config)
    )


def test_two_variables_of_one_name_are_refused(tmp_path):
    encoder = Encoder(SHARED.replace(num_hidden_layers=2))
    encoder.kept.append(tf.Variable(tf.zeros([12, 12]), name="transformer/self_attention_output/kernel"))
    tf.saved_model.save(encoder, str(tmp_path / "hub"))
    with pytest.raises(InputError, match="hub has two values for .*/attention_1/output/dense/kernel"):
        tf_hub.read(tmp_path / "hub")


def test_what_is_no_module(tf2_module, tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*saved_model\.pb"):
        tf_hub.read(tmp_path)
    module = shutil.copytree(tf2_module[0], tmp_path / "hub")
    (module / "saved_model.pb").write_bytes(b"\xff\xff\xff")
    with pytest.raises(InputError, match=r"saved_model\.pb is damaged"):
        tf_hub.read(module)
    shutil.copy(tf2_module[0] / "saved_model.pb", module / "saved_model.pb")
    (module / "variables" / "variables.index").unlink()
    with pytest.raises(InputError, match=r"variables\.index"):
        tf_hub.read(module)
    other = tf.Module()
    other.weight = tf.Variable([1.0], name="something")
    tf.saved_model.save(other, str(tmp_path / "other"))
    with pytest.raises(InputError, match="other is a SavedModel, but not of an ALBERT .* something"):
        tf_hub.read(tmp_path / "other")
