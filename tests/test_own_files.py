"""The task of a fine-tuned model, from its head and its task.json: how a labelled file is read and scored."""

from __future__ import annotations

import pytest

from albert_tf.head_config import KINDS, MULTI_LABEL, REGRESSION, HeadConfig
from albert_tf.tasks.own_files import task_of_model
from albert_tf.tasks.squad import TASKS as SQUAD_TASKS


@pytest.mark.parametrize(
    "head, about, content, label",
    [
        (HeadConfig("classifier", labels=("a", "b")), {}, "text\tlabel\nsome\ta\n", "a"),
        (HeadConfig("classifier", 1), {"task": "text_file"}, "text\tlabel\nsome\t0.5\n", 0.5),
        (
            HeadConfig("classifier", labels=("a", "b"), problem_type=MULTI_LABEL),
            {"task": "text_file", "columns": {"label_separator": ";", "problem_type": MULTI_LABEL}},
            "text\tlabel\nsome\ta;b\n",
            ("a", "b"),
        ),
        (
            HeadConfig("classifier", labels=("a", "b")),
            {"task": "text_file", "columns": {"text_column": "note", "label_column": "mood", "has_header": True}},
            "text\tnote\tmood\nnot this\tsome\tb\n",
            "b",
        ),
        (
            HeadConfig("multiple_choice"),
            {"task": "choice_file", "columns": {"first_choice_label": 1}},
            "question\tchoice_1\tchoice_2\tlabel\nwhich\tx\ty\t2\n",
            1,
        ),
    ],
)
def test_own_files_are_read_as_for_the_training(tmp_path, head, about, content, label):
    (tmp_path / "dev.tsv").write_text(content)
    task = task_of_model(head, about)
    assert task.head == head.kind and task.problem_type in (None, head.problem)
    (example,) = task.read(str(tmp_path / "dev.tsv"))
    assert example.label == label and "some" in (getattr(example, "text_a", "some"),)


def test_other_models_have_the_task_of_their_name_or_the_usual_one_of_their_head():
    assert task_of_model(HeadConfig("classifier", labels=("0", "1")), {"task": "mrpc"}).name == "mrpc"
    assert task_of_model(HeadConfig("classifier", 1), {"task": "sts-b"}).metrics[0] in ("pearson", "spearman")
    assert task_of_model(HeadConfig("tagger", labels=("O",)), {}).name == "conll"
    squad = [task_of_model(HeadConfig(kind), {}) for kind in ("span", "answerable_span")]
    assert squad == list(SQUAD_TASKS[:2])
    for kind in KINDS:
        if kind not in ("encoder", "pretraining", "masked_lm"):
            labels = ("x", "y") if kind in ("classifier", "tagger") else ()
            assert task_of_model(HeadConfig(kind, labels=labels), {"task": "no such"}).head == kind
    assert task_of_model(HeadConfig("classifier", 1), {}).problem_type == REGRESSION
