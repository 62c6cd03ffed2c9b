"""`--init_checkpoint`: pre-training begins from other people's files, also with more layers and with less sharing."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import run_pretraining
from albert_tf.errors import InputError
from albert_tf.formats import hugging_face
from albert_tf.formats.checkpoint import Checkpoint
from albert_tf.head_config import HeadConfig
from albert_tf.models import AlbertForPreTraining
from tests import oracle
from tests.checkpoint_files import encoder_inputs, random_weights, small_config, some_inputs, write_tf1
from tests.tf_models_encoder import Encoder

SOURCE = small_config(num_hidden_layers=2)
TARGETS = [
    SOURCE,
    SOURCE.replace(num_hidden_layers=4, hidden_dropout_prob=0.2),
    SOURCE.replace(parameter_sharing="none"),
    SOURCE.replace(num_hidden_layers=4, parameter_sharing="none"),
    SOURCE.replace(num_hidden_layers=4, parameter_sharing="ffn"),
    SOURCE.replace(num_hidden_layers=4, num_hidden_groups=2, parameter_sharing="attention"),
]
INPUTS = some_inputs(SOURCE)
FORMS = ["tf1", "hugging_face", "hub"]
SENTENCE_HEAD = ["cls/seq_relationship/output_weights", "cls/seq_relationship/output_bias"]


@pytest.fixture(scope="module", params=FORMS)
def source(request, tmp_path_factory):
    """The path of a shared model of two layers, and what it computes with its block applied so many times."""
    directory = tmp_path_factory.mktemp(request.param)
    if request.param == "hub":
        tf.saved_model.save(Encoder(SOURCE, masked_lm=True), str(directory))
        inputs = encoder_inputs(SOURCE)
        return directory, lambda layers: Encoder(SOURCE.replace(num_hidden_layers=layers))(**inputs)
    weights, head = random_weights(SOURCE), HeadConfig("pretraining")
    if request.param == "tf1":
        write_tf1(directory / "model.ckpt-best", {**weights, "global_step": np.int64(7)})
        SOURCE.to_json_file(directory / "albert_config.json")
    else:
        hugging_face.write(Checkpoint("x", "model", weights, SOURCE, head), directory)
    return directory, lambda layers: oracle.forward(SOURCE.replace(num_hidden_layers=layers), weights, INPUTS)


@pytest.mark.parametrize(
    "target", TARGETS, ids=lambda c: f"{c.num_hidden_layers}-{c.parameter_sharing}-{c.num_hidden_groups}"
)
def test_pretraining_begins_with_what_the_source_computes(source, target, capsys):
    path, computed_by_source = source
    model = AlbertForPreTraining(target)
    before = {name: variable.numpy() for name, variable in model.named_variables().items()}
    run_pretraining.load_weights(str(path), model.named_variables(), target)
    told = capsys.readouterr().out
    expected = computed_by_source(target.num_hidden_layers)
    outputs = model({name: tf.constant(value) for name, value in INPUTS.items()}, training=False)
    for name in ("sequence_output", "pooled_output", *({"masked_lm_logits", "sentence_order_logits"} & set(expected))):
        np.testing.assert_allclose(outputs[name], expected[name], atol=3e-5, rtol=1e-5, err_msg=name)
    at_random = [] if "sentence_order_logits" in expected else SENTENCE_HEAD
    kept = [name for name, variable in model.named_variables().items() if np.array_equal(variable, before[name])]
    assert kept == at_random and f"{len(at_random)} missing" in told and "0 not used" in told
    assert ("a model of 2 layers starts one of 4 layers" in told) == (target.num_hidden_layers == 4)
    assert ("is copied to groups" in told) == (target.parameter_sharing != "all" or target.num_hidden_groups > 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": 48}, "hidden_size|has shape"),
        ({"num_attention_heads": 4}, "num_attention_heads"),
        ({"hidden_act": "relu"}, "hidden_act"),
    ],
)
def test_another_models_weights_are_refused(source, changes, message):
    target = SOURCE.replace(**changes)
    model = AlbertForPreTraining(target)
    before = {name: variable.numpy() for name, variable in model.named_variables().items()}
    with pytest.raises(InputError, match=message):
        run_pretraining.load_weights(str(source[0]), model.named_variables(), target)
    for name, variable in model.named_variables().items():
        np.testing.assert_array_equal(variable, before[name])


def test_a_model_that_shares_more_cannot_begin_from_one_that_shares_less(tmp_path):
    unshared = SOURCE.replace(parameter_sharing="none")
    write_tf1(tmp_path / "model.ckpt-best", random_weights(unshared))
    unshared.to_json_file(tmp_path / "albert_config.json")
    model = AlbertForPreTraining(SOURCE)
    with pytest.raises(InputError, match="has no place: a model that shares more"):
        run_pretraining.load_weights(str(tmp_path), model.named_variables(), SOURCE)
