"""Modules that tf-models exports for TF-Hub, against the loaded model: the same numbers from the same weights.

Opt-in: skips where tf-models-official is not installed.
"""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.formats import tf_hub
from albert_tf.models import AlbertForPreTraining, AlbertModel

encoders = pytest.importorskip("official.nlp.configs.encoders", exc_type=ImportError)
export_tfhub_lib = pytest.importorskip("official.nlp.tools.export_tfhub_lib", exc_type=ImportError)
bert_configs = pytest.importorskip("official.legacy.bert.configs", exc_type=ImportError)

SIZES = {
    "base": {},
    "small": {"embedding_width": 24, "hidden_size": 48, "num_layers": 5, "num_attention_heads": 4},
    "same width": {"embedding_width": 48, "hidden_size": 48, "num_layers": 3, "num_attention_heads": 2},
    "relu": {"hidden_size": 48, "num_layers": 2, "num_attention_heads": 4, "hidden_activation": "relu"},
    "dropout": {"hidden_size": 24, "num_layers": 2, "num_attention_heads": 4, "dropout_rate": 0.1},
}


def export(directory, with_mlm, **which):
    """Exports a module with random weights through a checkpoint, as the tool for TF-Hub does."""
    _, model = export_tfhub_lib._create_model(with_mlm=with_mlm, **which)
    generator = np.random.default_rng(3)
    for variable in model.variables:  # of a size that keeps hidden states near those of a trained model
        scale = 0.05 if len(variable.shape) > 1 else 0.2
        offset = 1.0 if "gamma" in variable.name else 0.0
        variable.assign(offset + generator.normal(size=variable.shape, scale=scale))
    items = model.checkpoint_items if with_mlm else {"model": model, "encoder": model}
    path = tf.train.Checkpoint(**items).save(str(directory / "ckpt"))
    (directory / "vocab.txt").write_text("[PAD]\n")
    export_tfhub_lib.export_model(
        str(directory / "hub"),
        model_checkpoint_path=path,
        with_mlm=with_mlm,
        vocab_file=str(directory / "vocab.txt"),
        do_lower_case=False,
        **which,
    )
    return directory / "hub"


def batches(vocab_size):
    """The same ragged batch under both libraries' names."""
    generator = np.random.default_rng(4)
    ids = generator.integers(0, vocab_size, (4, 40)).astype(np.int32)
    mask = (np.arange(40) < np.array([[40], [7], [23], [1]])).astype(np.int32)
    segments = (np.arange(40) >= np.array([[20], [3], [40], [0]])).astype(np.int32)
    theirs = {"input_word_ids": ids, "input_mask": mask, "input_type_ids": segments}
    ours = {"input_ids": ids, "input_mask": mask, "segment_ids": segments}
    return [{name: tf.constant(value) for name, value in batch.items()} for batch in (theirs, ours)]


def assign(model, weights, without=()):
    for name, variable in model.named_variables().items():
        if not name.startswith(without or "-"):
            variable.assign(weights[name])


@pytest.mark.parametrize("size", SIZES)
def test_an_exported_albert_encoder(tmp_path, size):
    values = {"vocab_size": 300, "type_vocab_size": 2, **SIZES[size]}
    config = encoders.EncoderConfig(type="albert", albert=encoders.AlbertEncoderConfig(**values))
    path = export(tmp_path, False, encoder_config=config)
    checkpoint = tf_hub.read(path)
    assert checkpoint.config.num_hidden_layers == values.get("num_layers", 12)
    assert checkpoint.config.hidden_act == values.get("hidden_activation", "gelu")
    assert checkpoint.config.hidden_dropout_prob == values.get("dropout_rate", 0.0)
    assert checkpoint.vocabulary.do_lower_case is False
    model = AlbertModel(checkpoint.config)
    assign(model, checkpoint.weights)
    theirs, ours = batches(300)
    expected, outputs = tf.saved_model.load(str(path))(theirs), model(ours)
    for name in ("sequence_output", "pooled_output"):
        np.testing.assert_allclose(outputs[name], expected[name], rtol=0, atol=2e-5)
    for one, other in zip(outputs["all_layer_outputs"], expected["encoder_outputs"]):
        np.testing.assert_allclose(one, other, rtol=0, atol=2e-5)


def test_an_exported_masked_lm_head(tmp_path):
    values = {"vocab_size": 300, "type_vocab_size": 2, **SIZES["small"]}
    config = encoders.EncoderConfig(type="albert", albert=encoders.AlbertEncoderConfig(**values))
    path = export(tmp_path, True, encoder_config=config)
    checkpoint = tf_hub.read(path)
    assert checkpoint.head.kind == "masked_lm"
    model = AlbertForPreTraining(checkpoint.config)
    assign(model, checkpoint.weights, without="cls/seq_relationship")
    theirs, ours = batches(300)
    positions = tf.constant([[0, 3, 39], [6, 1, 0], [2, 22, 5], [0, 0, 0]])
    expected = tf.saved_model.load(str(path)).mlm({**theirs, "masked_lm_positions": positions})
    outputs = model({**ours, "masked_lm_positions": positions})
    np.testing.assert_allclose(outputs["masked_lm_logits"], expected["mlm_logits"], rtol=0, atol=5e-5)


def test_an_exported_bert_encoder(tmp_path):
    config = bert_configs.BertConfig(
        vocab_size=300,
        hidden_size=48,
        num_hidden_layers=11,
        num_attention_heads=4,
        intermediate_size=96,
        type_vocab_size=2,
    )
    path = export(tmp_path, False, bert_config=config)
    checkpoint = tf_hub.read(path)
    assert (checkpoint.config.num_hidden_layers, checkpoint.config.parameter_sharing) == (11, "none")
    model = AlbertModel(checkpoint.config)
    assign(model, checkpoint.weights)
    theirs, ours = batches(300)
    expected, outputs = tf.saved_model.load(str(path))(theirs), model(ours)
    np.testing.assert_allclose(outputs["sequence_output"], expected["sequence_output"], rtol=0, atol=2e-5)
    np.testing.assert_allclose(outputs["pooled_output"], expected["pooled_output"], rtol=0, atol=2e-5)
