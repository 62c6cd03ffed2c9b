"""Classes, several classes at once and numbers: labels, losses, answers, scores, and what is told of bad input."""

from __future__ import annotations

import logging
import math

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import task_losses
from albert_tf.batches import Batches, bucket_lengths
from albert_tf.errors import InputError
from albert_tf.head_config import HeadConfig
from albert_tf.task_kinds import catalogue
from albert_tf.task_kinds.texts import TextKind
from albert_tf.tasks.examples import TextExample
from albert_tf.tokenization import load_tokenizer
from tests import toy_vocabulary

CLASSES = HeadConfig("classifier", labels=("no", "yes", "maybe"))
SEVERAL = HeadConfig("classifier", labels=("red", "big"), problem_type="multi_label_classification")
NUMBER = HeadConfig("classifier", 1, problem_type="regression")
LOGITS = np.array([[2.0, -1.0, 0.5], [0.0, 3.0, 1.0], [1.0, 1.5, -2.0]], np.float32)


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(toy_vocabulary.number_model())


def example(number: int, label, text_b: str | None = None) -> TextExample:
    return TextExample(str(number), "the house", text_b, label, f"train.tsv, line {number + 2}")


def batch_of(kind: TextKind, examples, tokenizer, training: bool = False):
    features = kind.features(examples, tokenizer, training=training)
    return features, next(iter(Batches(features, len(examples) + 1, bucket_lengths(32)).evaluation_dataset()))


def test_classes(tokenizer):
    kind = TextKind(CLASSES, max_seq_length=32)
    examples = [example(0, "yes"), example(1, "yes"), example(2, None)]
    features, batch = batch_of(kind, examples, tokenizer)
    assert features.per_sequence["label_ids"].tolist() == [1, 1, -1]
    losses = kind.losses(tf.constant(np.vstack([LOGITS, [[0, 0, 0]]])), batch).numpy()
    log_probabilities = np.log(np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True))
    np.testing.assert_allclose(losses[:3], [-log_probabilities[0, 1], -log_probabilities[1, 1], 0], atol=1e-6)
    predictions = kind.predictions({"logits": list(LOGITS)}, features, examples)
    assert [(p.id, p.label) for p in predictions] == [("0", "no"), ("1", "yes"), ("2", "yes")]
    np.testing.assert_allclose([p.probabilities for p in predictions], np.exp(log_probabilities), atol=1e-6)
    assert kind.scores(examples, predictions, ("accuracy",)) == {"accuracy": 0.5}


def test_several_classes_at_once(tokenizer):
    kind = TextKind(SEVERAL, max_seq_length=32)
    examples = [example(0, ("big", "red")), example(1, ()), example(2, None)]
    features, batch = batch_of(kind, examples, tokenizer)
    assert features.per_sequence["label_ids"].tolist() == [[1, 1], [0, 0], [-1, -1]]
    logits = np.array([[2.0, -1.0], [0.5, -3.0], [1.0, 1.0], [0.0, 0.0]], np.float32)
    losses = kind.losses(tf.constant(logits), batch).numpy()
    sigmoid = 1 / (1 + np.exp(-logits.astype(np.float64)))
    wanted = [-np.log(sigmoid[0]).mean(), -np.log(1 - sigmoid[1]).mean(), 0]
    np.testing.assert_allclose(losses[:3], wanted, atol=1e-6)
    predictions = kind.predictions({"logits": list(logits)}, features, examples)
    assert [p.label for p in predictions] == [("red",), ("red",), ("red", "big")]
    np.testing.assert_allclose(predictions[0].probabilities, sigmoid[0], atol=1e-6)
    scores = kind.scores(examples, predictions, ("accuracy", "micro_f1", "macro_f1"))
    assert scores == {"accuracy": 0.0, "micro_f1": 0.5, "macro_f1": pytest.approx(1 / 3)}


def test_the_loss_of_several_classes_is_that_of_its_definition():
    random = np.random.default_rng(0)
    logits, labels = random.normal(0, 30, (4, 5)), random.integers(0, 2, (4, 5))
    terms = np.logaddexp(0, logits) - labels * logits
    np.testing.assert_allclose(task_losses.multi_label_losses(logits, labels), terms.mean(1), rtol=1e-6)


def test_numbers(tokenizer):
    kind = TextKind(NUMBER, max_seq_length=32)
    examples = [example(0, 3.4), example(1, "1"), example(2, None)]
    features, batch = batch_of(kind, examples, tokenizer)
    np.testing.assert_array_equal(features.per_sequence["label_ids"], np.array([3.4, 1, np.nan], np.float32))
    logits = np.array([[3.0], [-1.0], [9.0], [0.0]], np.float32)
    np.testing.assert_allclose(kind.losses(tf.constant(logits), batch), [0.16, 4.0, 0.0, 0.0], atol=1e-6)
    predictions = kind.predictions({"logits": list(logits)}, features, examples)
    assert [(p.label, p.probabilities) for p in predictions] == [(3.0, None), (-1.0, None), (9.0, None)]
    scores = kind.scores(examples, predictions, ("pearson", "mean_squared_error"))
    assert scores == {"pearson": pytest.approx(1.0), "mean_squared_error": pytest.approx(2.08)}


@pytest.mark.parametrize("head", [CLASSES, SEVERAL, NUMBER])
def test_no_gradient_comes_from_an_example_without_a_label(head, tokenizer):
    kind = TextKind(head, max_seq_length=32)
    _, batch = batch_of(kind, [example(0, None)], tokenizer)
    logits = tf.Variable(tf.random.stateless_normal([2, head.num_labels], [1, 2]))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(kind.losses(logits, batch) * batch["example_weight"])
    assert loss.numpy() == 0
    assert not tape.gradient(loss, logits).numpy().any()


@pytest.mark.parametrize(
    "head, label, words",
    [
        (CLASSES, "perhaps", "line 2: the label is 'perhaps', but must be one of no, yes, maybe"),
        (CLASSES, None, "line 2: there is no label"),
        (SEVERAL, ("red", "blue"), "line 2: the label is 'blue'"),
        (SEVERAL, "red", "must be a list of labels"),
        (NUMBER, "much", "line 2: the label is 'much', but must be a number"),
        (NUMBER, math.inf, "must be a number"),
        (NUMBER, None, "there is no label"),
    ],
)
def test_labels_that_cannot_be_learned(head, label, words, tokenizer):
    with pytest.raises(InputError, match=words):
        TextKind(head, max_seq_length=32).features([example(0, label)], tokenizer, training=True)


def test_short_lengths_for_pairs_are_warned_of(tokenizer, caplog):
    with caplog.at_level(logging.WARNING, logger="absl"):
        TextKind(CLASSES, max_seq_length=15).features([example(0, "no")], tokenizer, training=True)
        TextKind(CLASSES, max_seq_length=16).features([example(0, "no", "b")], tokenizer, training=True)
        assert "pair" not in caplog.text
        TextKind(CLASSES, max_seq_length=15).features([example(0, "no", "b")], tokenizer, training=True)
    assert "max_seq_length is 15, which leaves each text of a pair about 6 pieces" in caplog.text


def test_examples_that_were_cut_are_counted_and_told(tokenizer, caplog):
    examples = [example(0, "no"), TextExample("1", "the house " * 50, None, "no")]
    with caplog.at_level(logging.WARNING, logger="absl"):
        features = TextKind(CLASSES, max_seq_length=32).features(examples, tokenizer, training=True)
    assert features.cut == 1
    assert "1 of 2 examples (50.0 %) are longer than max_seq_length 32" in caplog.text


@pytest.mark.parametrize("head", [CLASSES, SEVERAL, NUMBER, HeadConfig("multiple_choice"), HeadConfig("tagger", 3)])
def test_a_kind_is_made_again_from_its_head_and_settings(head):
    kind = catalogue.kind_from_settings(head, {"max_seq_length": 40})
    again = catalogue.kind_from_settings(kind.head, kind.settings)
    assert type(again) is type(kind)
    assert again.settings == kind.settings


def test_settings_that_a_kind_does_not_have():
    with pytest.raises(InputError, match="doc_stride is no setting.*max_seq_length"):
        catalogue.kind_from_settings(CLASSES, {"max_seq_length": 40, "doc_stride": 3})
    with pytest.raises(InputError, match="'masked_lm' is for no task"):
        catalogue.kind_from_settings(HeadConfig("masked_lm"), {"max_seq_length": 40})


def test_a_head_without_names_has_numbers(tokenizer):
    kind = TextKind(HeadConfig("classifier", 2), max_seq_length=32)
    assert kind.features([example(0, "1")], tokenizer, training=True).per_sequence["label_ids"].tolist() == [1]


@pytest.mark.parametrize(
    "labels, label, is_hinted",
    [
        (("0.5", "-2"), "0.118", True),
        (("0.5", "-2"), "x", False),
        (("a", "2"), "3", False),
        (("nan", "1"), "2", False),
        (("inf", "1"), "2", False),
    ],
)
def test_amounts_taken_for_classes_are_told_of_regressions(labels, label, is_hinted, tokenizer):
    kind = TextKind(HeadConfig("classifier", labels=labels), max_seq_length=32)
    with pytest.raises(InputError, match="line 2: the label is") as caught:
        kind.features([example(0, label)], tokenizer, training=False)
    assert ("--problem_type=regression" in str(caught.value)) == is_hinted
