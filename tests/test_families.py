"""BERTs, the other family called ALBERT, and scopes in front of the names."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import weight_names
from albert_tf.errors import InputError
from albert_tf.formats import families, tf1, tf1_writing
from albert_tf.head_config import HeadConfig
from albert_tf.models import AlbertModel
from tests import checkpoint_files, tf1_files

BERT_CONFIG = {
    "attention_probs_dropout_prob": 0.1,
    "directionality": "bidi",
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 12,
    "initializer_range": 0.02,
    "intermediate_size": 20,
    "max_position_embeddings": 16,
    "num_attention_heads": 3,
    "num_hidden_layers": 11,
    "pooler_type": "first_token_transform",
    "type_vocab_size": 2,
    "vocab_size": 40,
}


def bert_weights(seed=0):
    """Names and shapes of a BERT as its released code makes them, with random values."""
    h, i, generator = 12, 20, np.random.default_rng(seed)
    shapes = {
        "bert/embeddings/word_embeddings": (40, h),
        "bert/embeddings/token_type_embeddings": (2, h),
        "bert/embeddings/position_embeddings": (16, h),
    }

    def layer_norm(prefix):
        shapes.update({f"{prefix}/LayerNorm/gamma": (h,), f"{prefix}/LayerNorm/beta": (h,)})

    def dense(prefix, rows, columns):
        shapes.update({f"{prefix}/kernel": (rows, columns), f"{prefix}/bias": (columns,)})

    layer_norm("bert/embeddings")
    for layer in range(11):
        prefix = f"bert/encoder/layer_{layer}"
        for part in ("query", "key", "value"):
            dense(f"{prefix}/attention/self/{part}", h, h)
        dense(f"{prefix}/attention/output/dense", h, h)
        layer_norm(f"{prefix}/attention/output")
        dense(f"{prefix}/intermediate/dense", h, i)
        dense(f"{prefix}/output/dense", i, h)
        layer_norm(f"{prefix}/output")
    dense("bert/pooler/dense", h, h)
    dense("cls/predictions/transform/dense", h, h)
    layer_norm("cls/predictions/transform")
    shapes.update({"cls/predictions/output_bias": (40,)})
    shapes.update({"cls/seq_relationship/output_weights": (2, h), "cls/seq_relationship/output_bias": (2,)})
    return {name: generator.normal(size=shape, scale=0.4).astype(np.float32) for name, shape in shapes.items()}


def bert_forward(weights, input_ids, input_mask, segment_ids):
    """The last layer of a BERT from its definition, in float64: [B,S,H]."""
    weights = {name: value.astype(np.float64) for name, value in weights.items()}

    def dense(x, prefix):
        return x @ weights[f"{prefix}/kernel"] + weights[f"{prefix}/bias"]

    def layer_norm(x, prefix):
        centred = x - x.mean(-1, keepdims=True)
        normed = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return normed * weights[f"{prefix}/LayerNorm/gamma"] + weights[f"{prefix}/LayerNorm/beta"]

    embeddings = "bert/embeddings"
    x = weights[f"{embeddings}/word_embeddings"][input_ids]
    x = x + weights[f"{embeddings}/token_type_embeddings"][segment_ids]
    x = layer_norm(x + weights[f"{embeddings}/position_embeddings"][: x.shape[1]], embeddings)
    for layer in range(11):
        prefix = f"bert/encoder/layer_{layer}"
        heads = [
            dense(x, f"{prefix}/attention/self/{part}").reshape(*x.shape[:2], 3, 4).transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        ]
        scores = heads[0] @ heads[1].transpose(0, 1, 3, 2) / 2.0 - 10000.0 * (1 - input_mask[:, None, None, :])
        probabilities = np.exp(scores - scores.max(-1, keepdims=True))
        probabilities /= probabilities.sum(-1, keepdims=True)
        context = (probabilities @ heads[2]).transpose(0, 2, 1, 3).reshape(x.shape)
        x = layer_norm(x + dense(context, f"{prefix}/attention/output/dense"), f"{prefix}/attention/output")
        inner = dense(x, f"{prefix}/intermediate/dense")
        inner = 0.5 * inner * (1 + np.tanh(np.sqrt(2 / np.pi) * (inner + 0.044715 * inner**3)))
        x = layer_norm(x + dense(inner, f"{prefix}/output/dense"), f"{prefix}/output")
    return x


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    directory = tmp_path_factory.mktemp("bert")
    weights = bert_weights()
    checkpoint_files.write_tf1(directory / "bert_model.ckpt", {**weights, "global_step": np.int64(3)})
    (directory / "bert_config.json").write_text(json.dumps(BERT_CONFIG))
    (directory / "vocab.txt").write_text("[PAD]\n")
    return directory, weights


def test_a_bert_computes_what_its_definition_says(bert):
    directory, weights = bert
    checkpoint = tf1.read(directory)
    assert (checkpoint.config.embedding_size, checkpoint.config.parameter_sharing) == (12, "none")
    assert checkpoint.head == HeadConfig("pretraining") and checkpoint.vocabulary.name == "vocab.txt"
    assert any("BERT" in note for note in checkpoint.notes)
    assert set(checkpoint.weights) == set(weight_names.variable_shapes(checkpoint.config))
    model = AlbertModel(checkpoint.config)
    checkpoint_files.assign(model, checkpoint.weights)
    batch = checkpoint_files.encoder_inputs(checkpoint.config)
    output = model({name: tf.constant(value) for name, value in batch.items()})["sequence_output"]
    np.testing.assert_allclose(output, bert_forward(weights, **batch), atol=2e-5, rtol=1e-5)


def test_layer_10_is_the_eleventh(bert):
    directory, weights = bert
    read = tf1.read(directory).weights
    for layer in (1, 2, 10):
        np.testing.assert_array_equal(
            read[f"bert/encoder/transformer/group_{layer}/inner_group_0/LayerNorm/beta"],
            weights[f"bert/encoder/layer_{layer}/attention/output/LayerNorm/beta"],
        )
        np.testing.assert_array_equal(
            read[f"bert/encoder/transformer/group_{layer}/inner_group_0/LayerNorm_1/beta"],
            weights[f"bert/encoder/layer_{layer}/output/LayerNorm/beta"],
        )


def test_a_bert_written_as_tf1_is_an_albert_of_as_many_groups(bert, tmp_path):
    tf1_writing.write(tf1.read(bert[0]), tmp_path / "out")
    config = tf1.read(tmp_path / "out").config
    assert (config.num_hidden_groups, config.parameter_sharing, config.embedding_size) == (11, "all", 12)


def test_a_config_of_another_checkpoint_beside_a_bert(bert):
    with pytest.raises(InputError, match=r"bert_config\.json has embedding_size 128"):
        families.config_from({**BERT_CONFIG, "embedding_size": 128}, True, "bert_config.json")


@pytest.mark.parametrize(
    "name", ["bert/embeddings/word_embeddings_2", "bert/encoder/layer_shared/intermediate/dense/kernel"]
)
@pytest.mark.parametrize("scope", ["", "module/"])
def test_the_other_family_is_refused_by_name(name, scope):
    with pytest.raises(InputError, match="model.ckpt is not a google-style ALBERT checkpoint") as error:
        families.translate([f"{scope}bert/embeddings/word_embeddings", scope + name], "model.ckpt")
    assert name in str(error.value) and "released by Google" in str(error.value)


RELEASED = tuple(weight_names.variable_shapes(tf1_files.SMALL))


@pytest.mark.parametrize("scope", ["module/", "tower/module/"])
def test_a_scope_in_front_is_taken_away(scope):
    translation = families.translate([*(scope + name for name in RELEASED), "my_head/kernel"], "x")
    assert translation.names == {**{scope + name: name for name in RELEASED}, "my_head/kernel": "my_head/kernel"}
    assert scope in translation.notes[0] and not translation.is_bert


@pytest.mark.parametrize("scope, outer", [("albert/", ""), ("my/encoder_scope/", "my/"), ("", "")])
def test_an_encoder_scope_of_another_name_is_read_as_bert(scope, outer):
    names = {(scope + n[len("bert/") :] if n.startswith("bert/") else outer + n): n for n in RELEASED}
    translation = families.translate(names, "x")
    assert translation.names == names and len(translation.notes) == 1


def test_a_scope_that_not_all_encoder_names_have_stays(tmp_path):
    names = [f"module/{name}" if "embeddings" in name else name for name in RELEASED]
    translation = families.translate(names, "x")
    assert not [name for name in RELEASED if "pooler" in name and translation.names[name] != name]
    two = [f"{tower}/{name}" for tower in ("a", "b") for name in RELEASED]
    assert families.translate(two, "x").names == {name: name for name in two}


def test_released_and_unknown_names_are_kept():
    for names in (RELEASED, ("electra/x", "layer_3/kernel")):
        translation = families.translate(names, "x")
        assert translation == families.Translation({name: name for name in names}, False, ())
