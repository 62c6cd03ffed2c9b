"""The nine tasks of GLUE and its diagnostic set (AX), which is predicted with the MNLI model.

A data directory is the task's own ("glue/CoLA") or the one above ("glue").
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from albert_tf.head_config import REGRESSION, SINGLE_LABEL
from albert_tf.tasks import glue_files
from albert_tf.tasks.examples import Example
from albert_tf.tasks.glue_files import Layout
from albert_tf.tasks.submissions import glue_writer
from albert_tf.tasks.task import Task

_SCORES = (0.0, 5.0)
_YES_NO = ("0", "1")
_ENTAILMENT = ("entailment", "not_entailment")
_THREE_WAY = ("contradiction", "entailment", "neutral")


def _task(
    layout: Layout,
    metrics: tuple[str, ...],
    words: str,
    *,
    files: Mapping[str, tuple[str, ...]] | None = None,
    submissions: Mapping[str, str] | None = None,
    start_from: str | None = None,
    read: Callable[..., list[Example]] = glue_files.read,
) -> Task:
    """A task of GLUE; without `files` and `submissions` it has the three splits that most of them have."""
    title = layout.title
    files = files or {"train": ("train.tsv",), "dev": ("dev.tsv",), "test": ("test.tsv",)}
    return Task(
        name=title.lower(),
        title=title,
        head="classifier",
        read=functools.partial(read, layout=layout),
        files={split: (*names, *(f"{title}/{name}" for name in names)) for split, names in files.items()},
        write_submission=glue_writer(submissions or {"test": f"{title}.tsv"}, None if layout.labels else layout.limits),
        metrics=metrics,
        labels=layout.labels,
        problem_type=SINGLE_LABEL if layout.labels else REGRESSION,
        start_from=start_from,
        words=words,
    )


COLA = _task(
    Layout("CoLA", text_a=("sentence",), labels=_YES_NO),
    ("matthews", "accuracy"),
    "is the sentence good English (1) or not (0)",
    read=glue_files.read_cola,
)
SST2 = _task(
    Layout("SST-2", text_a=("sentence",), labels=_YES_NO),
    ("accuracy",),
    "does a film critic's phrase praise (1) or blame (0)",
)
MRPC = _task(
    Layout("MRPC", text_a=("#1 string",), text_b=("#2 string",), label=("quality",), labels=_YES_NO, ids=("index",)),
    ("accuracy", "f1"),
    "do two sentences from the news say the same (1) or not (0)",
    files={
        "train": ("train.tsv", "msr_paraphrase_train.txt"),
        "dev": ("dev.tsv",),
        "test": ("test.tsv", "msr_paraphrase_test.txt"),
    },
    start_from="mnli",
)
STSB = _task(
    Layout("STS-B", text_a=("sentence1",), text_b=("sentence2",), label=("score",), limits=_SCORES),
    ("pearson", "spearman"),
    "how alike two sentences are, from 0 to 5",
    start_from="mnli",
)
QQP = _task(
    Layout(
        "QQP",
        text_a=("question1",),
        text_b=("question2",),
        label=("is_duplicate",),
        labels=_YES_NO,
        skips_broken=True,
    ),
    ("accuracy", "f1"),
    "do two questions ask the same (1) or not (0)",
)
MNLI = _task(
    Layout(
        "MNLI",
        text_a=("sentence1", "premise"),  # the second names are those of the diagnostic set with labels
        text_b=("sentence2", "hypothesis"),
        label=("gold_label", "label"),
        labels=_THREE_WAY,
        undecided="-",
    ),
    ("accuracy",),
    "does the first sentence entail the second, contradict it, or neither",
    files={
        "train": ("train.tsv",),
        "dev_matched": ("dev_matched.tsv",),
        "dev_mismatched": ("dev_mismatched.tsv",),
        "test_matched": ("test_matched.tsv",),
        "test_mismatched": ("test_mismatched.tsv",),
        "test_ax": (
            "diagnostic.tsv",
            "diagnostic/diagnostic.tsv",
            "../diagnostic/diagnostic.tsv",
            "AX.tsv",
            "AX/AX.tsv",
            "../AX/AX.tsv",
        ),
    },
    submissions={"test_matched": "MNLI-m.tsv", "test_mismatched": "MNLI-mm.tsv", "test_ax": "AX.tsv"},
)
QNLI = _task(
    Layout("QNLI", text_a=("question",), text_b=("sentence",), labels=_ENTAILMENT),
    ("accuracy",),
    "does the sentence hold the answer to the question",
)
RTE = _task(
    Layout("RTE", text_a=("sentence1",), text_b=("sentence2",), labels=_ENTAILMENT),
    ("accuracy",),
    "does the first text entail the second",
    start_from="mnli",
)
WNLI = _task(
    Layout("WNLI", text_a=("sentence1",), text_b=("sentence2",), labels=_YES_NO),
    ("accuracy",),
    "does a sentence with a pronoun entail (1) the one with the name in its place",
)
TASKS = (COLA, SST2, MRPC, STSB, QQP, MNLI, QNLI, RTE, WNLI)
