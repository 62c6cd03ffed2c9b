"""Files whose rows hold several texts: each head that has them, against the Keras model, run by the runtime."""

from __future__ import annotations

import json

import numpy as np
import pytest

import albert_tf
from albert_tf import packing
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.exporting.runtimes import comparison, ids_outputs, onnx_file, runtime_export
from tests import exported_models, pipeline_models
from tests.exported_models import make, write_classifier
from tests.test_export_command import run_here
from tests.test_runtime_exports import keras_function, model_of, needs

HEADS = {
    "encoder": ("AlbertModel", {}),
    "classifier": ("AlbertForSequenceClassification", {}),
    "regression": ("AlbertForSequenceClassification", {"num_labels": 1}),
    "several labels": (
        "AlbertForSequenceClassification",
        {"labels": ("a", "b", "c"), "problem_type": "multi_label_classification"},
    ),
    "multiple choice": ("AlbertForMultipleChoice", {}),
}
WEIGHTS = [
    ("onnx", "float32"),
    ("onnx", "int8"),
    ("openvino", "float32"),
    ("openvino", "float16"),
    ("openvino", "int8"),
]
CASES = [(*weights, head) for weights in WEIGHTS for head in HEADS if weights[1] == "float32" or head == "classifier"]
SHAPES = ((3, 32), (1, 16))  # in the second one a long text has a row of its own length


def head_model(name: str):
    model_class, head = HEADS[name]
    return make(model_class, **head)[0] if head else model_of(model_class)


def written(folder, name: str, model, weights: str = "float32"):
    needs(name)
    runtime = runtime_export.RUNTIMES[name]
    runtime.write(str(folder / runtime.file), model, weights, packed=True)
    return runtime.function(str(folder / runtime.file))


def texts_of(vocab_size: int, rows: int = 11, longest: int = 20) -> dict[str, np.ndarray]:
    """A padded batch of many lengths, with a second segment where there is room, and a row without a piece."""
    random = np.random.default_rng(4)
    sizes = np.append(random.integers(1, longest, rows - 2), [0, longest])[:, np.newaxis]
    places = np.arange(longest)
    mask = (places < sizes).astype(np.int32)
    return {
        "input_ids": random.integers(0, vocab_size, mask.shape).astype(np.int32) * mask,
        "input_mask": mask,
        "segment_ids": (places >= 3).astype(np.int32) * mask,
    }


@pytest.mark.parametrize("name, weights, head", CASES)
def test_every_text_is_answered_as_if_it_were_alone(tmp_path, name, weights, head):
    model = head_model(head)
    function, batch = written(tmp_path, name, model, weights), texts_of(model.config.vocab_size)
    wanted = keras_function(model)(batch)
    wanted.pop("sequence_output", None)
    for shape in SHAPES if name == "onnx" or (head, weights) == ("classifier", "float32") else SHAPES[:1]:
        packed = packing.of_padded(function, *shape)
        given = packed(batch)
        assert {key: (v.shape, v.dtype) for key, v in given.items()} == {
            key: (v.shape, v.dtype) for key, v in wanted.items()
        }
        found = comparison.differences(lambda inputs: wanted, packed, [batch], set())
        assert found
        comparison.check(found, weights, "it")
        if weights == "float32":
            is_text = batch["input_mask"].any(axis=1)
            for key, values in wanted.items():
                np.testing.assert_allclose(given[key][is_text], values[is_text], rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("changes", [{"num_hidden_layers": 1}, {"num_hidden_layers": 2, "parameter_sharing": "none"}])
def test_the_last_block_is_the_first_one_or_another_one(tmp_path, changes):
    model = albert_tf.AlbertModel(AlbertConfig.from_dict({**pipeline_models.SIZES, **changes}))
    random = np.random.default_rng(0)
    for key, variable in model.named_variables().items():
        variable.assign(random.normal(1.0 if key.endswith("gamma") else 0.0, 0.3, variable.shape))
    packed = packing.of_padded(written(tmp_path, "onnx", model), 2, 24)
    batch = texts_of(model.config.vocab_size)
    is_text = batch["input_mask"].any(axis=1)
    wanted = model(batch, training=False)["pooled_output"].numpy()
    np.testing.assert_allclose(packed(batch)["pooled_output"][is_text], wanted[is_text], rtol=1e-4, atol=5e-5)


def test_behind_the_last_attention_there_are_the_first_positions_alone():
    needs("onnx")
    from onnx import shape_inference

    made = shape_inference.infer_shapes(onnx_file.onnx_model(model_of("AlbertForSequenceClassification"), packed=True))
    sizes = {
        value.name: [size.dim_param or size.dim_value for size in value.type.tensor_type.shape.dim]
        for value in made.graph.value_info
    }
    inner = model_of("AlbertForSequenceClassification").config.intermediate_size
    of_feed_forward = [sizes[node.input[0]] for node in made.graph.node if node.op_type == "Gelu"]
    assert of_feed_forward == [["rows", "length", inner], ["texts", 1, inner]]


@pytest.mark.parametrize("what", ["text_ids", "position_ids", "first_positions"])
def test_a_packer_that_errs_is_found(tmp_path, what):
    """A comparison that lets that pass would let anything pass."""
    model = model_of("AlbertForSequenceClassification")
    function, batch = written(tmp_path, "onnx", model), texts_of(model.config.vocab_size)

    def wrong(inputs):
        array = inputs[what]
        return function({**inputs, what: np.minimum(array, 1) if what == "text_ids" else np.maximum(array - 1, 0)})

    with pytest.raises(InputError, match="should keep it within"):
        found = comparison.differences(keras_function(model), packing.of_padded(wrong, 1, 32), [batch], set())
        comparison.check(found, "float32", "it")


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    return write_classifier(tmp_path_factory.mktemp("classifier"))


@pytest.mark.parametrize("name, weights", [("onnx", "int8"), ("openvino", "float32")])
def test_the_command_compares_the_packed_file(classifier, tmp_path, monkeypatch, name, weights):
    needs(name)
    given = {"format": name, "weights": weights, "packed": True, "check_file": classifier / "dev.tsv"}
    run_here(monkeypatch, model=classifier / "model", output=tmp_path, **given)
    told = json.loads((tmp_path / "1" / "comparison.json").read_text())
    assert told["packed"] is True and told["texts"]["count"] == 200
    assert 0 < told["outputs"]["logits"]["relative_rms"] < comparison.BOUNDS[weights]
    assert abs(told["file"]["scores"]["accuracy"]["change"]) <= (0.12 if weights == "int8" else 0)
    runtime = runtime_export.RUNTIMES[name]
    packed = packing.of_padded(runtime.function(str(tmp_path / "1" / runtime.file)))
    assert "logits" in packed(texts_of(60))


def test_an_encoder_is_compared_by_its_pooled_output(tmp_path, monkeypatch):
    needs("onnx")
    model, tokenizer = make("AlbertModel")
    model.save_pretrained(tmp_path / "model", tokenizer)
    (tmp_path / "texts.txt").write_text("a text\nanother one here\nsome words of a third\n")
    given = {"format": "onnx", "packed": True, "check_texts": tmp_path / "texts.txt", "max_seq_length": 16}
    run_here(monkeypatch, model=tmp_path / "model", output=tmp_path / "out", **given)
    assert set(json.loads((tmp_path / "out" / "1" / "comparison.json").read_text())["outputs"]) == {"pooled_output"}


@pytest.mark.parametrize(
    "model_format, message", [("tflite", "onnx and openvino"), ("saved_model", "does nothing for")]
)
def test_formats_without_packed_files_are_a_sentence(classifier, tmp_path, monkeypatch, model_format, message):
    with pytest.raises(InputError, match=f"--packed .*{message}"):
        run_here(monkeypatch, model=classifier / "model", output=tmp_path, format=model_format, packed=True)


@pytest.mark.parametrize(
    "head", sorted(set(exported_models.HEADS) - {model_class for model_class, _ in HEADS.values()})
)
def test_heads_that_read_every_position_are_a_sentence(head):
    with pytest.raises(InputError, match="--packed is for models .* and this one has the head "):
        runtime_export.check_packs(model_of(head))


def test_an_encoder_without_a_pooler_is_a_sentence():
    model = albert_tf.AlbertModel(AlbertConfig.from_dict(pipeline_models.SIZES), with_pooler=False)
    assert not ids_outputs.output_specs(model, packed=True)
    with pytest.raises(InputError, match="an encoder without a pooler"):
        runtime_export.check_packs(model)
