"""The SavedModel of a classifier, used by processes that know nothing of this package."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf import sequences_graph, task_model
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.export import export_saved_model
from tests import pipeline_models, toy_vocabulary

LONGEST = pipeline_models.SIZES["max_position_embeddings"]
TEXTS = ["a x b", "", "CAFÉ 😀 a\x00b", "word " * 5000, "b y", "x"]
PAIRS = ["b", "", "a " * 5000, "word " * 5000, "c d e", ""]
# What another process does in each directory that it is given: requests from a file, answers to a file.
PROCESS = """
import json, os, sys
import tensorflow as tf
if sys.argv[1] == "text":
    import tensorflow_text
for directory in sys.argv[2:]:
    model = tf.saved_model.load(os.path.join(directory, "moved"))
    answers = {}
    for name, request in json.load(open(os.path.join(directory, "requests.json"))).items():
        inputs = {key: tf.constant(value) for key, value in request["inputs"].items()}
        outputs = model.signatures[request["signature"]](**inputs)
        answers[name] = {
            key: [str(text, "utf-8") for text in v.numpy().ravel()] if v.dtype == tf.string else v.numpy().tolist()
            for key, v in outputs.items()
        }
    ids = tf.constant([[2, 9, 9, 3]])
    with tf.GradientTape() as tape:
        outputs = model(input_ids=ids, input_mask=tf.ones_like(ids), segment_ids=tf.zeros_like(ids))
        loss = tf.reduce_sum(tf.square(outputs["value" if "value" in outputs else "probabilities"]))
    gradients = tape.gradient(loss, model.trainable_variables)
    norms = [float(tf.linalg.global_norm([gradient])) for gradient in gradients]
    answers["gradients"] = {variable.name: norm for variable, norm in zip(model.trainable_variables, norms)}
    json.dump(answers, open(os.path.join(directory, "answers.json"), "w"))
assert not [name for name in sys.modules if name.split(".")[0] in ("albert_tf", "keras_nlp", "transformers")]
assert ("tensorflow_text" in sys.modules) == (sys.argv[1] == "text")
"""
HEADS = {
    "single": {"labels": ("no", "perhaps", "ja – oui")},
    "several": {"num_labels": 2, "problem_type": "multi_label_classification"},
    "number": {"num_labels": 1},
}


def make(head: str):
    tf.keras.utils.set_random_seed(2)
    config = AlbertConfig.from_dict({**pipeline_models.SIZES, "num_hidden_layers": 2})
    model = albert_tf.AlbertForSequenceClassification(config, **HEADS[head])
    random = np.random.default_rng(0)
    for name, variable in model.named_variables().items():
        variable.assign(random.normal(1.0 if name.endswith("gamma") else 0.0, 0.2, variable.shape))
    return model, albert_tf.load_tokenizer(toy_vocabulary.alphabet_model())


def in_another_process(asked: dict, imports: str) -> list[dict]:
    """Moves the SavedModels and asks them: from directory to requests, answers in that order."""
    for directory, requests in asked.items():
        (directory / "exported").rename(directory / "moved")
        (directory / "requests.json").write_text(json.dumps(requests))
    result = subprocess.run(
        [sys.executable, "-c", PROCESS, imports, *map(str, asked)], capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return [json.loads((directory / "answers.json").read_text()) for directory in asked]


def expected(model, inputs) -> dict[str, np.ndarray]:
    """The answers from the logits, in NumPy."""
    logits = model(inputs).numpy().astype(np.float64)
    if model.head.problem == "regression":
        return {"value": logits[:, 0]}
    if model.head.problem == "multi_label_classification":
        probabilities = 1 / (1 + np.exp(-logits))
        return {"probabilities": probabilities, "is_label": probabilities > 0.5, "labels": ["0", "1"] * len(logits)}
    probabilities = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    names = np.array(model.head.labels)
    return {
        "probabilities": probabilities,
        "labels": [*names] * len(logits),
        "label": names[logits.argmax(-1)].tolist(),
        "probability": probabilities.max(-1),
    }


def assert_answers(answers: dict, wanted: dict) -> None:
    assert set(answers) == set(wanted)
    for name, value in wanted.items():
        if isinstance(value, list):
            assert answers[name] == value, name
        else:
            np.testing.assert_allclose(answers[name], value, atol=1e-5, err_msg=name)


class Asked(NamedTuple):
    """A classifier, and its inputs for the texts, others of another length, and which of the texts are cut."""

    model: Any
    inputs: dict[str, np.ndarray]
    longer: dict[str, np.ndarray]
    is_cut: list[bool]


def requests_for(directory, head: str, in_pairs: bool) -> tuple[Asked, dict]:
    """Exports it below the directory."""
    model, tokenizer = make(head)
    export_saved_model(directory / "exported", model, tokenizer, max_seq_length=20, pairs=in_pairs)
    texts = {"text_a": TEXTS, "text_b": PAIRS} if in_pairs else {"text": TEXTS}
    inputs = tokenizer(TEXTS, PAIRS if in_pairs else None, max_length=20)
    longer = {name: np.tile(value, (1, 2))[:5, :LONGEST] for name, value in inputs.items()}
    sizes = [len(tokenizer.encode(text)) for text in TEXTS]
    others = [len(tokenizer.encode(text)) for text in PAIRS] if in_pairs else [0] * len(TEXTS)
    is_cut = [a + b > (17 if in_pairs else 18) for a, b in zip(sizes, others)]
    requests = {
        "texts": {"signature": "serving_default", "inputs": texts},
        "ids": {"signature": "ids", "inputs": {name: value.tolist() for name, value in longer.items()}},
        **{
            f"text {row}": {
                "signature": "serving_default",
                "inputs": {name: [value[row]] for name, value in texts.items()},
            }
            for row in range(len(TEXTS))
        },
    }
    return Asked(model, inputs, longer, is_cut), requests


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """What each head was asked, and what another process answered."""
    asked, requests = {}, {}
    for head, in_pairs in (("single", False), ("several", True), ("number", False)):
        directory = tmp_path_factory.mktemp(head)
        asked[head], requests[directory] = requests_for(directory, head, in_pairs)
    return dict(zip(asked, zip(asked.values(), in_another_process(requests, "text"))))


@pytest.mark.parametrize("head", HEADS)
def test_another_process_answers_texts_and_ids(head, answered):
    asked, answers = answered[head]
    assert True in asked.is_cut and False in asked.is_cut
    texts = dict(answers["texts"])
    assert texts.pop("is_cut") == asked.is_cut
    assert_answers(texts, expected(asked.model, asked.inputs))
    assert_answers(answers["ids"], expected(asked.model, asked.longer))
    for row in range(len(TEXTS)):  # a text answers the same alone and in company
        for name, value in answers[f"text {row}"].items():
            if name not in ("labels", "is_cut"):
                together = texts[name][row]
                assert value[0] == (together if isinstance(together, str) else pytest.approx(together, abs=1e-5))
    assert len(answers["gradients"]) == len(asked.model.named_variables())
    word_table = next(norm for name, norm in answers["gradients"].items() if "word_embeddings" in name)
    assert word_table > 0


def test_without_a_tokenizer_plain_tensorflow_is_enough(tmp_path):
    model, tokenizer = make("single")
    export_saved_model(tmp_path / "exported", model)
    inputs = tokenizer(TEXTS[:3])
    request = {name: value.tolist() for name, value in inputs.items()}
    requests = {name: {"signature": name, "inputs": request} for name in ("serving_default", "ids")}
    (answers,) = in_another_process({tmp_path: requests}, "plain")
    for name in requests:
        assert_answers(answers[name], expected(model, inputs))


def test_signatures_are_of_any_size_and_traced_once(tmp_path):
    model, tokenizer = make("single")
    export_saved_model(tmp_path / "exported", model, tokenizer)
    loaded = tf.saved_model.load(str(tmp_path / "exported"))
    texts, ids = loaded.signatures["serving_default"], loaded.signatures["ids"]
    shapes = {name: spec.shape.as_list() for name, spec in texts.structured_input_signature[1].items()}
    assert shapes == {"text": [None]}
    specs = ids.structured_input_signature[1]
    assert {name: (spec.shape.as_list(), spec.dtype) for name, spec in specs.items()} == {
        name: ([None, None], tf.int32) for name in ("input_ids", "input_mask", "segment_ids")
    }
    for batch, length in ((1, 7), (5, LONGEST)):
        outputs = ids(**{name: tf.ones([batch, length], tf.int32) for name in specs})
        assert outputs["probabilities"].shape == (batch, 3)


def test_packing_in_the_graph_is_the_tokenizers_own():
    for vocabulary in (toy_vocabulary.alphabet_model(), toy_vocabulary.wordpiece_vocabulary()):
        tokenizer = albert_tf.load_tokenizer(vocabulary)
        texts = [text for text in toy_vocabulary.odd_strings() if len(text) < 60][:60]
        for pairs in (None, texts[::-1]):
            for length in (5, 6, 11, 300):
                wanted = tokenizer(texts, pairs, max_length=length)
                pieces = [
                    tf.ragged.constant([tokenizer.encode(t) for t in some], tf.int32) for some in (texts, pairs or [])
                ]
                packed = sequences_graph.pack(pieces[0], pieces[1] if pairs else None, tokenizer, length)
                for name, value in wanted.items():
                    np.testing.assert_array_equal(packed.inputs[name], value, err_msg=name)


def test_the_object_exports_what_it_predicts(tmp_path):
    model, tokenizer = make("single")
    kind = task_model.catalogue.kind_from_settings(model.head, {"max_seq_length": 12})
    classifier = albert_tf.TextClassifier(model, tokenizer, kind)
    with pytest.raises(InputError, match="single texts or pairs: give pairs="):
        classifier.export(tmp_path / "exported")
    classifier.export(tmp_path / "exported", pairs=False)
    outputs = tf.saved_model.load(str(tmp_path / "exported")).signatures["serving_default"](tf.constant(TEXTS))
    for row, prediction in enumerate(classifier.predict(TEXTS)):
        assert outputs["label"][row].numpy().decode() == prediction.label
        np.testing.assert_allclose(outputs["probabilities"][row], [*prediction.probabilities.values()], atol=1e-5)


def test_the_object_exports_ids_alone(tmp_path):
    model, tokenizer = make("single")
    kind = task_model.catalogue.kind_from_settings(model.head, {"max_seq_length": 12})
    albert_tf.TextClassifier(model, tokenizer, kind).export(tmp_path / "exported", ids_only=True)
    script = "import sys, tensorflow as tf; print(*tf.saved_model.load(sys.argv[1]).signatures['serving_default'](" + (
        "input_ids=tf.constant([[2, 7, 3]]), input_mask=tf.ones([1, 3], tf.int32), "
        "segment_ids=tf.zeros([1, 3], tf.int32))['probabilities'].numpy()[0])"
    )
    printed = subprocess.run([sys.executable, "-c", script, tmp_path / "exported"], capture_output=True, text=True)
    logits = model({"input_ids": tf.constant([[2, 7, 3]])}).numpy()[0]
    wanted = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose([float(number) for number in printed.stdout.split()], wanted, atol=1e-5)


def test_a_length_beyond_the_positions_is_refused(tmp_path):
    model, tokenizer = make("single")
    with pytest.raises(InputError, match="max_seq_length is 33, but the model has 32 positions"):
        export_saved_model(tmp_path / "exported", model, tokenizer, max_seq_length=33)
    assert not (tmp_path / "exported").exists()
