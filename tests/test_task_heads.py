"""The heads of tasks against NumPy in float64, from their definitions, and against numbers of the released code."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import task_losses
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.task_heads import AnswerableSpanHead, ClassifierHead, SpanHead, TaggerHead
from albert_tf.task_models import (
    AlbertForAnswerableQuestionAnswering,
    AlbertForMultipleChoice,
    AlbertForQuestionAnswering,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
)
from tests import oracle
from tests.checkpoint_files import SIZES

SMALL = {**SIZES, "vocab_size": 50, "num_hidden_layers": 2}


def randomise(model, seed: int = 1) -> dict[str, np.ndarray]:
    """Gives every variable values of its own and returns them, float64, by released name."""
    random = np.random.default_rng(seed)
    weights = {}
    for name, variable in model.named_variables().items():
        value = random.normal(1.0 if name.endswith("gamma") else 0.0, 0.3, variable.shape).astype(np.float32)
        variable.assign(value)
        weights[name] = value.astype(np.float64)
    return weights


def random_batch(*shape: int, seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    lengths = random.integers(shape[-1] // 2, shape[-1] + 1, shape[:-1])
    return {
        "input_ids": random.integers(0, 50, shape, dtype=np.int32),
        "input_mask": (np.arange(shape[-1]) < lengths[..., None]).astype(np.int32),
        "segment_ids": random.integers(0, 2, shape, dtype=np.int32),
    }


def of_encoder(model, inputs: dict[str, np.ndarray], key: str) -> np.ndarray:
    """What the head stands on; the encoder has its own tests."""
    return np.asarray(model.albert(inputs)[key], np.float64)


def log_softmax(x: np.ndarray) -> np.ndarray:
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


@pytest.mark.parametrize("classes", [1, 3])
def test_classifier_and_regression(classes):
    model = AlbertForSequenceClassification(AlbertConfig(**SMALL), num_labels=classes)
    weights, inputs = randomise(model), random_batch(4, 12)
    expected = of_encoder(model, inputs, "pooled_output") @ weights["output_weights"].T + weights["output_bias"]
    np.testing.assert_allclose(model(inputs), expected, atol=2e-6)


def test_tagger_scores_every_position():
    model = AlbertForTokenClassification(AlbertConfig(**SMALL), labels=("O", "B-PER", "I-PER"))
    weights, inputs = randomise(model), random_batch(4, 12)
    expected = of_encoder(model, inputs, "sequence_output") @ weights["output_weights"].T + weights["output_bias"]
    assert model(inputs).shape == (4, 12, 3)
    np.testing.assert_allclose(model(inputs), expected, atol=4e-6)


def test_each_choice_is_read_as_a_sequence_of_its_own():
    model = AlbertForMultipleChoice(AlbertConfig(**SMALL))
    weights, inputs = randomise(model), random_batch(3, 4, 12)
    logits = model(inputs).numpy()
    assert logits.shape == (3, 4)
    for choice in range(4):
        pooled = of_encoder(model, {name: value[:, choice] for name, value in inputs.items()}, "pooled_output")
        expected = pooled @ weights["output_weights"][0] + weights["output_bias"][0]
        np.testing.assert_allclose(logits[:, choice], expected, atol=4e-6)
    with pytest.raises(InputError, match="choices"):
        model(random_batch(3, 12))


def test_span_over_all_positions_whatever_the_mask():
    model = AlbertForQuestionAnswering(AlbertConfig(**SMALL))
    weights, inputs = randomise(model), random_batch(4, 12)
    sequence = of_encoder(model, inputs, "sequence_output")
    outputs = model(inputs)
    assert set(outputs) == {"start_logits", "end_logits"}
    for row, key in enumerate(("start_logits", "end_logits")):
        expected = sequence @ weights["cls/squad/output_weights"][row] + weights["cls/squad/output_bias"][row]
        np.testing.assert_allclose(outputs[key], expected, atol=4e-6)


class AnswerableOracle:
    """The SQuAD v2 head from its definition, one example and one pair of positions at a time."""

    def __init__(self, weights: dict[str, np.ndarray], sequence: np.ndarray, p_mask: np.ndarray):
        self.w, self.sequence, self.p_mask = weights, sequence, p_mask.astype(np.float64)

    def masked(self, logits: np.ndarray, example: int) -> np.ndarray:
        p = self.p_mask[example]
        return logits * (1 - p) - 1e30 * p

    def start_logits(self, example: int) -> np.ndarray:
        scores = self.sequence[example] @ self.w["start_logits/dense/kernel"][:, 0] + self.w["start_logits/dense/bias"]
        return self.masked(scores, example)

    def end_logits(self, example: int, start: int) -> np.ndarray:
        scores = []
        for position in self.sequence[example]:
            seen = np.concatenate([position, self.sequence[example, start]])
            hidden = np.tanh(seen @ self.w["end_logits/dense_0/kernel"] + self.w["end_logits/dense_0/bias"])
            hidden = oracle.layer_norm(
                hidden, self.w["end_logits/LayerNorm/gamma"], self.w["end_logits/LayerNorm/beta"]
            )
            scores.append(hidden @ self.w["end_logits/dense_1/kernel"][:, 0] + self.w["end_logits/dense_1/bias"][0])
        return self.masked(np.array(scores), example)

    def cls_logit(self, example: int) -> float:
        start_share = oracle.softmax(self.start_logits(example))
        vector = sum(share * position for share, position in zip(start_share, self.sequence[example]))
        seen = np.concatenate([vector, self.sequence[example, 0]])
        hidden = np.tanh(seen @ self.w["answer_class/dense_0/kernel"] + self.w["answer_class/dense_0/bias"])
        return hidden @ self.w["answer_class/dense_1/kernel"][:, 0]

    def search(self, example: int, starts: int, ends: int) -> list[tuple[float, int, list[tuple[float, int]]]]:
        """(log probability, start, [(log probability, end), …]) of the best starts, and of the best ends of each."""

        def best(log_probs: np.ndarray, count: int) -> list[tuple[float, int]]:
            return sorted(((value, index) for index, value in enumerate(log_probs)), reverse=True)[:count]

        found = best(log_softmax(self.start_logits(example)), starts)
        return [(value, start, best(log_softmax(self.end_logits(example, start)), ends)) for value, start in found]


@pytest.fixture(scope="module")
def answerable():
    """A model with a search of 3 starts and 2 ends, inputs of 4 examples of 12 pieces, and the oracle of both."""
    model = AlbertForAnswerableQuestionAnswering(AlbertConfig(**SMALL), start_n_top=3, end_n_top=2)
    weights, inputs = randomise(model), random_batch(4, 12)
    p_mask = np.random.default_rng(3).integers(0, 2, (4, 12))
    p_mask[:, [0, 2, 4, 5]] = 0
    inputs["p_mask"] = p_mask.astype(np.int32)
    return model, inputs, AnswerableOracle(weights, of_encoder(model, inputs, "sequence_output"), p_mask)


@pytest.mark.parametrize("training", [False, True])
def test_answerable_span_with_the_true_start(answerable, training):
    model, inputs, expected = answerable
    starts = np.array([0, 5, 2, 4], np.int32)
    outputs = model({**inputs, "start_positions": starts}, training=training, dropout_seed=tf.constant([1, 2]))
    assert all(outputs[key].dtype == tf.float32 for key in ("start_logits", "end_logits", "cls_logits"))
    for example, start in enumerate(starts):
        np.testing.assert_allclose(outputs["start_logits"][example], expected.start_logits(example), atol=1e-5)
        np.testing.assert_allclose(outputs["end_logits"][example], expected.end_logits(example, start), atol=1e-5)
        if not training:  # there it is behind a dropout
            np.testing.assert_allclose(outputs["cls_logits"][example], expected.cls_logit(example), atol=1e-5)


@pytest.mark.parametrize("with_true_start", [False, True])
def test_answerable_span_search(answerable, with_true_start):
    model, inputs, expected = answerable
    if with_true_start:  # which the search must not see
        inputs = {**inputs, "start_positions": np.array([[4], [4], [4], [4]], np.int32)}
    outputs = {key: value.numpy() for key, value in model(inputs).items()}
    assert ("end_logits" in outputs) == with_true_start
    assert outputs["start_top_index"].shape == (4, 3) and outputs["end_top_index"].shape == (4, 6)
    for example in range(4):
        np.testing.assert_allclose(outputs["cls_logits"][example], expected.cls_logit(example), atol=1e-5)
        for rank, (value, start, ends) in enumerate(expected.search(example, 3, 2)):
            assert outputs["start_top_index"][example, rank] == start
            np.testing.assert_allclose(outputs["start_top_log_probs"][example, rank], value, atol=1e-5)
            own = slice(2 * rank, 2 * rank + 2)
            assert outputs["end_top_index"][example, own].tolist() == [end for _, end in ends]
            np.testing.assert_allclose(outputs["end_top_log_probs"][example, own], [v for v, _ in ends], atol=1e-5)


def test_answerable_span_search_over_fewer_positions_than_it_follows(answerable):
    model, inputs, _ = answerable
    short = model({name: value[:, :2] for name, value in inputs.items()})
    assert short["start_top_index"].shape == (4, 2) and short["end_top_index"].shape == (4, 4)
    assert np.isfinite(short["cls_logits"]).all()


def test_answerable_span_without_p_mask_leaves_out_padding_alone(answerable):
    model, inputs, _ = answerable
    bare = {key: value for key, value in inputs.items() if key != "p_mask"}
    outputs = model(bare)
    assert ((outputs["start_logits"].numpy() < -1e29) == (inputs["input_mask"] == 0)).all()
    given = model({**bare, "p_mask": (1 - inputs["input_mask"]).astype(np.float32)})
    np.testing.assert_array_equal(outputs["end_top_log_probs"], given["end_top_log_probs"])
    assert (model({"input_ids": inputs["input_ids"]})["start_logits"].numpy() > -1e29).all()


@pytest.mark.parametrize("head_class, shape", [(ClassifierHead, (64, 24)), (TaggerHead, (8, 12, 24))])
def test_dropout_of_the_classifiers_own_rate(head_class, shape):
    config = AlbertConfig.from_dict({**SMALL, "classifier_dropout_prob": 0.25})  # hidden_dropout_prob is 0
    head = head_class(config, 24)
    head.build()
    head.output_weights.assign(np.eye(24))  # the logits are then what came through the dropout
    hidden = np.random.default_rng(0).uniform(1, 2, shape).astype(np.float32)
    dropped = head(hidden, dropout_seed=tf.constant([3, 4])).numpy()
    kept = dropped != 0
    assert abs(1 - kept.mean() - 0.25) < 0.04
    np.testing.assert_allclose(dropped[kept], hidden[kept] / 0.75, rtol=1e-6)
    np.testing.assert_allclose(head(hidden), hidden, rtol=1e-6)


def test_dropout_of_the_answerability():
    config = AlbertConfig.from_dict({**SMALL, "classifier_dropout_prob": 0.25})
    head = AnswerableSpanHead(config)
    head.build()
    head.answer_dense_0.bias.assign(np.ones(24))
    head.answer_dense_0.kernel.assign(np.zeros((48, 24)))
    head.answer_dense_1.kernel.assign(np.eye(24)[:, :1])
    logits = head(np.ones((600, 3, 24), np.float32), np.zeros((600, 3)), dropout_seed=tf.constant([3, 4]))["cls_logits"]
    dropped = logits.numpy() == 0
    assert abs(dropped.mean() - 0.25) < 0.05
    np.testing.assert_allclose(logits.numpy()[~dropped], math.tanh(1) / 0.75, rtol=1e-6)


@pytest.mark.parametrize(
    "model_class, training_inputs",
    [
        (AlbertForSequenceClassification, {}),
        (AlbertForTokenClassification, {}),
        (AlbertForAnswerableQuestionAnswering, {"start_positions": np.array([1, 2, 3], np.int32)}),
    ],
)
def test_the_seed_alone_decides_the_heads_dropout(model_class, training_inputs):
    labels = {"num_labels": 3} if model_class.kind in ("classifier", "tagger") else {}
    model = model_class(AlbertConfig.from_dict({**SMALL, "classifier_dropout_prob": 0.5}), **labels)
    randomise(model)
    inputs = {**random_batch(3, 12), **training_inputs}

    def run(**arguments):
        return np.concatenate([np.ravel(value) for value in tf.nest.flatten(model(inputs, **arguments))])

    first, same, other = (run(training=True, dropout_seed=tf.constant([seed, 0])) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert np.abs(first - other).max() > 1e-3
    assert np.abs(run(training=True) - run(training=True)).max() > 1e-3
    np.testing.assert_array_equal(run(dropout_seed=tf.constant([1, 0])), run(training=False))


def test_initial_values_of_the_heads():
    tf.keras.utils.set_random_seed(2)
    config = AlbertConfig.from_dict({**SMALL, "hidden_size": 768, "initializer_range": 0.1})
    classifier, span, answerable = ClassifierHead(config, 8), SpanHead(config), AnswerableSpanHead(config)
    for head in (classifier, span, answerable):
        head.build()
    for weights in (classifier.output_weights, span.output_weights):  # 0.02 whatever the config says
        value = np.asarray(weights)
        assert np.abs(value).max() <= 0.0400001 and abs(value.std() - 0.0176) < 0.001
    kernels = [np.asarray(variable) for variable in answerable.trainable_variables if len(variable.shape) == 2]
    assert len(kernels) == 5 and all(abs(kernel.std() - 0.088) < 0.005 for kernel in kernels)
    assert len({kernel.ravel()[:8].tobytes() for kernel in kernels}) == 5
    assert not np.asarray(classifier.output_bias).any() and not np.asarray(span.output_bias).any()


def test_losses_against_numpy():
    random = np.random.default_rng(0)
    logits, labels = random.normal(size=(5, 4)), np.array([0, 3, 1, 1, 2])
    start, end, cls = (random.normal(size=shape).astype(np.float32) for shape in ((5, 7), (5, 7), (5,)))
    starts, ends, impossible = np.array([0, 6, 2, 3, 0]), np.array([1, 6, 4, 3, 0]), np.array([0, 1, 0, 0, 1])
    rows = np.arange(5)

    def cross_entropy(scores, targets):
        return -log_softmax(scores.astype(np.float64))[rows, targets]

    np.testing.assert_allclose(
        task_losses.classification_losses(logits, labels[:, None]), cross_entropy(logits, labels), atol=1e-6
    )
    scores = random.normal(size=(5, 1)).astype(np.float32)
    wanted = random.uniform(0, 5, 5).astype(np.float32)
    np.testing.assert_allclose(task_losses.regression_losses(scores, wanted), (scores[:, 0] - wanted) ** 2, rtol=1e-5)
    span = (cross_entropy(start, starts) + cross_entropy(end, ends)) / 2
    np.testing.assert_allclose(task_losses.span_losses(start, end, starts, ends), span, atol=1e-6)
    probability = 1 / (1 + np.exp(-cls.astype(np.float64)))
    answerability = -np.log(np.where(impossible == 1, probability, 1 - probability))
    losses = task_losses.answerable_span_losses(start, end, cls, starts[:, None], ends, impossible[:, None])
    np.testing.assert_allclose(losses, span + answerability / 2, atol=1e-6)


def assign_checkpoint(model, prefix) -> None:
    reader = tf.train.load_checkpoint(str(prefix))
    for name, variable in model.named_variables().items():
        variable.assign(reader.get_tensor(name))


def test_released_classifier(shared):
    folders = sorted((shared / "fixtures").glob("head_classifier*"))
    assert folders
    for folder in folders:
        meta = json.loads((folder / "meta.json").read_text())
        inputs, expected = dict(np.load(folder / "inputs.npz")), np.load(folder / "outputs.npz")
        config = AlbertConfig.from_json_file(folder / "config.json")
        model = AlbertForSequenceClassification(config, num_labels=meta["num_labels"])
        assign_checkpoint(model, folder / "model.ckpt")
        logits = model(inputs)
        np.testing.assert_allclose(
            model.albert(inputs)["pooled_output"], expected["pooled_output"], atol=2e-5, rtol=1e-5
        )
        np.testing.assert_allclose(logits, expected["logits"].reshape(logits.shape), atol=2e-5, rtol=1e-5)
        of_task = task_losses.regression_losses if meta["num_labels"] == 1 else task_losses.classification_losses
        losses = of_task(logits, inputs["label_ids"])
        np.testing.assert_allclose(losses, expected["per_example_loss"], atol=5e-5)
        np.testing.assert_allclose(np.mean(losses), expected["loss"], atol=5e-5)


def test_released_span_head(shared):
    folders = sorted((shared / "fixtures").glob("head_squad_v1*"))
    assert folders
    for folder in folders:
        inputs, expected = dict(np.load(folder / "inputs.npz")), np.load(folder / "outputs.npz")
        model = AlbertForQuestionAnswering(AlbertConfig.from_json_file(folder / "config.json"))
        assign_checkpoint(model, folder / "model.ckpt")
        outputs = model(inputs)
        for key in ("start_logits", "end_logits"):
            np.testing.assert_allclose(outputs[key], expected[key], atol=2e-5, rtol=1e-5)
        losses = task_losses.span_losses(
            outputs["start_logits"], outputs["end_logits"], inputs["start_positions"], inputs["end_positions"]
        )
        np.testing.assert_allclose(np.mean(losses), expected["total_loss"], atol=5e-5)
