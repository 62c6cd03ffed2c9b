"""Strings in, labels out: learning with Keras' fit, answers, keeping, strategies, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf import task_model
from albert_tf.errors import InputError
from albert_tf.head_config import MULTI_LABEL, HeadConfig
from albert_tf.task_kinds.texts import TextKind
from albert_tf.tasks.text_file import text_file_task
from tests import logical_devices, pipeline_models

LABELS = ["minus", "plus"]
TRAIN, DEV = pipeline_models.texts_with_labels(128), pipeline_models.texts_with_labels(64, seed=1)
EPOCHS = 4


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    tf.keras.utils.set_random_seed(7)
    return pipeline_models.write_encoder(tmp_path_factory.mktemp("text_classifier") / "encoder")


def train(encoder, **arguments):
    tf.keras.utils.set_random_seed(3)
    classifier = albert_tf.TextClassifier.from_pretrained(encoder, labels=LABELS)
    classifier.compile(learning_rate=pipeline_models.RATE)
    history = classifier.fit(*TRAIN, DEV, epochs=EPOCHS, batch_size=16, verbose=0, **arguments)
    return classifier, history.history


@pytest.fixture(scope="module")
def trained(encoder):
    return train(encoder)


def weights_of(classifier) -> np.ndarray:
    return np.concatenate([np.ravel(variable) for variable in classifier.model.named_variables().values()])


def logits_of(classifier, texts, pairs=None) -> np.ndarray:
    return classifier.model(classifier.tokenizer(texts, pairs, max_length=32)).numpy()


def softmax(logits: np.ndarray) -> np.ndarray:
    return np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)


def test_it_learns_and_says_how(trained):
    classifier, history = trained
    assert set(history) == {"loss", "accuracy", "val_loss", "val_accuracy", "val_macro_f1"}
    assert {len(values) for values in history.values()} == {EPOCHS}
    assert history["loss"][-1] < 0.5 * history["loss"][0]
    assert history["val_accuracy"][-1] > 0.95
    assert history["accuracy"][-1] > 0.95


def test_equal_seeds_give_equal_trainings(encoder, trained):
    again, history = train(encoder)
    np.testing.assert_allclose(weights_of(again), weights_of(trained[0]), rtol=0, atol=1e-6)
    np.testing.assert_allclose(history["val_loss"], trained[1]["val_loss"], rtol=0, atol=1e-6)
    again.fit(*TRAIN, epochs=1, batch_size=16, seed=1, verbose=0)  # a further training starts a schedule of its own
    assert np.abs(weights_of(again) - weights_of(trained[0])).max() > 1e-4


def test_predictions_are_the_softmax_of_the_logits(trained):
    classifier, texts = trained[0], ["a x b", "", "y", "c " * 200 + "x", "a b y c d e f g a b c"]
    wanted = softmax(logits_of(classifier, texts))
    for batch_size in (1, 3, 32):
        predictions = classifier.predict(texts, batch_size=batch_size)
        for prediction, row in zip(predictions, wanted):
            assert list(prediction.probabilities) == LABELS
            np.testing.assert_allclose(list(prediction.probabilities.values()), row, atol=1e-5)
            assert prediction.label == LABELS[int(row.argmax())]
            assert prediction.probability == max(prediction.probabilities.values())
    assert classifier.predict([]) == []


def test_evaluation_is_that_of_the_definition_and_repeats(trained):
    classifier = trained[0]
    scores = classifier.evaluate(*DEV)
    logits = logits_of(classifier, DEV[0])
    numbers = np.array([LABELS.index(label) for label in DEV[1]])
    np.testing.assert_allclose(scores["loss"], -np.log(softmax(logits))[np.arange(64), numbers].mean(), atol=1e-5)
    assert scores["accuracy"] == pytest.approx((logits.argmax(-1) == numbers).mean())
    assert classifier.evaluate(*DEV) == scores
    np.testing.assert_allclose(scores["loss"], trained[1]["val_loss"][-1], atol=1e-5)


def test_saved_and_read_again_it_answers_the_same(trained, tmp_path):
    classifier = trained[0]
    classifier.save(tmp_path / "run" / "model")
    for path in (tmp_path / "run" / "model", tmp_path / "run"):  # the second is the shape of a run's output directory
        again = albert_tf.TextClassifier.from_pretrained(path)
        assert again.predict(DEV[0]) == classifier.predict(DEV[0])
        assert (again.labels, again.about, again.kind.settings) == (
            classifier.labels,
            {"format": 1, "pairs": False},
            classifier.kind.settings,
        )
    shorter = albert_tf.TextClassifier.from_pretrained(tmp_path / "run", max_seq_length=8)
    assert shorter.kind.settings == {"max_seq_length": 8}
    model = albert_tf.AlbertForSequenceClassification.from_pretrained(tmp_path / "run" / "model")
    np.testing.assert_array_equal(model(classifier.tokenizer("a x")), classifier.model(classifier.tokenizer("a x")))


def test_callbacks_and_an_optimizer_of_ones_own(encoder):
    tf.keras.utils.set_random_seed(3)
    classifier = albert_tf.TextClassifier.from_pretrained(encoder, labels=LABELS)
    seen = []
    stop = tf.keras.callbacks.EarlyStopping("val_accuracy", patience=0, restore_best_weights=True, baseline=2.0)
    watch = tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(dict(logs)))
    optimizer = tf.keras.optimizers.Adam(0.0)
    classifier.compile(optimizer, metrics=["macro_f1", "accuracy", tf.keras.metrics.SparseTopKCategoricalAccuracy(2)])
    before = weights_of(classifier)
    classifier.about = {"task": "sst-2", "scores": {"dev": {"accuracy": 0.9}}}
    history = classifier.fit(*TRAIN, DEV, epochs=9, batch_size=64, callbacks=[stop, watch], verbose=0)
    assert len(history.epoch) == 2 and len(seen) == 2  # Keras never stops after the first
    assert {"loss", "accuracy", "val_loss", "val_macro_f1", "val_accuracy"} <= set(seen[0])
    assert seen[0]["val_sparse_top_k_categorical_accuracy"] == 1.0  # of two classes
    np.testing.assert_array_equal(weights_of(classifier), before)  # the rate is 0
    assert int(optimizer.iterations) == 2 * 128 // 64
    assert classifier.about == {"task": "sst-2", "pairs": False}  # the scores were those of other weights


def without_dropout(encoder, **head):
    tf.keras.utils.set_random_seed(5)
    config = albert_tf.AlbertModel.from_pretrained(encoder).config
    model = albert_tf.AlbertForSequenceClassification.from_pretrained(
        encoder, config=config.replace(classifier_dropout_prob=0.0), **head
    )
    return albert_tf.TextClassifier(model, model.vocabulary.tokenizer(), TextKind(model.head, max_seq_length=32))


def test_two_replicas_learn_what_one_learns(encoder):
    results = []
    texts, labels = zip(*[both for both in zip(*TRAIN) if len(both[0]) < 13][:21])  # of one bucket, the last not full
    for replicas in (1, 2):
        strategy = logical_devices.mirrored() if replicas == 2 else tf.distribute.get_strategy()
        with strategy.scope():
            classifier = without_dropout(encoder, labels=LABELS)
        classifier.compile(learning_rate=pipeline_models.RATE)
        history = classifier.fit(texts, labels, (texts[:9], labels[:9]), epochs=1, batch_size=8, verbose=0).history
        results.append((history, weights_of(classifier), classifier.predict(texts[:9], batch_size=8)))
    with pytest.raises(InputError, match="a global batch of 7 examples cannot be divided evenly among 2 replica"):
        classifier.fit(texts, labels, batch_size=7)
    assert classifier.predict(texts[:9], batch_size=7) == results[1][2]  # of 8, what two can share
    assert classifier.evaluate(texts, labels, batch_size=7) == classifier.evaluate(texts, labels, batch_size=8)
    one, two = results
    np.testing.assert_allclose(one[1], two[1], atol=2e-5)
    for name, values in one[0].items():
        np.testing.assert_allclose(two[0][name], values, atol=1e-4, err_msg=name)
    for first, second in zip(one[2], two[2]):
        assert first.label == second.label
        assert first.probability == pytest.approx(second.probability, abs=1e-4)


def test_pairs_and_several_labels_at_once(encoder):
    tf.keras.utils.set_random_seed(3)
    classifier = albert_tf.TextClassifier.from_pretrained(encoder, labels=["p", "q", "r"], multi_label=True)
    pairs = [("a b", "x"), ("c", "y z"), ("", "d"), ("e f g", "")]
    labels = [["p"], ("q", "p"), [], {"r"}]
    history = classifier.fit(pairs, labels, (pairs, labels), epochs=1, batch_size=4, verbose=0).history
    assert set(history) == {
        "loss",
        "val_loss",
        *(f"val_{name}" for name in text_file_task(problem=MULTI_LABEL).metrics),
    }
    assert classifier.about == {"pairs": True}
    probabilities = 1 / (1 + np.exp(-logits_of(classifier, *zip(*pairs))))
    truth = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 0, 1]])
    with pytest.raises(InputError, match="text 0: this classifier has learned from pairs of texts.* this is a single"):
        classifier.predict(["a b"])
    with pytest.raises(InputError, match="text 0: this classifier has learned from pairs of texts.* this is a single"):
        classifier.evaluate(["a b"], labels[:1])
    with pytest.raises(InputError, match="validation text 0: this classifier is to learn from pairs"):
        classifier.fit(pairs, labels, (["a"], labels[:1]))
    scores = classifier.evaluate(pairs, labels)
    wanted = -np.where(truth, np.log(probabilities), np.log(1 - probabilities)).mean()
    np.testing.assert_allclose(scores["loss"], wanted, atol=1e-5)
    assert scores["accuracy"] == ((probabilities > 0.5) == truth).all(-1).mean()
    for prediction, row in zip(classifier.predict(pairs), probabilities):
        np.testing.assert_allclose(list(prediction.probabilities.values()), row, atol=1e-5)
        assert prediction.label == tuple(name for name, value in zip("pqr", row) if value > 0.5)
        assert prediction.probability is None


@pytest.mark.parametrize(
    "names, given",
    [
        ([0, 1], [1, 0]),
        ([0, 1], np.array([1, 0])),
        (np.array([0, 1]), ["1", "0"]),
        ([False, True], [True, np.bool_(False)]),
    ],
)
def test_labels_that_are_numbers(encoder, names, given):
    classifier = albert_tf.TextClassifier.from_pretrained(encoder, labels=names)
    assert classifier.labels == tuple(str(name) for name in names)
    history = classifier.fit(["x", "y"], given, (["x", "y"], given), epochs=1, batch_size=2, verbose=0).history
    truth = [str(label) for label in given]
    answers = [prediction.label for prediction in classifier.predict(["x", "y"])]
    assert history["val_accuracy"] == [np.mean([one == other for one, other in zip(answers, truth)])]
    assert classifier.evaluate(["x", "y"], given)["accuracy"] == history["val_accuracy"][0]


def test_several_labels_that_are_numbers(encoder):
    classifier = albert_tf.TextClassifier.from_pretrained(encoder, labels=[3, 10, 20], multi_label=True)
    by_name = [["10", "3"], [], ["20"], ["3"]]
    by_number = [{10, 3}, (), np.array([20]), [np.int64(3)]]
    texts = ["a", "b", "c", "d"]
    assert classifier.evaluate(texts, by_number) == classifier.evaluate(texts, by_name)
    with pytest.raises(InputError, match="text 0: the label is '4', but must be one of 3, 10, 20"):
        classifier.evaluate(["a"], [[4]])


def test_numbers(encoder):
    classifier = without_dropout(encoder, num_labels=1)
    numbers = [0.0, 2.5, 5.0, 1.0]
    scores = classifier.evaluate(DEV[0][:4], numbers)
    assert scores["mean_squared_error"] == pytest.approx(scores["loss"], rel=1e-5)
    values = logits_of(classifier, DEV[0][:4])[:, 0]
    np.testing.assert_allclose(scores["loss"], np.square(values - numbers).mean(), rtol=1e-5)
    predictions = classifier.predict(DEV[0][:4])
    answers = [prediction.label for prediction in predictions]
    np.testing.assert_allclose(answers, values, atol=1e-5)
    assert scores["pearson"] == pytest.approx(np.corrcoef(answers, numbers)[0, 1], abs=1e-6)
    assert {(prediction.probability, *prediction.probabilities) for prediction in predictions} == {(None,)}
    assert classifier.labels == ()
    regression = albert_tf.TextClassifier.from_pretrained(encoder, regression=True)
    assert regression.model.head == HeadConfig("classifier", 1, (), "regression")


def test_the_recipe_decides_what_is_not_said(encoder):
    classifier = albert_tf.TextClassifier.from_pretrained(encoder, labels=LABELS)
    assert classifier.model.config.classifier_dropout_prob == 0.1
    assert classifier.kind.settings == {"max_seq_length": 32}  # the model has no more positions
    optimizer = classifier._default_optimizer(100)
    rates = [float(optimizer._learning_rate(step)) for step in (5, 10)]
    np.testing.assert_allclose(rates, [classifier.recipe.learning_rate * share for share in (0.5, 0.9)], rtol=1e-6)


def test_what_does_not_fit_is_refused(encoder, trained, tmp_path):
    classifier, load = trained[0], albert_tf.TextClassifier.from_pretrained
    classifier.save(tmp_path / "kept")
    with pytest.raises(InputError, match="no head for a task.*TextClassifier.*labels="):
        load(encoder)
    for begin in (lambda **more: load(encoder, labels=LABELS, **more), lambda **more: load(tmp_path / "kept", **more)):
        with pytest.raises(InputError, match="max_seq_length is 1024, but the model has 32 positions"):
            begin(max_seq_length=1024)
    with pytest.raises(InputError, match="labels is the string 'ab'"):
        load(encoder, labels="ab")
    with pytest.raises(InputError, match="a regression has no labels"):
        load(encoder, labels=LABELS, regression=True)
    with pytest.raises(InputError, match="texts is the string 'a x'"):
        classifier.predict("a x")
    with pytest.raises(InputError, match="2 texts, 1 labels"):
        classifier.fit(["a", "b"], ["plus"])
    with pytest.raises(InputError, match="text 1: the label is 'plsu', but must be one of minus, plus"):
        classifier.fit(["a", "b"], ["plus", "plsu"])
    with pytest.raises(InputError, match="validation text 0: there is no label"):
        classifier.fit(["a"], ["plus"], (["b"], [None]))
    with pytest.raises(InputError, match="text 1 is 3, but must be a string or a pair"):
        classifier.predict(["a", 3])
    with pytest.raises(InputError, match="some texts are single strings and some are pairs"):
        classifier.predict(["a", ("a", "b")])
    for texts in (None, 5, {"a": 1}, {"a"}):
        with pytest.raises(InputError, match="texts is .*, but must be a list"):
            classifier.predict(texts)
    with pytest.raises(InputError, match="labels is 2, but must be a list of names"):
        load(encoder, labels=2)
    with pytest.raises(InputError, match=r"labels\[1\] is None, but must be a string"):
        load(encoder, labels=["a", None])
    with pytest.raises(InputError, match="labels names 'a' alone: give two or more"):
        load(encoder, labels=["a"])
    with pytest.raises(InputError, match=r"validation_data must be the tuple \(texts, labels\)"):
        classifier.fit(["a"], ["plus"], ["a"])
    with pytest.raises(InputError, match="nothing to learn from"):
        classifier.fit([], [])
    with pytest.raises(InputError, match="no metric 'f2': there are accuracy"):
        classifier.compile(metrics=["f2"])
    with pytest.raises(InputError, match="learning_rate is the default optimizer's"):
        classifier.compile("adam", learning_rate=1e-3)
    classifier.compile()
    model = albert_tf.AlbertForMultipleChoice(classifier.model.config)
    model.save_pretrained(tmp_path / "choices", classifier.tokenizer)
    with pytest.raises(InputError, match="TextClassifier works with a head of the kind classifier"):
        load(tmp_path / "choices")
    assert task_model.find(str(tmp_path / "choices")) is None


def test_a_callback_keeps_weights_but_not_the_keras_model(encoder, tmp_path):
    classifier = albert_tf.TextClassifier.from_pretrained(encoder, labels=LABELS)
    with pytest.raises(InputError, match="give it save_weights_only=True"):
        keep = tf.keras.callbacks.ModelCheckpoint(str(tmp_path / "model.keras"))
        classifier.fit(["x"], ["plus"], callbacks=[keep], verbose=0)
    keep = tf.keras.callbacks.ModelCheckpoint(str(tmp_path / "kept.weights.h5"), save_weights_only=True)
    classifier.fit(["x"], ["plus"], epochs=1, callbacks=[keep], verbose=0)
    assert (tmp_path / "kept.weights.h5").stat().st_size > 0


def test_float16_predicts_and_is_refused_where_gradients_would_vanish(encoder):
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        classifier = albert_tf.TextClassifier.from_pretrained(encoder, labels=LABELS)
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")
    assert classifier.predict(["x"])[0].label in LABELS
    with pytest.raises(InputError, match="no loss scale: load it under the policy mixed_bfloat16 or float32"):
        classifier.fit(*TRAIN, verbose=0)
