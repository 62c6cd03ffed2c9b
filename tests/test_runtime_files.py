"""Answers by an export for another runtime, which are those of the model it was made of."""

from __future__ import annotations

import numpy as np
import pytest

from albert_tf import packing, task_model
from albert_tf.answering import loading, runtime_files
from albert_tf.errors import InputError
from albert_tf.exporting import saved_model
from albert_tf.exporting.runtimes import runtime_export
from albert_tf.exporting.source import load as load_source
from tests.exported_models import SETTINGS, kind_of, make
from tests.test_runtime_exports import needs

TEXTS = ["", "a", "a text", "words " * 30, "another one here", "on", "one two"]
OF_TEXTS = [{"text": text} for text in TEXTS]
OF_CHOICES = [
    {"passage": "a b c " * number, "question": "who", "options": ["one", "two", "a"][: 2 + number % 2]}
    for number in range(1, 6)
]
OF_QUESTIONS = [
    {"question": "who", "context": context} for context in ("", "the cat sat in ulm", "words to say " * 30, " \t ", "x")
]
CASES = {
    "labels": ("AlbertForSequenceClassification", {"labels": ("no", "yes")}, OF_TEXTS),
    "number": ("AlbertForSequenceClassification", {"num_labels": 1}, OF_TEXTS),
    "choices": ("AlbertForMultipleChoice", {}, OF_CHOICES),
    "tags": ("AlbertForTokenClassification", {}, OF_TEXTS),
    "spans": ("AlbertForQuestionAnswering", {}, OF_QUESTIONS),
    "answerable spans": ("AlbertForAnswerableQuestionAnswering", {}, OF_QUESTIONS),
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


def written(directory, case: str):
    """A fine-tuned model, once."""
    path = directory / case
    if not path.exists():
        model_class, head, _ = CASES[case]
        model, tokenizer = make(model_class, **head)
        task_model.save(str(path), model, tokenizer, kind_of(model), {"task": "text_file", "pairs": False})
    return path


def exported(path, output, name: str, **options):
    """The export of a model as the command leaves it, without the 200 texts."""
    needs(name)
    source = load_source(str(path))
    parts = saved_model.make_parts(source.model, source.tokenizer, kind=source.kind)
    output.mkdir(parents=True)
    runtime_export.write(str(output), name, source, parts, "float32", **options)
    (output / "comparison.json").write_text("{}")
    return output


@pytest.mark.parametrize(
    "case, name, packed",
    [
        *((case, "onnx", True) for case in ("labels", "number", "choices")),
        ("labels", "openvino", True),
        ("choices", "onnx", False),
        *((case, "onnx", False) for case in ("tags", "spans", "answerable spans")),
        ("labels", "tflite", False),
    ],
)
def test_an_export_answers_as_its_model_does(directory, tmp_path, case, name, packed):
    path, instances = written(directory, case), CASES[case][2]
    exported(path, tmp_path / "9", name, **({"packed": True} if packed else {}))
    (tmp_path / "10").mkdir()  # a version without a file
    model, answerer = loading.load_answerer(str(path)), loading.load_answerer(str(tmp_path), batch_size=3)
    assert answerer.answers([]) == []
    for block in (instances, instances[:1]):  # the second one has no word, and of questions no window
        found, wanted = answerer.answers(block), model.answers(block)
        assert len(found) == len(wanted) == len(block)
        for given, answer in zip(found, wanted):
            assert set(given) == set(answer)
            for key, value in answer.items():
                is_number = key == "value" or key.endswith(("probability", "probabilities"))
                assert given[key] == (pytest.approx(value, rel=1e-3, abs=1e-5) if is_number else value), key


def test_a_packed_export_gets_all_texts_at_once(directory, tmp_path, monkeypatch):
    needs("onnx")
    exported(written(directory, "labels"), tmp_path / "1", "onnx", packed=True)
    seen = []
    batches = packing.batches
    monkeypatch.setattr(packing, "batches", lambda *a: (seen.append(b) or b for b in batches(*a)))
    loading.load_answerer(str(tmp_path), batch_size=2).answers(OF_TEXTS * 9)
    assert sum(len(batch.sequences) for batch in seen) == 63
    pieces = [(batch.inputs["text_ids"] > 0).mean() for batch in seen]
    assert len(seen) == 2 and pieces[0] > 0.9


def test_openvino_computes_in_bfloat16_where_it_is_told_to(directory, tmp_path):
    exported(written(directory, "labels"), tmp_path / "1", "openvino")
    exact, rounded = (
        np.array([one["probabilities"] for one in loading.load_answerer(str(tmp_path), **given).answers(OF_TEXTS)])
        for given in ({}, {"precision": "bfloat16"})
    )
    import openvino

    if "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        assert np.abs(exact - rounded).max() > 1e-5
    np.testing.assert_allclose(exact, rounded, atol=0.1)


def test_the_newest_version_and_a_directory_itself_are_found(directory, tmp_path):
    assert runtime_files.find(str(tmp_path)) is runtime_files.find(str(tmp_path / "none")) is None
    for version in ("2", "10"):
        exported(written(directory, "labels"), tmp_path / version, "onnx")
    for path in (tmp_path, tmp_path / "10"):
        assert runtime_files.find(str(path)) == (str(tmp_path / "10"), "onnx")
    (tmp_path / "10" / "comparison.json").unlink()  # another one's file
    assert runtime_files.find(str(tmp_path)) == (str(tmp_path / "2"), "onnx")


def test_settings_are_those_of_the_export_or_given(directory, tmp_path):
    exported(written(directory, "labels"), tmp_path / "1", "onnx")
    cut = [
        sum(answer["is_cut"] for answer in loading.load_answerer(str(tmp_path), **given).answers(OF_TEXTS))
        for given in ({}, {"max_seq_length": 5})
    ]
    assert SETTINGS["AlbertForSequenceClassification"]["max_seq_length"] == 20 and 1 <= cut[0] < cut[1]
    with pytest.raises(InputError, match="max_seq_length is 9999, but the model has"):
        loading.load_answerer(str(tmp_path), max_seq_length=9999)


def encoder(tmp_path, model_class: str = "AlbertModel"):
    model, tokenizer = make(model_class)
    model.save_pretrained(tmp_path / "model", tokenizer)
    return tmp_path / "model"


@pytest.mark.parametrize("pooling, packed", [("pooled", True), ("pooled", False), ("mean", False), ("cls", False)])
def test_an_encoders_export_gives_the_models_vectors(tmp_path, pooling, packed):
    path = encoder(tmp_path)
    exported(path, tmp_path / "out" / "1", "onnx", **({"packed": True} if packed else {}))
    settings = {"pooling": pooling, "max_seq_length": 24, "batch_size": 3}
    wanted, given = (loading.load_vectors(str(p), **settings).vectors for p in (path, tmp_path / "out"))
    np.testing.assert_allclose(given(TEXTS), wanted(TEXTS), rtol=1e-3, atol=1e-5)
    assert given.cut == wanted.cut == 1 and given.width == wanted.width
    if pooling == "pooled":
        for directory in (tmp_path / "out", path):
            answers = loading.load_answerer(str(directory), max_seq_length=24).answers(OF_TEXTS)
            np.testing.assert_allclose([one["pooled_output"] for one in answers], wanted(TEXTS), rtol=1e-3, atol=1e-5)


def test_what_an_export_does_not_give_is_a_sentence(directory, tmp_path):
    path = encoder(tmp_path)
    exported(path, tmp_path / "packed", "onnx", packed=True)
    with pytest.raises(InputError, match="packed gives no sequence_output, which --pooling=mean needs"):
        loading.load_vectors(str(tmp_path / "packed"), pooling="mean").vectors(["a"])
    with pytest.raises(InputError, match="max_seq_length is 9999, but the model has"):
        loading.load_vectors(str(tmp_path / "packed"), max_seq_length=9999)
    (tmp_path / "packed" / "spiece.model").unlink()
    with pytest.raises(InputError, match="packed is an export without a vocabulary"):
        loading.load_vectors(str(tmp_path / "packed"))
    exported(written(directory, "labels"), tmp_path / "labels", "onnx")
    with pytest.raises(InputError, match="labels is an export for onnx, .*: leave --mixed_precision=bfloat16 out"):
        loading.load_answerer(str(tmp_path / "labels"), precision="bfloat16")
    with pytest.raises(InputError, match="the head classifier, which gives no vectors"):
        loading.load_vectors(str(tmp_path / "labels"))
    exported(encoder(tmp_path / "gaps", "AlbertForMaskedLM"), tmp_path / "filled", "onnx")
    with pytest.raises(InputError, match="filled is an export with the head masked_lm: give the model"):
        loading.load_answerer(str(tmp_path / "filled"))
