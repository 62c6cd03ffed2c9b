"""The models as Keras models: configs, files, summaries, training, and as layers of other models."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf import task_losses, weight_names
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.head_config import KINDS, HeadConfig
from albert_tf.optimizers import AdamW, Lamb
from tests import logical_devices
from tests.checkpoint_files import SIZES

SMALL = {**SIZES, "vocab_size": 50, "num_hidden_layers": 2}
NAMES = [name for name in albert_tf.__all__ if name.startswith("Albert") and name != "AlbertConfig"]
CLASSES = {getattr(albert_tf, name).kind: getattr(albert_tf, name) for name in NAMES}
LABELLED = {"classifier": {"num_labels": 3}, "tagger": {"labels": ("O", "B", "I")}}


@pytest.fixture(autouse=True)
def _float32_policy():
    yield
    tf.keras.mixed_precision.set_global_policy("float32")


def make(kind: str, **changes):
    return CLASSES[kind](AlbertConfig.from_dict({**SMALL, **changes}), **LABELLED.get(kind, {}))


def make_inputs(kind: str, batch: int = 4, length: int = 12) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    shape = (batch, 3, length) if kind == "multiple_choice" else (batch, length)
    inputs = {
        "input_ids": random.integers(8, 50, shape, dtype=np.int32),
        "input_mask": (np.arange(length) < random.integers(6, length + 1, shape[:-1])[..., None]).astype(np.int32),
        "segment_ids": random.integers(0, 2, shape, dtype=np.int32),
    }
    if kind == "answerable_span":
        inputs["start_positions"] = random.integers(0, 6, batch, dtype=np.int32)
    return inputs


def randomise(model) -> None:
    random = np.random.default_rng(1)
    for name, variable in model.named_variables().items():
        variable.assign(random.normal(1.0 if name.endswith("gamma") else 0.0, 0.2, variable.shape))


def flat(outputs) -> np.ndarray:
    return np.concatenate([np.ravel(output) for output in tf.nest.flatten(outputs)])


def cross_entropy():
    return tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def path_of(variable) -> str:
    return getattr(variable, "path", variable.name.split(":")[0])


def test_there_is_a_model_for_every_kind_of_head():
    assert set(CLASSES) == set(KINDS)
    assert {kind: known.model_class for kind, known in KINDS.items()} == {
        kind: model_class.__name__ for kind, model_class in CLASSES.items()
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"embedding_size": 24},
        {"embedding_size": 24, "embedding_projection": True, "parameter_sharing": "none"},
        {"parameter_sharing": "attention", "num_hidden_groups": 2, "inner_group_num": 2},
    ],
)
def test_names_and_shapes_are_those_of_the_table(kind, changes):
    model = make(kind, **changes)
    variables = model.named_variables()
    shapes = {name: tuple(variable.shape) for name, variable in variables.items()}
    assert shapes == weight_names.variable_shapes(model.config, model.head)
    assert {id(variable) for variable in variables.values()} == {id(variable) for variable in model.trainable_variables}
    assert len(model.weights) == len(variables)
    tables = [name for name, shape in shapes.items() if len(shape) > 1 and model.config.vocab_size in shape]
    assert tables == ["bert/embeddings/word_embeddings"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_config_makes_the_same_model_again(kind):
    model = make(kind, parameter_sharing="ffn", classifier_dropout_prob=0.25)
    values = json.loads(json.dumps(model.get_config()))
    again = type(model).from_config(values)
    assert (again.config, again.head, again.name) == (model.config, model.head, model.name)
    assert again.get_config() == model.get_config()
    assert list(again.named_variables()) == list(model.named_variables())


def test_what_else_a_config_holds():
    albert = albert_tf.AlbertModel(AlbertConfig(**SMALL), with_pooler=False, name="body")
    again = type(albert).from_config(albert.get_config())
    assert again.pooler is None and again.name == "body" and "pooled_output" not in again(make_inputs("encoder"))
    model = CLASSES["answerable_span"](AlbertConfig(**SMALL), start_n_top=2, end_n_top=3)
    again = type(model).from_config(model.get_config())
    assert again(make_inputs("answerable_span"))["end_top_index"].shape == (4, 6)
    head = HeadConfig("classifier", labels=("no", "yes"), problem_type="multi_label_classification")
    model = CLASSES["classifier"](AlbertConfig(**SMALL), head)
    assert type(model).from_config(model.get_config()).head == head


def test_a_head_that_does_not_fit_is_refused():
    config = AlbertConfig(**SMALL)
    with pytest.raises(InputError, match="'span'.*AlbertForMaskedLM.*'masked_lm'"):
        CLASSES["masked_lm"](config, HeadConfig("span"))
    with pytest.raises(InputError, match="num_labels"):
        CLASSES["classifier"](config)
    with pytest.raises(InputError, match="one of the two"):
        CLASSES["classifier"](config, HeadConfig("classifier", 2), num_labels=2)
    with pytest.raises(InputError, match="num_labels is 2, but 1 labels"):
        CLASSES["tagger"](config, num_labels=2, labels=("O",))


@pytest.mark.parametrize("kind", KINDS)
def test_a_keras_file_holds_weights_and_outputs(kind, tmp_path):
    model, inputs = make(kind, parameter_sharing="attention", num_hidden_groups=2), make_inputs(kind)
    randomise(model)
    model.save(tmp_path / "model.keras")
    loaded = tf.keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded) is type(model) and loaded.head == model.head
    others = loaded.named_variables()
    for name, variable in model.named_variables().items():
        np.testing.assert_array_equal(np.asarray(variable), np.asarray(others[name]), err_msg=name)
    np.testing.assert_array_equal(flat(model(inputs)), flat(loaded(inputs)))


def test_an_object_checkpoint_and_a_weights_file_hold_every_weight(tmp_path):
    for kind in ("pretraining", "answerable_span"):
        model, others = make(kind, parameter_sharing="ffn"), [make(kind, parameter_sharing="ffn") for _ in range(2)]
        randomise(model)
        path = tf.train.Checkpoint(model=model).write(str(tmp_path / kind))
        tf.train.Checkpoint(model=others[0]).read(path).assert_consumed()
        model.save_weights(tmp_path / f"{kind}.weights.h5")
        others[1].load_weights(tmp_path / f"{kind}.weights.h5")
        for name, variable in model.named_variables().items():
            for other in others:
                np.testing.assert_array_equal(
                    np.asarray(variable), np.asarray(other.named_variables()[name]), err_msg=name
                )


def test_a_new_process_trains_on_as_if_it_were_the_old_one(tmp_path):
    model, inputs = make("classifier", classifier_dropout_prob=0.0), make_inputs("classifier")
    labels = np.array([0, 2, 1, 1], np.int32)
    model.compile(AdamW(1e-3), cross_entropy())
    first = model.train_on_batch(inputs, labels)
    for _ in range(19):
        last = model.train_on_batch(inputs, labels)
    assert np.ravel(last)[0] < np.ravel(first)[0]
    model.save(tmp_path / "model.keras")
    np.savez(tmp_path / "batch.npz", labels=labels, **inputs)
    command = [sys.executable, "-m", "tests.keras_next_process"]
    files = [str(tmp_path / name) for name in ("model.keras", "batch.npz", "output.npz")]
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    result = subprocess.run([*command, *files], cwd=root, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    other = np.load(tmp_path / "output.npz")
    np.testing.assert_allclose(other["predictions"], model.predict(inputs, verbose=0), atol=1e-6)
    uninterrupted = [float(np.ravel(model.train_on_batch(inputs, labels))[0]) for _ in range(2)]
    np.testing.assert_allclose(other["losses"], uninterrupted, atol=1e-6)  # the second is behind a step with old slots


@pytest.mark.parametrize("sharing, blocks", [("all", 1), ("none", 2)])
def test_the_summary_shows_a_shared_block_once(sharing, blocks):
    lines: list[str] = []
    make("classifier", parameter_sharing=sharing).summary(line_length=120, print_fn=lambda *text: lines.append(text[0]))
    text = "\n".join(lines)
    for part in ("block_", "attention_", "feed_forward_"):
        assert text.count(part) == blocks, part
    for part in ("embeddings", "encoder", "pooler", "classifier (ClassifierHead)"):
        assert part in text


def test_paths_of_variables_name_the_parts():
    for kind in ("encoder", "classifier", "span"):
        paths = {path_of(variable) for variable in make(kind).weights}
        assert len(paths) == len(make(kind).weights)
        attention = "albert/encoder/block_0/attention_0_0"
        assert {f"{attention}/{part}/kernel" for part in ("query", "key", "value", "output")} <= paths
        assert {f"albert/embeddings/{part}_embeddings" for part in ("word", "position", "token_type")} <= paths
        assert ("albert/pooler/dense/kernel" in paths) == (kind != "span")
    paths = [path_of(variable) for variable in make("classifier").weights]
    assert "albert_for_sequence_classification/classifier/output_weights" in paths
    assert [layer.name for layer in make("pretraining").layers] == ["albert", "masked_lm", "sentence"]
    assert [layer.name for layer in make("encoder").layers] == ["embeddings", "encoder", "pooler"]


@pytest.mark.parametrize(
    "kind, optimizer, labels",
    [
        ("classifier", lambda: tf.keras.optimizers.Adam(3e-3), np.array([0, 2, 1, 1])),
        ("multiple_choice", lambda: Lamb(3e-3), np.array([0, 2, 1, 1])),
        ("tagger", lambda: tf.keras.optimizers.SGD(0.1), np.arange(48).reshape(4, 12) % 3),
        ("masked_lm", lambda: AdamW(3e-3), np.arange(48).reshape(4, 12)),
    ],
)
def test_compile_fit_evaluate_and_predict(kind, optimizer, labels):
    tf.keras.utils.set_random_seed(1)
    model, inputs = make(kind, num_hidden_layers=1), make_inputs(kind)
    model.compile(optimizer(), cross_entropy(), metrics=["accuracy"])
    before, _ = model.evaluate(inputs, labels, verbose=0)
    model.fit(inputs, labels, epochs=6, batch_size=2, verbose=0)
    after, _ = model.evaluate(inputs, labels, verbose=0)
    assert after < before
    logits = model.predict(inputs, batch_size=2, verbose=0)
    np.testing.assert_allclose(logits, model(inputs), atol=1e-5)
    wanted = np.log(np.exp(logits).sum(-1)) - np.take_along_axis(logits, labels[..., None], -1)[..., 0]
    np.testing.assert_allclose(after, wanted.mean(), atol=1e-5)


def test_fit_with_several_outputs():
    tf.keras.utils.set_random_seed(1)
    model = make("answerable_span", num_hidden_layers=1, classifier_dropout_prob=0.0)
    inputs = make_inputs("answerable_span")
    labels = {
        "start_logits": np.array([1, 0, 3, 2], np.int32),
        "end_logits": np.array([2, 0, 3, 4], np.int32),
        "cls_logits": np.array([0.0, 1.0, 0.0, 0.0], np.float32),
    }
    inputs["start_positions"] = labels["start_logits"]
    impossible = tf.keras.losses.BinaryCrossentropy(from_logits=True)
    model.compile(
        AdamW(3e-3), {"start_logits": cross_entropy(), "end_logits": cross_entropy(), "cls_logits": impossible}
    )
    before = model.evaluate(inputs, labels, verbose=0, return_dict=True)["loss"]
    model.fit(inputs, labels, epochs=6, verbose=0)
    after = model.evaluate(inputs, labels, verbose=0, return_dict=True)["loss"]
    assert after < before
    outputs = model(inputs)
    losses = task_losses.answerable_span_losses(
        *(outputs[key] for key in ("start_logits", "end_logits", "cls_logits")),
        labels["start_logits"],
        labels["end_logits"],
        labels["cls_logits"],
    )
    np.testing.assert_allclose(after, 2 * np.mean(losses), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_reach_every_weight(kind):
    model, inputs = make(kind, hidden_dropout_prob=0.1), make_inputs(kind)
    randomise(model)
    variables = model.named_variables()
    with tf.GradientTape() as tape:
        outputs = model(inputs, training=True)
        if kind == "answerable_span":
            picked = [tf.nn.log_softmax(outputs[key])[:, 0] for key in ("start_logits", "end_logits")]
            outputs = [*picked, outputs["cls_logits"]]
        loss = tf.add_n([tf.reduce_sum(tf.square(output)) for output in tf.nest.flatten(outputs)])
    # A softmax does not see a shift of all scores.
    shifts = ("self/key/bias", "start_logits/dense/bias", "end_logits/dense_1/bias")
    for name, gradient in zip(variables, tape.gradient(loss, list(variables.values()))):
        assert gradient is not None, name
        if not name.endswith(shifts):
            assert float(tf.reduce_max(tf.abs(tf.convert_to_tensor(gradient)))) > 0, name


def three_inputs(length: int | None):
    names = ("input_ids", "input_mask", "segment_ids")
    return {name: tf.keras.Input((length,), dtype="int32", name=name) for name in names}


def test_the_encoder_as_a_layer_of_a_functional_model(tmp_path):
    symbolic, inputs = three_inputs(None), make_inputs("encoder")
    albert = make("encoder", num_hidden_layers=1, hidden_dropout_prob=0.1)
    randomise(albert)
    scores = tf.keras.layers.Dense(2, name="scores")(albert(symbolic)["pooled_output"])
    model = tf.keras.Model(symbolic, scores)
    kernel, bias = model.get_layer("scores").get_weights()
    np.testing.assert_allclose(model(inputs), albert(inputs)["pooled_output"] @ kernel + bias, atol=1e-5)
    model.compile(tf.keras.optimizers.SGD(0.1), cross_entropy())
    before = np.array(albert.named_variables()["bert/embeddings/word_embeddings"])
    model.fit(inputs, np.array([0, 1, 1, 0]), verbose=0)
    assert np.abs(np.array(albert.named_variables()["bert/embeddings/word_embeddings"]) - before).max() > 0
    model.save(tmp_path / "model.keras")
    loaded = tf.keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(inputs), model(inputs))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "multiple_choice"])
def test_every_model_as_a_layer_of_three_inputs(kind):
    class Wrapped(tf.keras.Model):
        """Takes three tensors in place of a dict."""

        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def call(self, ids, mask, segments):
            return self.inner({"input_ids": ids, "input_mask": mask, "segment_ids": segments})

    inputs, model = make_inputs(kind), make(kind)
    inputs.pop("start_positions", None)
    expected = model(inputs)
    symbolic = three_inputs(12)
    direct = tf.keras.Model(symbolic, model(symbolic))
    np.testing.assert_allclose(flat(direct(inputs)), flat(expected), atol=1e-5)
    wrapped = tf.keras.Model(list(symbolic.values()), Wrapped(model)(*symbolic.values()))
    np.testing.assert_allclose(flat(wrapped(list(inputs.values()))), flat(expected), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_policies(kind, policy):
    exact, inputs = make(kind), make_inputs(kind)
    randomise(exact)
    tf.keras.mixed_precision.set_global_policy(policy)
    model = make(kind)
    randomise(model)
    outputs = tf.nest.flatten(model(inputs))
    assert all(output.dtype in (tf.float32, tf.int32) for output in outputs)
    assert all(np.isfinite(output).all() for output in outputs)
    assert all("float32" in str(variable.dtype) for variable in model.trainable_variables)
    tf.keras.mixed_precision.set_global_policy("float32")
    assert 0 < np.abs(head_outputs(model(inputs)) - head_outputs(exact(inputs))).max() < 0.3
    again = type(model).from_config(model.get_config())  # computes as the model did, whatever the policy now is
    randomise(again)
    np.testing.assert_array_equal(flat(again(inputs)), flat(model(inputs)))
    assert tf.keras.mixed_precision.global_policy().name == "float32"


def head_outputs(outputs) -> np.ndarray:
    """Without what a search found, whose order may differ, and without logits that are masked."""
    if isinstance(outputs, dict):
        outputs = [value for key, value in outputs.items() if "_top_" not in key]
    values = flat(outputs)
    return values[values > -1e29]


def test_a_mixed_model_in_a_keras_file(tmp_path):
    tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
    model, inputs = make("span"), make_inputs("span")
    model.save(tmp_path / "model.keras")
    tf.keras.mixed_precision.set_global_policy("float32")
    np.testing.assert_array_equal(
        flat(tf.keras.models.load_model(tmp_path / "model.keras")(inputs)), flat(model(inputs))
    )


@pytest.mark.parametrize("kind", ["masked_lm", "pretraining"])
def test_masked_lm_logits_are_tied_to_the_word_embeddings(kind):
    model, inputs = make(kind), make_inputs(kind)  # piece 7 is not among the inputs
    randomise(model)

    def logits():
        outputs = model(inputs)
        return (outputs["masked_lm_logits"] if kind == "pretraining" else outputs).numpy()

    before, table = logits(), model.named_variables()["bert/embeddings/word_embeddings"]
    value = np.array(table)
    value[7] += 1.0
    table.assign(value)
    changed = np.abs(logits() - before).max(axis=(0, 1))
    assert changed[7] > 1e-3 and np.delete(changed, 7).max() == 0


def test_masked_lm_at_positions_is_masked_lm_everywhere():
    model, inputs = make("masked_lm"), make_inputs("masked_lm")
    randomise(model)
    positions = np.array([[0, 3], [1, 1], [5, 2], [11, 0]], np.int32)
    everywhere = model(inputs).numpy()
    chosen = model({**inputs, "masked_lm_positions": positions}).numpy()
    assert everywhere.shape == (4, 12, 50) and chosen.shape == (4, 2, 50)
    np.testing.assert_allclose(chosen, everywhere[np.arange(4)[:, None], positions], atol=1e-5)


def assign_checkpoint(model, prefix) -> None:
    reader = tf.train.load_checkpoint(str(prefix))
    for name, variable in model.named_variables().items():
        variable.assign(reader.get_tensor(name))


def test_the_pooler_of_the_checkpoint_is_the_classifiers_and_not_the_spans(shared):
    folder = shared / "fixtures" / "head_classifier"
    model = CLASSES["classifier"](AlbertConfig.from_json_file(folder / "config.json"), num_labels=3)
    assign_checkpoint(model, folder / "model.ckpt")
    kernel = tf.train.load_checkpoint(str(folder / "model.ckpt")).get_tensor("bert/pooler/dense/kernel")
    np.testing.assert_array_equal(np.asarray(model.albert.pooler.dense.kernel), kernel)
    inputs = dict(np.load(folder / "inputs.npz"))
    before = model(inputs).numpy()
    model.albert.pooler.dense.kernel.assign(kernel * 2)
    assert np.abs(model(inputs).numpy() - before).max() > 1e-3
    for kind in ("masked_lm", "span", "answerable_span", "tagger"):
        assert not [name for name in make(kind).named_variables() if "pooler" in name]


def test_a_full_checkpoint_gives_both_pretraining_logits_each_time(shared):
    folder = shared / "fixtures" / "model_shared"
    inputs, expected = dict(np.load(folder / "inputs.npz")), np.load(folder / "outputs.npz")
    config = AlbertConfig.from_json_file(folder / "config.json")
    models = [CLASSES["pretraining"](config) for _ in range(2)]
    for model in models:
        assign_checkpoint(model, folder / "model.ckpt")
    first, second = (model(inputs) for model in models)
    batch, predictions = inputs["masked_lm_positions"].shape
    assert first["masked_lm_logits"].shape == (batch, predictions, config.vocab_size)
    assert first["sentence_order_logits"].shape == (batch, 2)
    np.testing.assert_allclose(
        np.reshape(first["masked_lm_logits"], (batch * predictions, -1)), expected["masked_lm_logits"], atol=5e-5
    )
    np.testing.assert_array_equal(flat(first), flat(second))


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_weights_start_with_the_same_values(kind):
    variables = make(kind, parameter_sharing="none").named_variables()
    starts = [np.ravel(np.asarray(v))[:6] for v in variables.values() if len(v.shape) == 2]
    assert len({start.tobytes() for start in starts}) == len(starts)


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_of_other_names_are_refused(kind):
    model = make(kind)
    ids = np.ones((2, 3, 4) if kind == "multiple_choice" else (2, 4), np.int32)
    with pytest.raises(
        InputError, match="no input of the name 'attention_mask' .it is called input_mask here.; it reads"
    ):
        model({"input_ids": ids, "attention_mask": ids})
    with pytest.raises(InputError, match="reads a dict with input_ids"):
        model(ids)
    np.testing.assert_array_equal(
        flat(model({"input_ids": ids})), flat(model({"input_ids": ids, "label_ids": np.ones(2, np.int32)}))
    )


NUMBERS = np.arange(8, dtype=np.int32)
REPLICA_TARGETS = {  # a classifier's is in test_text_classifier
    "multiple_choice": NUMBERS % 2,
    "answerable_span": {
        "start_logits": NUMBERS % 5,
        "end_logits": NUMBERS % 6,
        "cls_logits": np.float32(NUMBERS % 3 == 0),
    },
}


@pytest.mark.parametrize("kind", REPLICA_TARGETS)
def test_fit_on_two_replicas_gives_what_one_gives(kind):
    inputs, targets = make_inputs(kind, batch=8), REPLICA_TARGETS[kind]
    rates = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout_prob"), 0.0)
    batches = tf.data.Dataset.from_tensor_slices((inputs, targets)).batch(8)
    results = []
    for strategy in (tf.distribute.get_strategy(), logical_devices.mirrored()):
        with strategy.scope():
            model = make(kind, num_hidden_layers=1, **rates)
            randomise(model)
            model.compile(tf.keras.optimizers.SGD(1e-2), metrics=None if isinstance(targets, dict) else ["accuracy"])
        losses = model.fit(batches, epochs=2, verbose=0).history["loss"]
        measured = model.evaluate(inputs, targets, batch_size=8, verbose=0, return_dict=True)
        results.append((losses, measured, {name: np.array(value) for name, value in model.named_variables().items()}))
    one, two = results
    assert sorted(one[1]) == sorted(two[1])
    np.testing.assert_allclose(two[0], one[0], rtol=1e-4)
    np.testing.assert_allclose(two[1]["loss"], one[1]["loss"], rtol=1e-4)
    for name, value in one[2].items():
        np.testing.assert_allclose(two[2][name], value, atol=1e-5, err_msg=name)
