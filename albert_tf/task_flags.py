"""The task that the flags of run_finetuning name, how its files are read, and the examples in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from absl import flags

from albert_tf import finetuning_data, finetuning_flags, task_file
from albert_tf.errors import InputError
from albert_tf.finetuning_data import Split, kind_of_split
from albert_tf.head_config import MULTI_LABEL, HeadConfig
from albert_tf.tasks import catalogue, choice_file, file_head, own_files, text_file
from albert_tf.tasks.examples import come_in_pairs
from albert_tf.tasks.task import TRAIN, Task

FLAGS = flags.FLAGS

OWN_FILES = ("text", "text_file", "choice", "choice_file")
_TEXT_COLUMNS = ("text_column", "text_b_column", "problem_type", "label_separator")
_CHOICE_COLUMNS = ("choice_columns", "passage_column", "question_column", "first_choice_label")
_COLUMNS = (*_TEXT_COLUMNS, *_CHOICE_COLUMNS, "label_column", "id_column", "has_header")


def find_task(to_do: frozenset[str]) -> Task:
    """The task that the flags name, or that of a person's own files, read by default as for the training."""
    name = FLAGS.task.lower().replace("-", "_")
    if name not in OWN_FILES:
        finetuning_flags.refuse_flags(_COLUMNS, f"are for your own files (--task=text), not for --task={FLAGS.task}")
        return catalogue.find_task(FLAGS.task)
    columns = columns_by_flags()
    if "train" not in to_do:
        columns = {**columns_of_model(), **columns}
    if columns.get("choice_columns") or name.startswith("choice") or _have_choices(columns):
        finetuning_flags.refuse_flags(_TEXT_COLUMNS, "have no place beside --choice_columns")
        return own_files.choice_task(columns)
    finetuning_flags.refuse_flags(
        _CHOICE_COLUMNS, "need choices, and no columns have usual names for them: give --choice_columns"
    )
    if columns.get("problem_type") != MULTI_LABEL:
        finetuning_flags.refuse_flags(
            ["label_separator"],
            f"is between the labels of a row that has several: give --problem_type={MULTI_LABEL} too",
        )
    return own_files.text_task(columns)


def _have_choices(columns: Mapping[str, Any]) -> bool:
    """Whether a person's own files have columns with usual names for choices, and nothing says that they have none."""
    if columns.get("has_header") is False or any(name in columns for name in _TEXT_COLUMNS):
        return False
    paths = finetuning_data.find_paths(text_file.TEXT_FILE, FLAGS.data_dir, _named_files())
    return any(choice_file.usual_choices(file_head.first_row(path)) for path in paths.values())


def _named_files() -> dict[str, str | None]:
    """Kind of split to the file that a flag names."""
    return {"train": FLAGS.train_file, "dev": FLAGS.dev_file, "test": FLAGS.test_file}


def columns_by_flags() -> dict[str, Any]:
    """How a person's own files are to be read, by flag, as far as flags are given."""
    values = {
        "text_column": FLAGS.text_column,
        "text_b_column": FLAGS.text_b_column,
        "label_column": FLAGS.label_column,
        "id_column": FLAGS.id_column,
        "has_header": FLAGS.has_header,
        "problem_type": FLAGS.problem_type,
        "label_separator": FLAGS.label_separator,
        "choice_columns": FLAGS.choice_columns,
        "passage_column": FLAGS.passage_column,
        "question_column": FLAGS.question_column,
        "first_choice_label": FLAGS.first_choice_label,
    }
    return {name: value for name, value in values.items() if value is not None}


def columns_of_model() -> dict[str, Any]:
    """The same as the model to use was trained with them; the problem also where it was trained elsewhere."""
    directory = task_file.find(FLAGS.output_dir) or (task_file.find(FLAGS.model) if FLAGS.model else None)
    columns = task_file.read_about(directory).get("columns", {}) if directory else {}
    head = HeadConfig.read(directory or FLAGS.model or FLAGS.output_dir)
    return {**({"problem_type": head.problem} if head is not None and head.kind == "classifier" else {}), **columns}


def read_splits(task: Task, to_do: frozenset[str]) -> dict[str, Split]:
    """The examples of every split that has a part in what is to be done."""
    paths = finetuning_data.find_paths(task, FLAGS.data_dir, _named_files())
    asked = {"dev": FLAGS.do_eval, "test": FLAGS.do_predict}
    needed = [TRAIN] if "train" in to_do else []
    needed += [kind for kind, is_asked in asked.items() if is_asked]
    finetuning_data.check_needed(task, FLAGS.data_dir, paths, needed)
    chooses_best_step = "train" in to_do and FLAGS.do_eval is not False
    used = {TRAIN: "train" in to_do, "dev": "eval" in to_do or chooses_best_step, "test": "predict" in to_do}
    splits = {}
    for name, path in paths.items():
        if used[kind_of_split(name)]:
            most = FLAGS.max_train_examples if name == TRAIN else None
            splits[name] = finetuning_data.read_split(task, name, path, most=most, seed=FLAGS.seed)
            finetuning_data.check_labels(task, splits[name])
    if not splits:
        finetuning_data.check_needed(task, FLAGS.data_dir, paths, ["dev" if "eval" in to_do else "test"])
    if TRAIN in splits and FLAGS.early_stop_patience and not any(kind_of_split(name) == "dev" for name in splits):
        raise InputError(
            "--early_stop_patience needs scores, and there is no split to compute them on: give --dev_file"
        )
    finetuning_data.warn_of_unlike_headers(task, splits.values())
    if TRAIN in splits:
        pairs = come_in_pairs(splits[TRAIN].examples)
        for split in splits.values():
            finetuning_data.check_pairs(
                split.examples, pairs, f"{splits[TRAIN].path} has", task.columns.get(split.path)
            )
        finetuning_data.warn_of_overlap(splits[TRAIN], [split for name, split in splits.items() if name != TRAIN])
    return splits
