"""The tasks for a person's own files, from the values that flags and task.json have for their columns.

The keys of `columns` are the names of run_finetuning's flags: `text_column`, `label_column`, `choice_columns`, ….
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from albert_tf.head_config import ANSWERABLE, HeadConfig
from albert_tf.tasks import catalogue, choice_file, text_file
from albert_tf.tasks.task import Task

COLUMNS = "columns"  # in task.json
_OF_OTHER_HEADS = {"span": "squad1.1", ANSWERABLE: "squad2.0", "tagger": "conll"}


def text_task(columns: Mapping[str, Any]) -> Task:
    """Of texts with a label, several labels or a number; see `text_file.text_file_task`."""
    own = text_file.Columns(
        columns.get("text_column"),
        columns.get("text_b_column"),
        columns.get("label_column"),
        columns.get("id_column"),
        columns.get("has_header"),
    )
    more = {"problem": columns.get("problem_type"), "separator": columns.get("label_separator")}
    return text_file.text_file_task(own, **{name: value for name, value in more.items() if value is not None})


def choice_task(columns: Mapping[str, Any]) -> Task:
    """Of questions with choices; see `choice_file.choice_file_task`."""
    return choice_file.choice_file_task(
        choice_file.ChoiceColumns(
            choices=tuple(columns.get("choice_columns", ())),
            passage=columns.get("passage_column"),
            question=columns.get("question_column"),
            label=columns.get("label_column"),
            id=columns.get("id_column"),
            first_label=columns.get("first_choice_label"),
            has_header=columns.get("has_header"),
        )
    )


def task_of_model(head: HeadConfig, about: Mapping[str, Any]) -> Task:
    """The task whose files a fine-tuned model is scored on.

    Args:
        head: of the model, for a task.
        about: what its task.json tells. Where that names no task, files are read as the usual ones for the head.
    """
    named = catalogue.TASKS.get(about.get("task", ""))
    if named is not None and named.head == head.kind and named is not text_file.TEXT_FILE:
        return named
    if head.kind == "classifier":
        return text_task({"problem_type": head.problem, **about.get(COLUMNS, {})})
    if head.kind == "multiple_choice":
        return choice_task(about.get(COLUMNS, {}))
    return catalogue.find_task(_OF_OTHER_HEADS[head.kind])
