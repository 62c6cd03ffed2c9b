"""Predictions as files: what GLUE, CLUE and people take."""

from __future__ import annotations

import json

import numpy as np
import pytest

from albert_tf.tasks.catalogue import find_task
from albert_tf.tasks.examples import (
    ChoiceExample,
    ChoicePrediction,
    TagExample,
    TagPrediction,
    TextExample,
    TextPrediction,
)
from albert_tf.tasks.text_file import MULTI_LABEL, text_file_task

# The names on gluebenchmark.com.
GLUE = {
    ("cola", "test"): "CoLA.tsv",
    ("sst-2", "test"): "SST-2.tsv",
    ("mrpc", "test"): "MRPC.tsv",
    ("sts-b", "test"): "STS-B.tsv",
    ("qqp", "test"): "QQP.tsv",
    ("mnli", "test_matched"): "MNLI-m.tsv",
    ("mnli", "test_mismatched"): "MNLI-mm.tsv",
    ("mnli", "test_ax"): "AX.tsv",
    ("qnli", "test"): "QNLI.tsv",
    ("rte", "test"): "RTE.tsv",
    ("wnli", "test"): "WNLI.tsv",
}


def texts(*answers):
    """Examples and predictions with the ids 0, 1, … and probabilities that are easily told apart."""
    examples = [TextExample(str(number), "text") for number in range(len(answers))]
    probabilities = np.array([0.25, 0.625, 0.125], np.float32)
    return examples, [TextPrediction(str(number), answer, probabilities) for number, answer in enumerate(answers)]


def read(path):
    return path.read_text(encoding="utf-8").split("\n")


@pytest.mark.parametrize(("task", "split"), GLUE)
def test_glue_files_have_the_names_and_the_two_columns_that_glue_takes(tmp_path, task, split):
    found = find_task(task)
    assert split in found.test_splits
    names = found.labels or (2.5, 3.0)
    examples, predictions = texts(*names)
    if not found.labels:
        predictions = [TextPrediction(p.id, p.label) for p in predictions]
    written = found.write_submission(str(tmp_path / split), examples, predictions, found.labels)
    assert written[0] == str(tmp_path / GLUE[task, split])
    answers = [str(label) for label in found.labels] or ["2.500000", "3.000000"]
    expected = ["index\tprediction", *(f"{n}\t{answer}" for n, answer in enumerate(answers)), ""]
    assert read(tmp_path / GLUE[task, split]) == expected
    assert sorted(str(path) for path in tmp_path.iterdir()) == sorted(written)


def test_probabilities_name_their_columns(tmp_path):
    task = find_task("mnli")
    written = task.write_submission(str(tmp_path / "dev_matched"), *texts("entailment"), task.labels)
    assert written == [str(tmp_path / "dev_matched.tsv"), str(tmp_path / "dev_matched_probabilities.tsv")]
    assert read(tmp_path / "dev_matched_probabilities.tsv") == [
        "id\tprediction\tcontradiction\tentailment\tneutral",
        "0\tentailment\t0.250000\t0.625000\t0.125000",
        "",
    ]


def test_sts_b_scores_are_within_the_scale(tmp_path):
    predictions = [TextPrediction(str(number), score) for number, score in enumerate((-0.2, 3.14159265, 5.01))]
    examples = [TextExample(str(number), "text") for number in range(3)]
    (file,) = find_task("sts-b").write_submission(str(tmp_path / "test"), examples, predictions, ())
    assert file.endswith("STS-B.tsv")
    assert read(tmp_path / "STS-B.tsv")[1:] == ["0\t0.000000", "1\t3.141593", "2\t5.000000", ""]


def test_clue_takes_json_lines(tmp_path):
    task = find_task("cmnli")
    examples = [TextExample("0", "一"), TextExample("q1", "二")]
    predictions = [TextPrediction(e.id, "neutral", np.array([0, 0, 1], np.float32)) for e in examples]
    file, _ = task.write_submission(str(tmp_path / "test"), examples, predictions, task.labels)
    assert [json.loads(line) for line in read(tmp_path / "test.json")[:-1]] == [
        {"id": 0, "label": "neutral"},
        {"id": "q1", "label": "neutral"},
    ]
    assert file == str(tmp_path / "test.json")


def test_choices_beyond_the_letters_have_numbers(tmp_path):
    example = ChoiceExample("q", "p", "?", tuple(map(str, range(28))), None)
    prediction = ChoicePrediction("q", 27, np.full(28, 1 / 28))
    find_task("race").write_submission(str(tmp_path / "test"), [example], [prediction], ())
    assert read(tmp_path / "test.tsv") == ["id\tprediction", "q\t28", ""]
    assert read(tmp_path / "test_probabilities.tsv")[0].split("\t")[-3:] == ["Z", "27", "28"]


def test_choices_are_letters(tmp_path):
    examples = [
        ChoiceExample("high1.txt-0", "", "Q?", ("a", "b", "c", "d")),
        ChoiceExample("high1.txt-1", "", "Q?", ("a", "b")),
    ]
    predictions = [
        ChoicePrediction("high1.txt-0", 3, np.array([0.125, 0.125, 0.25, 0.5])),
        ChoicePrediction("high1.txt-1", 0, np.array([0.75, 0.25])),
    ]
    files = find_task("race").write_submission(str(tmp_path / "test"), examples, predictions, ())
    assert files == [str(tmp_path / "test.tsv"), str(tmp_path / "test_probabilities.tsv")]
    assert read(tmp_path / "test.tsv") == ["id\tprediction", "high1.txt-0\tD", "high1.txt-1\tA", ""]
    assert read(tmp_path / "test_probabilities.tsv") == [
        "id\tA\tB\tC\tD",
        "high1.txt-0\t0.125000\t0.125000\t0.250000\t0.500000",
        "high1.txt-1\t0.750000\t0.250000\t\t",
        "",
    ]


def test_tags_are_columns_that_the_reader_takes_again(tmp_path):
    task = find_task("conll")
    predicted = [("B-PER", "O"), ("O",)]
    predictions = [TagPrediction(str(n), tags, (0.5,) * len(tags)) for n, tags in enumerate(predicted)]
    for gold, columns in ((("B-PER", "I-PER"), 3), (None, 2)):
        examples = [TagExample("0", ("New York", "is"), gold), TagExample("1", ("#",), gold and ("O",))]
        (file,) = task.write_submission(str(tmp_path / "dev"), examples, predictions, ())
        again = task.read(file)
        assert [(e.words, e.tags) for e in again] == [(e.words, tags) for e, tags in zip(examples, predicted)]
        assert {len(line.split("\t")) for line in read(tmp_path / "dev.conll") if line} == {columns}


def test_labels_of_a_persons_own(tmp_path):
    task = text_file_task(problem=MULTI_LABEL)
    examples, predictions = texts(("a", "tab\there"), ())
    task.write_submission(str(tmp_path / "test"), examples, predictions, ("a", "tab\there", "c"))
    lines = [line.split("\t") for line in read(tmp_path / "test.tsv")[:-1]]
    assert lines[0] == ["id", "prediction"]
    assert [json.loads(line[1]) for line in lines[1:]] == [["a", "tab\there"], []]
    assert read(tmp_path / "test_probabilities.tsv")[0] == "id\tprediction\ta\ttab here\tc"


def test_half_of_a_surrogate_pair_does_not_lose_the_file(tmp_path):
    examples, predictions = texts("\ud800")
    text_file_task().write_submission(str(tmp_path / "test"), examples, predictions, ("\ud800", "b", "c"))
    assert read(tmp_path / "test.tsv")[1] == "0\t\\ud800"
