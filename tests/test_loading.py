"""albert_tf.loading: what fits, what is copied, what is refused, and what the report says."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from albert_tf import loading
from albert_tf.errors import InputError
from albert_tf.formats.checkpoint import Checkpoint, Vocabulary
from albert_tf.head_config import HeadConfig
from albert_tf.models import AlbertForPreTraining
from tests import toy_vocabulary
from tests.checkpoint_files import random_weights, small_config, some_inputs

BLOCK = "bert/encoder/transformer/group_0/inner_group_0"


def checkpoint(sizes=None, **changes) -> Checkpoint:
    sizes = sizes or small_config()
    values = {"weights": random_weights(sizes), "config": sizes, "head": HeadConfig("pretraining"), **changes}
    return Checkpoint(path="the/file", form="TF1 checkpoint", **values)


def values_of(model):
    return {name: np.array(variable) for name, variable in model.named_variables().items()}


def test_every_variable_takes_its_value():
    source, model = checkpoint(), AlbertForPreTraining(small_config())
    report = loading.load(source, model.named_variables(), model.config)
    for name, value in values_of(model).items():
        np.testing.assert_array_equal(value, source.weights[name], err_msg=name)
    assert set(report.matched) == set(source.weights)
    assert report.matched["cls/seq_relationship/output_weights"] == (2, 24)
    assert not report.missing and not report.unused and not report.notes


def test_missing_heads_keep_their_values_and_are_told():
    weights = random_weights(small_config())
    del weights["cls/seq_relationship/output_weights"]
    weights["cls/squad/output_bias"] = np.zeros(2, np.float32)
    slots = ("a/adam_m", "a/adam_v", "global_step")
    source, model = checkpoint(weights=weights, slots=slots), AlbertForPreTraining(small_config())
    before = values_of(model)["cls/seq_relationship/output_weights"]
    report = loading.load(source, model.named_variables())
    assert report.missing == {"cls/seq_relationship/output_weights": (2, 24)}
    assert report.unused == {"cls/squad/output_bias": (2,)}
    np.testing.assert_array_equal(values_of(model)["cls/seq_relationship/output_weights"], before)
    lines = report.lines()
    assert "  ignored: 2 slots, global_step" in lines
    table = [line.split() for line in lines]
    assert ["matched:", "bert/embeddings/word_embeddings", "[320,", "8]"] in table
    assert ["missing:", "cls/seq_relationship/output_weights", "[2,", "24]"] in table
    assert ["not", "used:", "cls/squad/output_bias", "[2]"] in table
    assert "matched, 1 missing (they keep their values), 1 not used" in lines[-1]


@pytest.mark.parametrize(
    "name",
    ["bert/pooler/dense/kernel", "bert/embeddings/LayerNorm/beta", f"{BLOCK}/attention_1/self/key/bias"],
)
def test_a_missing_encoder_variable_is_an_error_that_names_it(name):
    weights = random_weights(small_config())
    weights[f"{name}_renamed"] = weights.pop(name)
    model = AlbertForPreTraining(small_config())
    before = values_of(model)
    with pytest.raises(InputError, match=f"the/file has no value for {name} "):
        loading.load(checkpoint(weights=weights), model.named_variables())
    for kept, value in values_of(model).items():
        np.testing.assert_array_equal(value, before[kept])


def test_the_pooler_may_be_missing_where_the_source_has_no_use_for_one():
    head = HeadConfig("span")
    weights = random_weights(small_config(), head)
    model = AlbertForPreTraining(small_config())
    report = loading.load(checkpoint(weights=weights, head=head), model.named_variables())
    assert {"bert/pooler/dense/kernel", "bert/pooler/dense/bias"} <= set(report.missing)
    with pytest.raises(InputError, match="no value for bert/pooler/dense/kernel"):
        loading.load(checkpoint(weights=weights, head=None), model.named_variables())


def test_nothing_matched_is_an_error_that_shows_names():
    model = AlbertForPreTraining(small_config())
    with pytest.raises(InputError, match="not one variable of the model is in this TF1 checkpoint.*some/thing"):
        loading.load(checkpoint(weights={"some/thing": np.zeros(2, np.float32)}), model.named_variables())


def test_a_wrong_shape_names_both_and_changes_nothing():
    model = AlbertForPreTraining(small_config(vocab_size=330))
    before = values_of(model)
    with pytest.raises(InputError, match=r"word_embeddings has shape \[320, 8\], but the model needs \[330, 8\]"):
        loading.load(checkpoint(config=None, weights=random_weights(small_config())), model.named_variables())
    for name, value in values_of(model).items():
        np.testing.assert_array_equal(value, before[name])


def test_another_length_says_how_to_change_it():
    model = AlbertForPreTraining(small_config(max_position_embeddings=32))
    with pytest.raises(InputError, match=r"shape \[16, 8\].*\[32, 8\].*--max_position_embeddings=32"):
        loading.load(checkpoint(), model.named_variables())


@pytest.mark.parametrize(
    ("key", "value"), [("num_attention_heads", 4), ("hidden_act", "relu"), ("layer_norm_eps", 1e-5)]
)
def test_what_changes_the_numbers_without_a_shape_is_refused(key, value):
    model = AlbertForPreTraining(small_config(**{key: value}))
    with pytest.raises(InputError, match=f"{key} .*{value}"):
        loading.load(checkpoint(), model.named_variables(), model.config)


def test_a_shallow_shared_model_starts_a_deeper_one():
    source = checkpoint(small_config(num_hidden_layers=6))
    model = AlbertForPreTraining(small_config(num_hidden_layers=12))
    report = loading.load(source, model.named_variables(), model.config)
    assert report.notes == ("a model of 6 layers starts one of 12 layers",)
    assert not report.missing and not report.unused


@pytest.mark.parametrize("sharing", ["none", "attention", "ffn"])
def test_a_shared_model_starts_one_that_shares_less_and_gives_the_same_numbers(sharing):
    source = checkpoint()
    shared = AlbertForPreTraining(source.config)
    loading.load(source, shared.named_variables(), source.config)
    config = small_config(parameter_sharing=sharing)
    model = AlbertForPreTraining(config)
    report = loading.load(source, model.named_variables(), config)
    assert not report.missing and not report.unused
    (note,) = report.notes
    copied = {"none": "attention and feed-forward", "attention": "feed-forward", "ffn": "attention"}[sharing]
    assert note == f"the one {copied} part of the source is copied to groups 1 to 3"
    inputs = some_inputs(config)
    expected, found = shared(inputs), model(inputs)
    for key in ("sequence_output", "masked_lm_logits", "sentence_order_logits"):
        np.testing.assert_allclose(found[key], expected[key], atol=1e-6)


def test_groups_start_from_group_0_as_released():
    source = checkpoint()
    model = AlbertForPreTraining(small_config(num_hidden_groups=2, inner_group_num=1))
    loading.load(source, model.named_variables(), model.config)
    values = values_of(model)
    for name, value in source.weights.items():
        if name.startswith(BLOCK):
            np.testing.assert_array_equal(values[name.replace("group_0/inner", "group_1/inner")], value)


@pytest.mark.parametrize("changes", [{"parameter_sharing": "none"}, {"num_hidden_groups": 2}])
def test_more_groups_than_the_model_has_are_not_dropped(changes):
    model = AlbertForPreTraining(small_config())
    with pytest.raises(
        InputError,
        match="has bert/encoder/transformer/group_1/.*for which this model has no place: a model that shares more",
    ):
        loading.load(checkpoint(small_config(**changes)), model.named_variables(), model.config)


def test_other_numbers_of_groups_are_not_filled_up():
    model = AlbertForPreTraining(small_config(num_hidden_groups=4))
    with pytest.raises(InputError, match="no value for bert/encoder/transformer/group_2/"):
        loading.load(checkpoint(small_config(num_hidden_groups=2)), model.named_variables(), model.config)


def test_positions_are_cut_or_repeated():
    source = checkpoint()
    table = source.weights[loading.POSITIONS]
    longer, shorter = loading.with_positions(source, 40), loading.with_positions(source, 10)
    expected = np.stack([table[i % 16] for i in range(40)])
    np.testing.assert_array_equal(longer.weights[loading.POSITIONS], expected)
    np.testing.assert_array_equal(shorter.weights[loading.POSITIONS], table[:10])
    assert longer.config.max_position_embeddings == 40 and shorter.config.max_position_embeddings == 10
    assert "had 16 rows, now 40" in longer.notes[0]
    assert loading.with_positions(source, 16) is source
    inputs = {name: value[:, :10] for name, value in some_inputs(source.config).items()}
    inputs["masked_lm_positions"] = np.zeros([3, 2], np.int32)
    logits = []
    for each in (source, longer, shorter):
        model = AlbertForPreTraining(each.config)
        loading.load(each, model.named_variables(), each.config)
        logits.append(np.array(model(inputs)["masked_lm_logits"]))
    np.testing.assert_array_equal(logits[0], logits[1])
    np.testing.assert_array_equal(logits[0], logits[2])
    with pytest.raises(InputError, match="max_position_embeddings is 0"):
        loading.with_positions(source, 0)
    with pytest.raises(InputError, match="has no bert/embeddings/position_embeddings"):
        loading.with_positions(checkpoint(weights={}), 10)


@pytest.mark.parametrize(
    ("head", "told"),
    [
        (
            HeadConfig("classifier", num_labels=3),
            "classifier with 3 labels, which AlbertForSequenceClassification takes",
        ),
        (HeadConfig("span"), "span, which AlbertForQuestionAnswering takes"),
        (HeadConfig("answerable_span"), "answerable_span, which AlbertForAnswerableQuestionAnswering takes"),
    ],
)
def test_a_head_that_is_not_used_is_offered(head, told):
    weights = {**random_weights(small_config()), **random_weights(small_config(), head)}
    model = AlbertForPreTraining(small_config())
    report = loading.load(checkpoint(weights=weights, head=head), model.named_variables())
    assert report.notes == (f"it has a head of the kind {told}",)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ({"inner_group_num": 2}, {}),
        ({"embedding_size": 24, "embedding_projection": True}, {"embedding_size": 24}),
        ({"parameter_sharing": "none"}, {"parameter_sharing": "none", "num_hidden_layers": 2}),
    ],
)
def test_no_part_of_the_encoder_is_dropped(source, target):
    model = AlbertForPreTraining(small_config(**target))
    with pytest.raises(InputError, match="for which this model has no place"):
        loading.load(checkpoint(small_config(**source)), model.named_variables(), model.config)
    with pytest.raises(InputError, match="for which this model has no place"):
        loading.load(checkpoint(small_config(**source), config=None), model.named_variables(), model.config)


def test_groups_that_no_layer_uses_may_be_left():
    config = small_config(num_hidden_groups=12)  # four layers use groups 0, 3, 6 and 9
    weights = random_weights(config)
    for name in [name for name in weights if "/group_3/" in name]:
        weights[name.replace("/group_3/", "/group_4/")] = weights[name]
    model = AlbertForPreTraining(config)
    report = loading.load(checkpoint(config, weights=weights), model.named_variables(), config)
    assert report.unused and all("/group_4/" in name for name in report.unused)


def test_two_words_for_no_activation_are_one():
    model = AlbertForPreTraining(small_config(hidden_act=""))
    assert not loading.load(
        checkpoint(small_config(hidden_act="linear")), model.named_variables(), model.config
    ).missing


def test_a_vocabulary_that_does_not_fit_is_left_out_and_told():
    data = pathlib.Path(toy_vocabulary.number_model()).read_bytes()
    source = checkpoint(vocabulary=Vocabulary("30k-clean.model", data))
    pieces = source.vocabulary.tokenizer().vocab_size
    assert loading.with_fitting_vocabulary(source, small_config(vocab_size=pieces)) is source
    left = loading.with_fitting_vocabulary(source, small_config(vocab_size=pieces - 1))
    assert left.vocabulary is None and f"has {pieces} pieces" in left.notes[0]
    broken = loading.with_fitting_vocabulary(checkpoint(vocabulary=Vocabulary("a.model", b"no")), small_config())
    assert broken.vocabulary is None and "is not a SentencePiece model" in broken.notes[0]


def test_a_source_that_lacks_what_its_own_config_tells_is_not_filled_up():
    config = small_config(num_hidden_groups=2)
    weights = random_weights(small_config())
    model = AlbertForPreTraining(config)
    with pytest.raises(InputError, match="no value for bert/encoder/transformer/group_1/"):
        loading.load(checkpoint(config, weights=weights), model.named_variables(), config)
    report = loading.load(checkpoint(config, weights=weights, config_is_told=False), model.named_variables(), config)
    assert "copied to groups 1 to 1" in report.notes[0]


def test_values_that_are_no_numbers_are_told_and_whole_numbers_refused():
    weights = random_weights(small_config())
    weights["bert/pooler/dense/bias"][3] = np.nan
    model = AlbertForPreTraining(small_config())
    report = loading.load(checkpoint(weights=weights), model.named_variables())
    assert report.notes == ("not all values of bert/pooler/dense/bias are finite numbers",)
    weights["bert/pooler/dense/bias"] = np.zeros(24, np.int32)
    with pytest.raises(InputError, match="bert/pooler/dense/bias is of the type int32, but a weight is a float"):
        loading.load(checkpoint(weights=weights), model.named_variables())
