"""`compile` without a loss: every task's model learns by the released formula."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf import task_losses
from albert_tf.config import AlbertConfig
from albert_tf.default_losses import IGNORED_TAG, default_loss
from albert_tf.errors import InputError
from albert_tf.head_config import HeadConfig
from tests import toy_vocabulary
from tests.checkpoint_files import SIZES

CONFIG = AlbertConfig(**{**SIZES, "vocab_size": 50, "num_hidden_layers": 1})
IDS = np.random.default_rng(0).integers(8, 50, (4, 12), dtype=np.int32)
CLASSES = np.array([0, 2, 1, 1], np.int32)
STARTS, ENDS = np.array([1, 0, 3, 2], np.int32), np.array([2, 0, 3, 4], np.int32)
IMPOSSIBLE = np.array([0.0, 1.0, 0.0, 0.0], np.float32)
NUMBERS = np.array([0.0, 2.5, 5.0, 1.0], np.float32)
SETS = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]], np.float32)


def loss_of(model, inputs, labels) -> float:
    model.compile(albert_tf.finetuning_adamw(1e-3, 10))
    return model.evaluate(inputs, labels, verbose=0, return_dict=True)["loss"]


def log_softmax(logits: np.ndarray) -> np.ndarray:
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


@pytest.mark.parametrize("head", [{"num_labels": 1}, {"num_labels": 1, "problem_type": "regression"}])
def test_regression(head):
    model = albert_tf.AlbertForSequenceClassification(CONFIG, **head)
    inputs = {"input_ids": IDS}
    wanted = np.square(model(inputs).numpy()[:, 0] - NUMBERS).mean()
    np.testing.assert_allclose(loss_of(model, inputs, NUMBERS), wanted, rtol=1e-5)


def test_one_of_several_classes():
    model = albert_tf.AlbertForSequenceClassification(CONFIG, labels=("a", "b", "c"))
    inputs = {"input_ids": IDS}
    wanted = -log_softmax(model(inputs).numpy())[np.arange(4), CLASSES].mean()
    np.testing.assert_allclose(loss_of(model, inputs, CLASSES), wanted, rtol=1e-5)


def test_several_classes_at_once():
    model = albert_tf.AlbertForSequenceClassification(CONFIG, num_labels=3, problem_type="multi_label_classification")
    inputs = {"input_ids": IDS}
    probabilities = 1 / (1 + np.exp(-model(inputs).numpy()))
    wanted = -(SETS * np.log(probabilities) + (1 - SETS) * np.log(1 - probabilities)).mean()
    np.testing.assert_allclose(loss_of(model, inputs, SETS), wanted, rtol=1e-5)


def test_choices():
    model = albert_tf.AlbertForMultipleChoice(CONFIG)
    inputs = {"input_ids": np.stack([IDS, IDS[::-1], np.roll(IDS, 1, 0)], axis=1)}
    wanted = -log_softmax(model(inputs).numpy())[np.arange(4), CLASSES].mean()
    np.testing.assert_allclose(loss_of(model, inputs, CLASSES), wanted, rtol=1e-5)


def test_tags_leave_out_positions_without_one():
    model = albert_tf.AlbertForTokenClassification(CONFIG, labels=("O", "B", "I"))
    inputs = {"input_ids": IDS}
    tags = np.random.default_rng(1).integers(0, 3, IDS.shape)
    tags[:, [0, 3, 11]] = IGNORED_TAG
    counted = np.nonzero(tags != IGNORED_TAG)
    wanted = -log_softmax(model(inputs).numpy())[(*counted, tags[counted])].mean()
    np.testing.assert_allclose(loss_of(model, inputs, tags), wanted, rtol=1e-5)


def test_spans():
    model = albert_tf.AlbertForQuestionAnswering(CONFIG)
    inputs = {"input_ids": IDS}
    outputs = model(inputs)
    wanted = task_losses.span_losses(outputs["start_logits"], outputs["end_logits"], STARTS, ENDS).numpy().mean()
    labels = {"start_logits": STARTS, "end_logits": ENDS}
    np.testing.assert_allclose(loss_of(model, inputs, labels), wanted, rtol=1e-5)


def test_spans_that_may_be_absent():
    model = albert_tf.AlbertForAnswerableQuestionAnswering(CONFIG)
    inputs = {"input_ids": IDS, "start_positions": STARTS}
    outputs = model(inputs)
    logits = [outputs[name] for name in ("start_logits", "end_logits", "cls_logits")]
    wanted = task_losses.answerable_span_losses(*logits, STARTS, ENDS, IMPOSSIBLE).numpy().mean()
    labels = {"start_logits": STARTS, "end_logits": ENDS, "cls_logits": IMPOSSIBLE}
    np.testing.assert_allclose(loss_of(model, inputs, labels), wanted, rtol=1e-5)


@pytest.mark.parametrize("name", ["AlbertForQuestionAnswering", "AlbertForAnswerableQuestionAnswering"])
def test_labels_go_by_the_names_that_squad_has_for_them(name):
    model = getattr(albert_tf, name)(CONFIG)
    inputs = {"input_ids": IDS, "start_positions": STARTS}
    labels = {"start_logits": STARTS, "end_logits": ENDS, "cls_logits": IMPOSSIBLE}
    if name == "AlbertForQuestionAnswering":
        del labels["cls_logits"]
    batch = {"start_positions": STARTS, "end_positions": ENDS, "is_impossible": IMPOSSIBLE, "input_ids": IDS}
    model.compile("sgd", metrics={"start_logits": ["accuracy"]})
    weights = np.array([0.5, 2.0, 0.0, 1.0], np.float32)
    found = []
    for given, own in ((labels, dict.fromkeys(labels, weights)), (batch, dict.fromkeys(batch, weights))):
        found.append(model.evaluate(inputs, given, sample_weight=own, verbose=0, return_dict=True))
        assert any("accuracy" in metric for metric in found[-1])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "labels, inputs, words",
    [
        ({"start_positions": STARTS}, {"start_positions": STARTS}, "no end_positions, is_impossible: they must be"),
        (STARTS, {"start_positions": STARTS}, "the labels are no dict, but must be one of start_positions, end_pos"),
        ({"start_positions": STARTS}, {}, "start_positions are missing among the inputs"),
    ],
)
def test_labels_that_do_not_fit_are_told_in_a_sentence(labels, inputs, words):
    model = albert_tf.AlbertForAnswerableQuestionAnswering(CONFIG)
    model.compile("sgd")
    with pytest.raises(Exception, match=words):  # Keras 2.15 wraps what is raised in its graph
        model.evaluate({"input_ids": IDS, **inputs}, labels, verbose=0)


def test_examples_may_have_weights():
    model = albert_tf.AlbertForAnswerableQuestionAnswering(CONFIG)
    inputs = {"input_ids": IDS, "start_positions": STARTS}
    model.compile("sgd")
    labels = {"start_logits": STARTS, "end_logits": ENDS, "cls_logits": IMPOSSIBLE}
    weights = np.array([0.5, 2.0, 0.0, 1.0], np.float32)
    outputs = model(inputs)
    logits = [outputs[name] for name in ("start_logits", "end_logits", "cls_logits")]
    losses = task_losses.answerable_span_losses(*logits, STARTS, ENDS, IMPOSSIBLE).numpy()
    found = model.evaluate(inputs, labels, sample_weight=dict.fromkeys(labels, weights), verbose=0, return_dict=True)
    np.testing.assert_allclose(found["loss"], (weights * losses).mean(), rtol=1e-5)


def test_a_loss_of_ones_own_is_taken_and_a_file_keeps_the_default(tmp_path):
    model, inputs = albert_tf.AlbertForSequenceClassification(CONFIG, num_labels=3), {"input_ids": IDS}
    model.compile("sgd", lambda labels, logits: tf.reduce_sum(tf.square(logits)), metrics=["accuracy"])
    wanted = np.square(model(inputs).numpy()).sum()
    np.testing.assert_allclose(model.evaluate(inputs, CLASSES, verbose=0)[0], wanted, rtol=1e-4)
    before = loss_of(model, inputs, CLASSES)
    model.fit(inputs, CLASSES, epochs=2, verbose=0)  # the warm-up's first update has the rate 0
    model.save(tmp_path / "model.keras")
    loaded = tf.keras.models.load_model(tmp_path / "model.keras")
    after = [np.ravel(one.evaluate(inputs, CLASSES, verbose=0))[0] for one in (model, loaded)]
    np.testing.assert_allclose(*after, rtol=1e-6)
    assert after[0] != before


def test_what_a_tokenizer_gives_trains_and_predicts():
    tokenizer = albert_tf.load_tokenizer(toy_vocabulary.alphabet_model())
    config = CONFIG.replace(vocab_size=tokenizer.vocab_size, classifier_dropout_prob=0.0)
    model = albert_tf.AlbertForSequenceClassification(config, labels=("no", "yes"))
    inputs, labels = tokenizer(["a b", "c", "x y z", ""], padding=16), np.array([0, 1, 1, 0])
    model.compile(albert_tf.finetuning_adamw(1e-3, 10), metrics=["accuracy"])
    dataset = tf.data.Dataset.from_tensor_slices((inputs, labels)).batch(2)
    history = model.fit(dataset, validation_data=(inputs, labels), epochs=2, verbose=0).history
    assert set(history) == {"loss", "accuracy", "val_loss", "val_accuracy"}
    evaluated = [model.evaluate(given, verbose=0, return_dict=True) for given in (dataset, dataset.unbatch().batch(3))]
    np.testing.assert_allclose(evaluated[0]["loss"], evaluated[1]["loss"], rtol=1e-5)
    np.testing.assert_allclose(evaluated[0]["loss"], history["val_loss"][-1], rtol=1e-5)
    np.testing.assert_allclose(model.predict(inputs, verbose=0), model(tokenizer(["a b", "c", "x y z", ""])), atol=1e-5)


def test_a_model_without_a_task_has_no_loss():
    with pytest.raises(InputError, match="AlbertModel has no loss of its own"):
        default_loss(HeadConfig("encoder"))
