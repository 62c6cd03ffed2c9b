"""The losses against NumPy in float64, the released losses, and themselves divided into parts."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import losses

B, P, V = 4, 5, 11


def log_softmax(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


@pytest.fixture
def batch():
    random = np.random.default_rng(3)
    outputs = {
        "masked_lm_logits": random.normal(0, 3, (B, P, V)).astype(np.float32),
        "sentence_order_logits": random.normal(0, 2, (B, 2)).astype(np.float32),
    }
    labels = {
        "masked_lm_ids": random.integers(0, V, (B, P)).astype(np.int32),
        "masked_lm_weights": np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0], [1, 0, 0, 0, 0]], np.float32),
        "sentence_order_label": np.array([[0], [1], [1], [0]], np.int32),
    }
    return outputs, labels


def expected_sums(outputs, labels, example_weights=None):
    weights = labels["masked_lm_weights"].astype(np.float64)
    masked = -np.take_along_axis(log_softmax(outputs["masked_lm_logits"]), labels["masked_lm_ids"][..., None], -1)[
        ..., 0
    ]
    right = outputs["masked_lm_logits"].argmax(-1) == labels["masked_lm_ids"]
    order = labels["sentence_order_label"][:, 0]
    examples = np.ones(len(order)) if example_weights is None else np.asarray(example_weights, np.float64)
    sentence = -np.take_along_axis(log_softmax(outputs["sentence_order_logits"]), order[:, None], -1)[:, 0]
    return losses.LossSums(
        (weights * masked).sum(),
        (weights * right).sum(),
        weights.sum(),
        (examples * sentence).sum(),
        (examples * (outputs["sentence_order_logits"].argmax(-1) == order)).sum(),
        examples.sum(),
    )


@pytest.mark.parametrize("example_weights", [None, [1, 1, 0, 1]])
def test_sums_are_those_of_the_definition(batch, example_weights):
    sums = losses.pretraining_sums(*batch, example_weights)
    np.testing.assert_allclose(np.array(sums), np.array(expected_sums(*batch, example_weights)), rtol=1e-6)


def test_loss_is_the_weighted_mean_of_both_objectives(batch):
    expected = expected_sums(*batch)
    loss = losses.pretraining_loss(losses.pretraining_sums(*batch), losses.pretraining_denominators(batch[1]))
    mean = expected.masked_lm_loss / (expected.masked_lm_weight + 1e-5) + expected.sentence_order_loss / B
    assert float(loss) == pytest.approx(mean, rel=1e-6)
    alone = losses.pretraining_loss(
        losses.pretraining_sums(*batch), losses.pretraining_denominators(batch[1]), sentence_objective=False
    )
    assert float(alone) == pytest.approx(expected.masked_lm_loss / (expected.masked_lm_weight + 1e-5), rel=1e-6)


def test_shares_of_uneven_parts_add_up_to_the_loss_of_the_whole(batch):
    outputs, labels = batch
    parts = [slice(0, 1), slice(1, 4)]
    denominators = losses.LossDenominators(
        *np.sum([losses.pretraining_denominators({k: v[part] for k, v in labels.items()}) for part in parts], axis=0)
    )
    shares, total = [], None
    for part in parts:
        sums = losses.pretraining_sums(*({k: v[part] for k, v in half.items()} for half in batch))
        shares.append(float(losses.pretraining_loss(sums, denominators)))
        total = sums if total is None else tf.nest.map_structure(tf.add, total, sums)
    whole = losses.pretraining_sums(outputs, labels)
    np.testing.assert_allclose(np.array(total), np.array(whole), rtol=1e-6)
    expected = losses.pretraining_loss(whole, losses.pretraining_denominators(labels))
    assert sum(shares) == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize("padding", [0, 7, -1, 10**6])
def test_padding_counts_for_nothing_whatever_id_stands_there(padding):
    logits = tf.random.stateless_normal([1, 4, V], [1, 2])
    weights = [[1.0, 1.0, 0.0, 0.0]]
    with tf.GradientTape() as tape:
        tape.watch(logits)
        total, count = losses.masked_lm_loss_sum(logits, tf.constant([[3, 5, padding, padding]]), weights)
    first_two = -log_softmax(logits.numpy())[0, [0, 1], [3, 5]]
    assert float(total) == pytest.approx(first_two.sum(), rel=1e-6)
    assert float(count) == 2
    gradient = tape.gradient(total, logits).numpy()
    assert np.isfinite(gradient).all()
    assert (gradient[0, 2:] == 0).all()
    correct, count = losses.masked_lm_accuracy_sum(logits, tf.constant([[3, 5, padding, padding]]), weights)
    assert float(correct) == (logits.numpy().argmax(-1)[0, :2] == [3, 5]).sum()


def test_a_batch_without_a_masked_piece_has_loss_and_accuracy_zero(batch):
    outputs, labels = batch
    labels = {**labels, "masked_lm_weights": np.zeros((B, P), np.float32)}
    sums = losses.pretraining_sums(outputs, labels)
    loss = losses.pretraining_loss(sums, losses.pretraining_denominators(labels), sentence_objective=False)
    assert float(loss) == 0.0
    metrics = losses.pretraining_metrics(sums)
    assert float(metrics["masked_lm_loss"]) == float(metrics["masked_lm_accuracy"]) == 0.0


def test_no_examples_give_zero_not_nan(batch):
    outputs, labels = batch
    labels = {**labels, "masked_lm_weights": np.zeros((B, P), np.float32)}
    sums = losses.pretraining_sums(outputs, labels, np.zeros(B))
    assert all(float(value) == 0.0 for value in losses.pretraining_metrics(sums).values())
    denominators = losses.pretraining_denominators(labels, np.zeros(B))
    assert float(losses.pretraining_loss(sums, denominators)) == 0.0


def test_metrics_are_means(batch):
    expected = expected_sums(*batch)
    metrics = losses.pretraining_metrics(losses.pretraining_sums(*batch))
    assert float(metrics["masked_lm_accuracy"]) == pytest.approx(expected.masked_lm_correct / 8, rel=1e-5)
    assert float(metrics["sentence_order_accuracy"]) == pytest.approx(expected.sentence_order_correct / B)
    assert float(metrics["sentence_order_loss"]) == pytest.approx(expected.sentence_order_loss / B, rel=1e-6)


def test_half_precision_logits_are_summed_in_float32(batch):
    outputs, labels = batch
    halves = {name: tf.cast(value, tf.bfloat16) for name, value in outputs.items()}
    rounded = {name: tf.cast(value, tf.float32).numpy() for name, value in halves.items()}
    sums = losses.pretraining_sums(halves, labels)
    assert all(value.dtype == tf.float32 for value in sums)
    np.testing.assert_allclose(sums.masked_lm_loss, expected_sums(rounded, labels).masked_lm_loss, rtol=1e-6)


def test_compiles(batch):
    compiled = tf.function(losses.pretraining_sums, jit_compile=True)(*tf.nest.map_structure(tf.constant, batch))
    np.testing.assert_allclose(np.array(compiled), np.array(losses.pretraining_sums(*batch)), rtol=1e-5)


@pytest.mark.parametrize("model", ["model_shared", "model_groups"])
def test_released_losses(shared, model):
    inputs = np.load(shared / "fixtures" / model / "inputs.npz")
    outputs = np.load(shared / "fixtures" / model / "outputs.npz")
    ids = inputs["masked_lm_ids"]
    sums = losses.pretraining_sums(
        {
            "masked_lm_logits": outputs["masked_lm_logits"].reshape(*ids.shape, -1),
            "sentence_order_logits": outputs["sentence_order_logits"],
        },
        {
            "masked_lm_ids": ids,
            "masked_lm_weights": inputs["masked_lm_weights"],
            "sentence_order_label": inputs["next_sentence_labels"],
        },
    )
    metrics = losses.pretraining_metrics(sums)
    assert float(metrics["masked_lm_loss"]) == pytest.approx(float(outputs["masked_lm_loss"]), abs=5e-5)
    assert float(metrics["sentence_order_loss"]) == pytest.approx(float(outputs["sentence_order_loss"]), abs=5e-5)
