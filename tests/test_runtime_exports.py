"""Files for other runtimes: each head and every form of the network, against the Keras model, run by the runtime."""

from __future__ import annotations

import functools
import importlib.util
import json

import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf import task_model
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.exporting import saved_model
from albert_tf.exporting.inference_model import InferenceModel
from albert_tf.exporting.runtimes import check_inputs, comparison, ids_outputs, onnx_file, real_texts, runtime_export
from albert_tf.exporting.source import Source
from albert_tf.predicting import Predictor
from albert_tf.tasks.catalogue import find_task
from tests import exported_models, pipeline_models
from tests.exported_models import kind_of, make, write_classifier
from tests.test_export_command import run_here

PACKAGES = {"onnx": ("onnx", "onnxruntime"), "openvino": ("onnx", "openvino"), "tflite": ()}
WEIGHTS = ("float32", "int8")
# Every head as ONNX; the others write the same graph or keep the model's own heads.
CASES = [
    *(("onnx", "float32", head) for head in exported_models.HEADS),
    ("onnx", "int8", "AlbertForMaskedLM"),
    ("onnx", "int8", "AlbertForTokenClassification"),
    ("openvino", "float32", "AlbertForAnswerableQuestionAnswering"),
    ("openvino", "float16", "AlbertForMultipleChoice"),
    ("openvino", "int8", "AlbertForMaskedLM"),
    ("tflite", "float32", "AlbertForAnswerableQuestionAnswering"),
    ("tflite", "int8", "AlbertForMaskedLM"),
]
CONFIGS = {
    "groups": {"num_hidden_layers": 4, "num_hidden_groups": 2},
    "inner groups": {"inner_group_num": 2},
    "attention shared": {"num_hidden_layers": 2, "parameter_sharing": "attention"},
    "feed-forward shared": {"num_hidden_layers": 2, "parameter_sharing": "ffn"},
    "nothing shared": {"num_hidden_layers": 2, "parameter_sharing": "none"},
    "no projection": {"embedding_size": 16, "hidden_size": 16},
    "projection of one width": {"embedding_size": 16, "hidden_size": 16, "embedding_projection": True},
    "erf": {"hidden_act": "gelu_erf"},
    "relu": {"hidden_act": "relu"},
    "linear": {"hidden_act": ""},
    "epsilon": {"layer_norm_eps": 0.1},
}


def needs(name: str) -> None:
    for package in PACKAGES[name]:
        pytest.importorskip(package)


@functools.cache
def model_of(model_class: str, **head):
    return make(model_class, **head)[0]


@functools.cache
def traced(model):
    return ids_outputs.keras_function(model)


def keras_function(model):
    return ids_outputs.as_arrays(traced(model))


def written(folder, name: str, model, weights: str = "float32"):
    needs(name)
    runtime = runtime_export.RUNTIMES[name]
    runtime.write(str(folder / runtime.file), model, weights)
    return runtime.function(str(folder / runtime.file))


def inputs_of(rows: int, length: int, vocab_size: int) -> dict[str, np.ndarray]:
    """Rows of unlike lengths, each with a second segment."""
    random = np.random.default_rng(rows * length)
    places, sizes = np.arange(length), length - np.arange(rows)[:, None]
    mask = (places < sizes).astype(np.int32)
    return {
        "input_ids": random.integers(0, vocab_size, (rows, length)).astype(np.int32) * mask,
        "input_mask": mask,
        "segment_ids": ((places >= 3).astype(np.int32) * mask).astype(np.int32),
    }


@pytest.mark.parametrize("name, weights, model_class", CASES)
def test_every_head_answers_as_the_model_does_for_any_size(tmp_path, name, weights, model_class):
    model = model_of(model_class)
    function = written(tmp_path, name, model, weights)
    for rows, length in ((1, 9), (3, 14)):
        batch = inputs_of(rows, length, model.config.vocab_size)
        wanted, given = keras_function(model)(batch), function(batch)
        assert {key: (v.shape, v.dtype) for key, v in given.items()} == {
            key: (v.shape, v.dtype) for key, v in wanted.items()
        }
        found = comparison.differences(keras_function(model), function, [batch], set())
        assert found
        comparison.check(found, weights, "it")
        if weights == "float32":
            for key in wanted:
                np.testing.assert_allclose(given[key], wanted[key], rtol=1e-4, atol=2e-5)


def test_types_and_shapes_are_those_of_the_traced_function():
    for head in exported_models.HEADS:
        assert types_of(ids_outputs.output_specs(model_of(head))) == types_of(outputs_of(traced(model_of(head))))
    for head in ("AlbertModel", "AlbertForMaskedLM", "AlbertForSequenceClassification"):  # the second has no pooler
        with_vectors = ids_outputs.keras_function(model_of(head), with_vectors=True)
        told = ids_outputs.output_specs(model_of(head), with_vectors=True)
        assert types_of(told) == types_of(outputs_of(with_vectors)) and "sequence_output" in told


def outputs_of(function):
    return function.get_concrete_function().structured_outputs


def types_of(specs) -> dict:
    return {name: (spec.shape.as_list(), spec.dtype) for name, spec in specs.items()}


@pytest.mark.parametrize(
    "head", [{"num_labels": 1}, {"labels": ("a", "b", "c"), "problem_type": "multi_label_classification"}]
)
def test_numbers_and_several_labels(tmp_path, head):
    model = make("AlbertForSequenceClassification", **head)[0]
    function, batch = written(tmp_path, "onnx", model), inputs_of(2, 9, model.config.vocab_size)
    wanted, given = keras_function(model)(batch), function(batch)
    assert set(wanted) == set(given) == ({"value"} if "num_labels" in head else {"logits", "probabilities", "is_label"})
    for key in wanted:
        np.testing.assert_allclose(given[key], wanted[key], rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("changes", CONFIGS.values(), ids=CONFIGS)
def test_onnx_has_every_form_of_the_network(tmp_path, changes):
    tf.keras.utils.set_random_seed(3)
    model = albert_tf.AlbertModel(AlbertConfig.from_dict({**pipeline_models.SIZES, **changes}))
    random = np.random.default_rng(0)
    for key, variable in model.named_variables().items():
        variable.assign(random.normal(1.0 if key.endswith("gamma") else 0.0, 0.3, variable.shape))
    function, batch = written(tmp_path, "onnx", model), inputs_of(2, 9, model.config.vocab_size)
    wanted = model(batch, training=False)
    for key, value in function(batch).items():
        np.testing.assert_allclose(value, wanted[key], rtol=1e-4, atol=5e-5)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_layers_that_share_their_weights_are_in_an_onnx_file_once(weights):
    needs("onnx")
    sizes = []
    for layers in (1, 3):
        model = albert_tf.AlbertModel(AlbertConfig.from_dict({**pipeline_models.SIZES, "num_hidden_layers": layers}))
        made = onnx_file.onnx_model(model, weights)
        sizes.append(sum(len(constant.raw_data) for constant in made.graph.initializer))
    parameters = model.config.parameter_count()
    assert sizes[0] == sizes[1]
    assert sizes[0] < parameters * (4 if weights == "float32" else 2) + 1000


def test_differences_are_those_of_numpy_and_leave_padding_out():
    random = np.random.default_rng(0)
    wanted, given = random.normal(size=(2, 2, 3)), random.normal(size=(2, 2, 3))
    batch = {name: np.array([[1, 1], [1, 0]]) for name in ("input_ids", "input_mask", "segment_ids")}
    whole, other = np.array([1, 2]), np.array([1, 3])
    found = comparison.differences(
        lambda inputs: {"a": wanted, "b": wanted, "n": whole},
        lambda inputs: {"a": given, "b": given, "n": other},
        [batch, batch],
        {"a"},
    )
    real = np.array([[True, True], [True, False]])
    for name, rows in (("a", (wanted[real], given[real])), ("b", (wanted, given))):
        assert found[name]["max_difference"] == pytest.approx(np.abs(rows[0] - rows[1]).max())
        ratio = np.linalg.norm(rows[0] - rows[1]) / np.linalg.norm(rows[0])
        assert found[name]["relative_rms"] == pytest.approx(ratio)
    assert found["n"] == {"share_equal": 0.5}


@pytest.mark.parametrize("ratio", [2e-3, float("nan")])
def test_too_large_a_difference_and_no_number_are_errors(ratio):
    with pytest.raises(InputError, match="logits"):
        comparison.check({"logits": {"max_difference": 1.0, "relative_rms": ratio}}, "float32", "it")
    comparison.check({"logits": {"max_difference": 1.0, "relative_rms": 9e-4}}, "float32", "it")
    with pytest.raises(InputError, match="of its is_label 10% are the model's, .*: give float32 in place of int8"):
        comparison.check({"is_label": {"share_equal": 0.1}}, "int8", "it")


def test_an_output_that_is_missing_and_orders_that_differ_are_errors():
    batch = {name: np.ones((1, 2), np.int32) for name in ("input_ids", "input_mask", "segment_ids")}
    index = np.array([[3, 1]])
    chances = {"start_top_log_probs": np.array([[-1.0, -2.0]])}
    wanted = {**chances, "start_top_index": index, "end_top_log_probs": np.array([[-1.0, -2.0, -3.0, -4.0]])}
    given = {**wanted, "start_top_index": np.array([[3, 2]]), "end_top_log_probs": np.array([[-1.0, -2.5, -9.0, -9.0]])}
    found = comparison.differences(lambda inputs: wanted, lambda inputs: given, [batch], set())
    assert found["end_top_log_probs"]["max_difference"] == 0.5  # of the start that both have
    assert found["start_top_index"] == {"share_equal": 0.5}
    with pytest.raises(InputError, match="of its start_top_index 50% are the model's"):
        comparison.check(found, "float32", "it")
    # Fewer pieces than starts are followed: the second one is padding, whose vector may be any.
    short = {**wanted, "start_top_log_probs": np.array([[-1.0, -1e30]]), "end_top_index": np.array([[3, 1, 2, 4]])}
    other = {**short, "end_top_log_probs": given["end_top_log_probs"], "end_top_index": np.array([[3, 1, 4, 2]])}
    found = comparison.differences(lambda inputs: short, lambda inputs: other, [batch], set())
    assert found["end_top_log_probs"]["max_difference"] == 0.5 and found["end_top_index"] == {"share_equal": 1.0}
    for other in (chances, {**chances, "start_top_index": index[:, :1]}):
        with pytest.raises(InputError, match="the output start_top_index is "):
            comparison.differences(lambda inputs: wanted, lambda inputs, other=other: other, [batch], set())


def test_a_forgotten_mask_is_found():
    """A comparison that lets that pass would let anything pass."""
    for model_class in ("AlbertForMaskedLM", "AlbertForMultipleChoice", "AlbertForAnswerableQuestionAnswering"):
        model, tokenizer = make(model_class)
        parts = saved_model.make_parts(
            model, tokenizer, kind=kind_of(model), max_seq_length=None if kind_of(model) else 24
        )
        features = check_inputs.features_of_texts(parts, ["a", "a b", "a b c d", "one two", "on", "so"])
        batches = list(check_inputs.batches(features, parts.max_seq_length))
        keras = keras_function(model)

        def without_mask(inputs, keras=keras):
            return keras({**inputs, "input_mask": np.ones_like(inputs["input_mask"])})

        assert comparison.differences(keras, keras, batches, set())
        with pytest.raises(InputError, match="should keep it within"):
            comparison.check(comparison.differences(keras, without_mask, batches, set()), "float32", "it")


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    folder = write_classifier(tmp_path_factory.mktemp("classifier"))
    (folder / "texts.txt").write_text("a text\nanother one here\nsome words of a third\n")
    return folder


@pytest.mark.parametrize("name, weights", [("onnx", "int8"), ("openvino", "int8"), ("tflite", "float32")])
def test_the_command_writes_what_is_needed_to_run_it(classifier, tmp_path, monkeypatch, capsys, name, weights):
    needs(name)
    given = {"format": name, "weights": weights, "output": tmp_path, "check_file": classifier / "dev.tsv"}
    if name != "onnx":  # that is compared on the usual ones
        given["check_texts"] = classifier / "texts.txt"
    run_here(monkeypatch, model=classifier / "model", **given)
    made = tmp_path / "1"
    assert {"albert_config.json", "head_config.json", "spiece.model", "task.json", "comparison.json"} < {
        path.name for path in made.iterdir()
    }
    told = json.loads((made / "comparison.json").read_text())
    assert told["texts"]["count"] == (200 if name == "onnx" else 3)
    assert json.loads((made / "head_config.json").read_text())["labels"] == ["no", "yes"]
    accuracy = told["file"]["scores"]["accuracy"]
    loaded = task_model.load(str(classifier / "model"))
    examples = find_task("text").read(str(classifier / "dev.tsv"))
    own = Predictor(loaded.model, loaded.kind).predict(examples, loaded.tokenizer)
    right = np.mean([prediction.label == example.label for prediction, example in zip(own, examples)])
    assert accuracy["model"] == pytest.approx(right)
    assert accuracy["change"] == pytest.approx(accuracy["export"] - accuracy["model"])
    printed = capsys.readouterr().out
    assert "max difference" in printed and "accuracy" in printed


def test_a_saved_model_is_compared_before_it_appears(classifier, tmp_path, monkeypatch, capsys):
    pytest.importorskip("tensorflow_text")
    given = {"check_texts": classifier / "texts.txt", "check_file": classifier / "dev.tsv"}
    given["mixed_precision"] = "bfloat16"
    run_here(monkeypatch, model=classifier / "model", output=tmp_path, format="saved_model", **given)
    told = json.loads((tmp_path / "1" / "assets.extra" / "comparison.json").read_text())
    assert told["texts"]["count"] == 3 and told["bound"] == 0.2
    assert 0 < told["outputs"]["logits"]["relative_rms"] < 0.1
    assert "accuracy" in told["file"]["scores"] and "max difference" in capsys.readouterr().out


def test_what_differs_too_much_is_not_left_behind(classifier, tmp_path, monkeypatch):
    needs("onnx")
    runtime = runtime_export.RUNTIMES["onnx"]

    def wrong(path):
        function = runtime.function(path)
        return lambda inputs: function({**inputs, "segment_ids": 1 - inputs["segment_ids"]})

    monkeypatch.setitem(runtime_export.RUNTIMES, "onnx", runtime._replace(function=wrong))
    told = f"{tmp_path}/1 is not written: its .* differs .*: compare it on texts of the model's own kind"
    with pytest.raises(InputError, match=told):
        given = {"output": tmp_path, "check_texts": classifier / "texts.txt"}
        run_here(monkeypatch, model=classifier / "model", format="onnx", **given)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_a_saved_model_of_numbers_beyond_its_precision_is_not_left_behind(tmp_path, monkeypatch):
    model, tokenizer = make("AlbertForSequenceClassification")
    gamma = model.named_variables()["bert/embeddings/LayerNorm/gamma"]
    gamma.assign(1e6 * np.array(gamma))  # float16 ends at 65,504
    task_model.save(str(tmp_path / "model"), model, tokenizer, kind_of(model), {"pairs": False})
    monkeypatch.setattr(saved_model, "save", lambda directory, parts, precision: InferenceModel(parts.model, precision))
    with pytest.raises(
        InputError, match=f"{tmp_path}/served/1 is not written: .*nan.*: give float32 in place of float16"
    ):
        given = {"ids_only": True, "mixed_precision": "float16", "output": tmp_path / "served"}
        run_here(monkeypatch, model=tmp_path / "model", **given)
    assert not list((tmp_path / "served").iterdir())


def test_a_missing_package_names_its_extra(tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "onnx" else find(name, *more))
    with pytest.raises(InputError, match=r"the package onnx, .*albert_tf\[onnx\]"):
        onnx_file.write(str(tmp_path / "model.onnx"), model_of("AlbertModel"))


@pytest.mark.parametrize("name", ["onnx", "openvino"])
def test_a_model_that_is_too_large_for_onnx_is_a_sentence(tmp_path, monkeypatch, name):
    needs(name)
    monkeypatch.setattr("onnx.checker.MAXIMUM_PROTOBUF", 1 << 24)
    runtime = runtime_export.RUNTIMES[name]
    with pytest.raises(InputError, match="a graph of ONNX holds less than 2"):
        runtime.write(str(tmp_path / runtime.file), model_of("AlbertModel"), "float32")
    assert not list(tmp_path.iterdir())


def test_weights_that_a_format_lacks_are_an_error(classifier, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"--weights=float16 is none of --format=onnx: it has float32, int8"):
        run_here(monkeypatch, model=classifier / "model", format="onnx", weights="float16", output=tmp_path)


def test_texts_and_labels_that_are_not_there_are_errors(classifier, tmp_path, monkeypatch):
    needs("onnx")
    (tmp_path / "empty.txt").write_text("\n\n")
    (tmp_path / "bare.tsv").write_text("text\nno label here\n")
    for given, message in (
        ({"check_texts": tmp_path / "empty.txt"}, "--check_texts=.*empty.txt has no text"),
        ({"check_file": tmp_path / "bare.tsv"}, "--check_file=.*bare.tsv has no labels"),
    ):
        with pytest.raises(InputError, match=message):
            run_here(monkeypatch, model=classifier / "model", format="onnx", output=tmp_path / "out", **given)


def test_real_texts_lie_evenly_over_a_file(tmp_path):
    (tmp_path / "texts.txt").write_text("".join(f"text {n}\n\n" for n in range(10)))
    assert real_texts.real_texts(str(tmp_path / "texts.txt"), 5) == [f"text {n}" for n in (0, 2, 4, 6, 8)]
    texts = real_texts.real_texts(None)
    assert len(texts) == len(set(texts)) == 200 and all(" " in text for text in texts)


def test_labels_of_a_source_without_a_task():
    """An encoder has no task that a labelled file could be scored on."""
    model, tokenizer = make("AlbertModel")
    with pytest.raises(InputError, match="this one has none"):
        runtime_export.read_labelled("dev.tsv", Source(model, tokenizer, None, {}))
