"""from_pretrained and save_pretrained: weights, head, labels and vocabulary come in from any form and go out again."""

from __future__ import annotations

import json
import logging as python_logging
import os
import pathlib
import shutil

import numpy as np
import pytest
import safetensors.numpy

from albert_tf.errors import InputError
from albert_tf.formats import hugging_face, portable, tf1_writing
from albert_tf.formats.checkpoint import Checkpoint, Vocabulary
from albert_tf.head_config import HeadConfig
from albert_tf.models import AlbertForPreTraining, AlbertModel
from albert_tf.task_models import (
    AlbertForMaskedLM,
    AlbertForMultipleChoice,
    AlbertForQuestionAnswering,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
)
from albert_tf.tokenization import load_tokenizer
from tests import toy_vocabulary
from tests.checkpoint_files import random_weights, small_config, some_inputs, write_tf1

VOCABULARY = Vocabulary("30k-clean.model", pathlib.Path(toy_vocabulary.number_model()).read_bytes())
LABELS = ("no", "yes", "maybe")


def released(directory, head=None, config=None, **changes) -> Checkpoint:
    config, head = config or small_config(), head or HeadConfig("pretraining")
    checkpoint = Checkpoint("source", "model", random_weights(config, head), config, head, vocabulary=VOCABULARY)
    tf1_writing.write(checkpoint, directory)
    return checkpoint


def values_of(model):
    return {name: np.array(variable) for name, variable in model.named_variables().items()}


def test_a_released_checkpoint_goes_through_a_portable_directory(tmp_path):
    source = released(tmp_path / "released")
    model = AlbertForPreTraining.from_pretrained(tmp_path / "released")
    for name, value in values_of(model).items():
        np.testing.assert_array_equal(value, source.weights[name], err_msg=name)
    model.save_pretrained(tmp_path / "portable")
    assert sorted(os.listdir(tmp_path / "portable")) == [
        "albert_config.json", "config.json", "head_config.json", "model.safetensors", "spiece.model",
        "tokenizer_config.json",
    ]  # fmt: skip
    again = AlbertForPreTraining.from_pretrained(tmp_path / "portable")
    for name, value in values_of(again).items():
        np.testing.assert_array_equal(value, source.weights[name], err_msg=name)
    inputs = some_inputs(source.config)
    first, second = model(inputs), again(inputs)
    assert first["masked_lm_logits"].shape == (3, 2, 320) and first["sentence_order_logits"].shape == (3, 2)
    for key in ("masked_lm_logits", "sentence_order_logits", "pooled_output"):
        np.testing.assert_array_equal(first[key], second[key])
    assert again.vocabulary.data == VOCABULARY.data
    again.save_pretrained(tmp_path / "portable")  # an earlier one is replaced whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["portable", "released"]


@pytest.mark.parametrize("sharing", ["all", "attention", "ffn", "none"])
@pytest.mark.parametrize("changes", [{}, {"embedding_size": 24}, {"embedding_size": 24, "embedding_projection": True}])
def test_every_model_comes_back_from_its_directory(tmp_path, sharing, changes):
    model = AlbertForPreTraining(small_config(parameter_sharing=sharing, **changes))
    model.save_pretrained(tmp_path / "model")
    again = AlbertForPreTraining.from_pretrained(tmp_path / "model")
    assert again.config == model.config
    for name, value in values_of(model).items():
        np.testing.assert_array_equal(values_of(again)[name], value)


def test_the_names_and_config_that_transformers_opens(tmp_path):
    model = AlbertForPreTraining(small_config())
    model.save_pretrained(tmp_path / "model")
    tensors = safetensors.numpy.load_file(tmp_path / "model" / "model.safetensors")
    block = "albert.encoder.albert_layer_groups.0.albert_layers.0"
    assert tensors[f"{block}.ffn.weight"].shape == (48, 24)  # [out, in] there, [in, out] here
    kernel = values_of(model)["bert/encoder/transformer/group_0/inner_group_0/ffn_1/intermediate/dense/kernel"]
    np.testing.assert_array_equal(tensors[f"{block}.ffn.weight"].T, kernel)
    values = json.loads((tmp_path / "model" / "config.json").read_text())
    assert (values["hidden_act"], values["model_type"]) == ("gelu_new", "albert")
    assert values["architectures"] == ["AlbertForPreTraining"]


@pytest.mark.parametrize("form", [tf1_writing, portable, hugging_face])
def test_the_labels_of_a_classifier_travel(tmp_path, form):
    head = HeadConfig("classifier", labels=LABELS)
    source = Checkpoint(
        "source", "model", random_weights(small_config(), head), small_config(), head, vocabulary=VOCABULARY
    )
    form.write(source, tmp_path / "m")
    model = AlbertForSequenceClassification.from_pretrained(tmp_path / "m")
    assert model.head == head
    np.testing.assert_array_equal(values_of(model)["output_weights"], source.weights["output_weights"])
    np.testing.assert_array_equal(
        values_of(model)["bert/pooler/dense/kernel"], source.weights["bert/pooler/dense/kernel"]
    )


def test_the_number_of_labels_is_that_of_the_weights_or_must_be_said(tmp_path):
    head = HeadConfig("classifier", num_labels=5)
    write_tf1(tmp_path / "five" / "model.ckpt", random_weights(small_config(), head))
    small_config().to_json_file(tmp_path / "five" / "albert_config.json")
    assert AlbertForSequenceClassification.from_pretrained(tmp_path / "five").head == head
    with pytest.raises(InputError, match=r"output_weights has shape \[5, 24\], but the model needs \[2, 24\]"):
        AlbertForSequenceClassification.from_pretrained(tmp_path / "five", num_labels=2)
    other = AlbertForSequenceClassification.from_pretrained(tmp_path / "five", labels=("no", "yes"), new_head=True)
    assert other.head.num_labels == 2 and list(other.load_report.missing) == ["output_weights", "output_bias"]
    released(tmp_path / "pretrained")
    with pytest.raises(InputError, match="does not tell how many labels AlbertForSequenceClassification has"):
        AlbertForSequenceClassification.from_pretrained(tmp_path / "pretrained")


def test_a_missing_head_is_a_warning_that_names_it(tmp_path, caplog):
    source = released(tmp_path / "released")
    python_logging.getLogger("absl").propagate = True
    with caplog.at_level("WARNING", logger="absl"):
        model = AlbertForSequenceClassification.from_pretrained(tmp_path / "released", num_labels=2)
    assert "has no weights for output_weights, output_bias: they begin at random" in caplog.text
    assert set(model.load_report.unused) == {name for name in source.weights if name.startswith("cls/")}


@pytest.mark.parametrize(
    ("model_class", "kind"),
    [
        (AlbertModel, "encoder"),
        (AlbertForMaskedLM, "masked_lm"),
        (AlbertForMultipleChoice, "multiple_choice"),
        (AlbertForQuestionAnswering, "span"),
    ],
)
def test_each_kind_of_head_is_read_by_its_class(tmp_path, model_class, kind):
    source = released(tmp_path / "released", HeadConfig(kind))
    model = model_class.from_pretrained(tmp_path / "released")
    assert not model.load_report.missing and not model.load_report.unused
    for name, value in values_of(model).items():
        np.testing.assert_array_equal(value, source.weights[name], err_msg=name)


def test_one_output_is_a_regression_or_a_choice_as_the_class_says(tmp_path):
    released(tmp_path / "one", HeadConfig("classifier", num_labels=1))
    assert AlbertForSequenceClassification.from_pretrained(tmp_path / "one").head.num_labels == 1
    assert AlbertForMultipleChoice.from_pretrained(tmp_path / "one").head.kind == "multiple_choice"
    assert AlbertForTokenClassification.from_pretrained(tmp_path / "one").head.num_labels == 1


def test_other_rates_and_less_sharing_can_be_asked_for(tmp_path):
    released(tmp_path / "released")
    config = small_config(hidden_dropout_prob=0.1, parameter_sharing="none")
    model = AlbertForPreTraining.from_pretrained(tmp_path / "released", config=config)
    assert model.config == config and "copied to groups 1 to 3" in model.load_report.notes[0]
    with pytest.raises(InputError, match="num_attention_heads 3, and this model has 4"):
        AlbertForPreTraining.from_pretrained(tmp_path / "released", config=small_config(num_attention_heads=4))
    longer = AlbertForPreTraining.from_pretrained(tmp_path / "released", max_position_embeddings=20)
    assert longer.config.max_position_embeddings == 20
    assert values_of(longer)["bert/embeddings/position_embeddings"].shape == (20, 8)


def test_sizes_that_nobody_tells_are_asked_for(tmp_path):
    prefix = write_tf1(tmp_path / "model.ckpt", random_weights(small_config()))
    with pytest.raises(InputError, match="does not tell the sizes of its model: give them as config="):
        AlbertModel.from_pretrained(prefix)
    assert AlbertModel.from_pretrained(prefix, config=small_config()).config == small_config()


def test_a_tokenizer_replaces_the_vocabulary_that_came(tmp_path):
    released(tmp_path / "released")
    model = AlbertModel.from_pretrained(tmp_path / "released")
    tokenizer = load_tokenizer(toy_vocabulary.alphabet_model(), do_lower_case=False)
    model.save_pretrained(tmp_path / "model", tokenizer)
    again = AlbertModel.from_pretrained(tmp_path / "model")
    assert again.vocabulary.data == tokenizer.data and not again.vocabulary.do_lower_case


def test_a_directory_with_other_things_is_not_replaced(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match="home holds letter.txt, which would be lost"):
        AlbertModel(small_config()).save_pretrained(tmp_path / "home")
    assert [path.name for path in tmp_path.rglob("*")] == ["home", "letter.txt"]
    with pytest.raises(InputError, match="letter.txt: it is a file"):
        AlbertModel(small_config()).save_pretrained(tmp_path / "home" / "letter.txt")


def test_a_head_of_another_kind_is_not_taken_for_ours(tmp_path):
    head = HeadConfig("classifier", labels=LABELS)
    source = Checkpoint("source", "model", random_weights(small_config(), head), small_config(), head)
    for form in (portable, hugging_face, tf1_writing):
        form.write(source, tmp_path / "m")
        with pytest.raises(InputError, match="kind classifier, which AlbertForSequenceClassification takes"):
            AlbertForTokenClassification.from_pretrained(tmp_path / "m")
        tagger = AlbertForTokenClassification.from_pretrained(tmp_path / "m", num_labels=7, new_head=True)
        assert tagger.head.num_labels == 7
        shutil.rmtree(tmp_path / "m")


def test_what_is_said_is_added_to_what_the_source_says(tmp_path):
    head = HeadConfig("classifier", labels=LABELS, problem_type="multi_label_classification")
    source = Checkpoint("source", "model", random_weights(small_config(), head), small_config(), head)
    portable.write(source, tmp_path / "m")
    load = AlbertForSequenceClassification.from_pretrained
    named = load(tmp_path / "m", labels=("a", "b", "c")).head
    assert (named.labels, named.problem_type) == (("a", "b", "c"), "multi_label_classification")
    typed = load(tmp_path / "m", problem_type="single_label_classification").head
    assert (typed.labels, typed.problem_type) == (LABELS, "single_label_classification")
    with pytest.raises(InputError, match="labels is the text 'abc'"):
        load(tmp_path / "m", labels="abc")


def test_a_tagger_starts_a_classifier(tmp_path):
    head = HeadConfig("tagger", num_labels=5)
    source = Checkpoint("source", "model", random_weights(small_config(), head), small_config(), head)
    portable.write(source, tmp_path / "m")
    model = AlbertForSequenceClassification.from_pretrained(tmp_path / "m", num_labels=2, new_head=True)
    assert set(model.load_report.missing) == {
        "bert/pooler/dense/kernel", "bert/pooler/dense/bias", "output_weights", "output_bias",
    }  # fmt: skip
