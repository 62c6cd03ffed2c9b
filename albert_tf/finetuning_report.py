"""What a fine-tuning prints: everything that is decided before it begins, and the scores at its end."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from albert_tf import distribution, finetuning_history, storage, task_model
from albert_tf.finetuning_data import Split
from albert_tf.finetuning_predictions import PREDICTIONS, scores_file
from albert_tf.finetuning_run import REPORT, REPORT_PAGE, Data, Job, Scores, first_answer
from albert_tf.finetuning_seeds import Summary, seed_directory
from albert_tf.finetuning_state import BOARDS, LOGS
from albert_tf.task_kinds.texts import LABEL_IDS
from albert_tf.tasks.task import Task

# Scores that are no fractions of 1, by the ends of their names.
_NO_FRACTIONS = ("mean_squared_error", "_threshold")
_PERCENT = 100.0
_WIDE = 5.0  # standard deviation of labels that rates made for those of STS-B, 0 to 5, reach slowly


def print_start(
    job: Job, flags: Mapping[str, Any], sources: Mapping[str, str], weights: int, notes: Sequence[str]
) -> None:
    """Prints every flag, every setting with who says so, sizes, rows, labels and steps.

    Args:
        job: what is about to run.
        flags: all of the script's.
        sources: setting to where its value comes from.
        weights: parameters of the model with its head.
        notes: what else a person should know.
    """
    settings = job.settings
    lines = ["flags:", *(f"  {name} = {value!r}" for name, value in sorted(flags.items()))]
    lines.append("settings:")
    values = {**dataclasses.asdict(settings), **job.kind.settings, **_dropout(job)}
    lines += [f"  {name} = {value!r}{_said_by(sources, name)}" for name, value in values.items()]
    epochs = settings.num_train_steps / max(-(-len(job.training.features) // settings.train_batch_size), 1)
    head = job.kind.head
    lines += [
        f"devices: {distribution.describe_devices(job.strategy)}",
        f"task: {job.task.title}, head {head.kind}"
        + (f" ({head.problem_type})" if head.problem_type else "")
        + (f", {len(head.labels)} labels: {_few(head.labels)}" if head.labels else ""),
        f"model: {weights:,} parameters; {job.config.num_hidden_layers} layers of {job.config.hidden_size}",
        *(f"data: {_data_line(data)}" for data in (job.training, *job.scored, *job.predicted)),
        *columns_lines(job.task, [data.split for data in (job.training, *job.scored, *job.predicted)]),
        *_labels_lines(job),
        f"steps: {settings.num_train_steps:,}, of which {settings.num_warmup_steps:,} warm-up; {epochs:.2f} epochs",
    ]
    lines += [f"note: {note}" for note in notes]
    if not job.scored:
        lines.append("WARNING: there is no split to choose the best step by, so the last one is kept")
    else:
        early_stop = (
            f"early stop after {settings.early_stop_patience} evaluations without a better {job.task.metrics[0]}"
            if settings.early_stop_patience
            else "there is no early stop"
        )
        often = f"every {settings.eval_every} steps" if settings.eval_every < settings.num_train_steps else "at the end"
        lines.append(
            f"the best step by {', then '.join(job.task.metrics)} on {job.scored[0].split.name} is kept (evaluated "
            f"{often}); {early_stop}"
        )
    print("\n".join(lines), flush=True)


def columns_lines(task: Task, splits: Iterable[Split]) -> list[str]:
    """Of each of a person's own files, which column was taken for what."""
    paths = dict.fromkeys(split.path for split in splits if split.path in task.columns)
    return [f"columns of {path}: {task.columns[path]}" for path in paths]


def print_end(output_dir: str, report: Mapping[str, Any]) -> None:
    """Prints how a run of one seed ended, its scores, and where everything lies."""
    lines = ["done:"]
    if report["early_stop"]:
        lines.append(f"  early stop after step {report['steps']}: no better {report['metric']} for long enough")
    lines.append(
        f"  the model is that of step {report['best_step']} of {report['settings']['num_train_steps']}"
        f"{_tie_clause(report['metric'], report['decided_by'])}"
    )
    if report["collapsed_attempts"]:
        lines.append(f"  attempts given up since they did not learn: {len(report['collapsed_attempts'])}")
    if report["collapsed"]:
        lines.append(_collapse_line(report["last_loss"], report["guess_loss"]))
    lines += [*scores_table(report["scores"]), *_places(output_dir)]
    print("\n".join(lines), flush=True)


def print_seeds_end(output_dir: str, report: Mapping[str, Any]) -> None:
    """Prints the scores of several seeds, what is typical, and where everything lies."""
    lines = [f"done, {len(report['seeds'])} seeds:", *summary_table(report["summary"])]
    for seed, scores in report["scores"].items():
        lines += [f"  seed {seed}, {seed_directory(output_dir, int(seed))}:", *scores_table(scores)]
    stuck = [seed for seed, has_collapsed in report["collapsed"].items() if has_collapsed]
    if stuck:
        lines.append(
            f"  WARNING: to the end the loss was no better than that of a guess with the seed(s) {', '.join(stuck)}: "
            "neither are their answers"
        )
    lines += [f"  the best is seed {report['best_seed']}: copies of its", *_places(output_dir)[:2]]
    lines.append(
        f"  all numbers: {storage.join(output_dir, REPORT)}, of all seeds: {storage.join(output_dir, REPORT_PAGE)}"
    )
    print("\n".join(lines), flush=True)


def print_use(output_dir: str, scores: Scores, files: Mapping[str, Sequence[str]]) -> None:
    """Prints what a model without training gave."""
    lines = ["done:", *scores_table(scores)]
    lines += [f"  predictions of {split}: {', '.join(written)}" for split, written in files.items()]
    lines.append(f"  the scores, and of which file they are: {scores_file(output_dir)}")
    print("\n".join(lines), flush=True)


def scores_table(scores: Scores) -> list[str]:
    """A line for each score, percents."""
    rows = [(split, metric, shown(metric, value)) for split, of in scores.items() for metric, value in of.items()]
    return _table([("split", "metric", "score"), *rows]) if rows else ["  no split has labels, so there are no scores"]


def summary_table(summary: Summary) -> list[str]:
    """A line for each score with its statistics over the seeds that have it, percents."""
    names = ("median", "mean", "std", "min", "max")
    rows = [
        (split, metric, *(shown(metric, statistics[name]) for name in names), str(statistics["seeds"]))
        for split, of in summary.items()
        for metric, statistics in of.items()
    ]
    return _table([("split", "metric", *names, "seeds"), *rows])


def shown(metric: str, value: float) -> str:
    """A score as a percentage, or as it is where it is no fraction of 1."""
    if metric.split("/")[0].endswith(_NO_FRACTIONS):  # behind the slash is a group or a type, whatever its name
        return f"{value:.4g}"
    return f"{_PERCENT * value:.2f}"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return ["    " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths)).rstrip() for row in rows]


def _tie_clause(metric: str, decided_by: str | None) -> str:
    """What chose the step where others have as good a score of the metric that does by rights."""
    if decided_by in (metric, None):
        return ""
    chosen = decided_by if decided_by == finetuning_history.FIRST else f"the best by {decided_by}"
    return f", {chosen} of those with an equal {metric}"


def _collapse_line(loss: float, guess: float) -> str:
    """The warning that what was learned is no better than a guess, or even worse."""
    compared = finetuning_history.against_guess(loss, guess)
    meaning = (
        "a guess is nearer than the model's answers"
        if compared == finetuning_history.WORSE
        else "the model has learned nothing from the texts"
    )
    return f"  WARNING: to the end the loss ({loss:.4g}) was {compared} that of a guess ({guess:.4g}): {meaning}"


def _labels_lines(job: Job) -> list[str]:
    """Where the numbers lie that a head starts at the mean of, and what helps where they lie far apart."""
    mean = first_answer(job.task, job.training.features)
    if mean is None:
        return []
    spread = float(np.std(job.training.features.per_sequence[LABEL_IDS], dtype=np.float64))
    line = f"labels: mean {mean:.4g}, where a new head begins, standard deviation {spread:.4g}"
    return [line if spread <= _WIDE else f"{line}: rescaled to about 0 to 5 they would be learned faster"]


def _places(output_dir: str) -> list[str]:
    logs = storage.join(output_dir, LOGS)
    return [
        f"  model: {storage.join(output_dir, task_model.MODEL)}",
        f"  predictions: {storage.join(output_dir, PREDICTIONS)}",
        f"  all numbers: {storage.join(output_dir, REPORT)}, curves: {storage.join(output_dir, REPORT_PAGE)}",
        *([f"  TensorBoard: tensorboard --logdir={logs}"] if storage.exists(storage.join(logs, BOARDS[0])) else []),
    ]


def _dropout(job: Job) -> dict[str, float]:
    names = ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout_prob")
    return {name: getattr(job.config, name) for name in names}


def _said_by(sources: Mapping[str, str], name: str) -> str:
    return f"  ({sources[name]})" if name in sources else ""


def _few(labels: Sequence[str]) -> str:
    return ", ".join(labels[:20]) + (", …" if len(labels) > 20 else "")


def _data_line(data: Data) -> str:
    split, features = data
    some = f" of {split.in_file:,}" if split.in_file != len(split.examples) else ""
    longest = int(features.sizes.max(initial=0))
    cut = f"{features.cut / max(len(split.examples), 1):.1%} of them cut"
    return (
        f"{split.name}: {len(split.examples):,}{some} examples in {len(features):,} rows of up to {longest} pieces, "
        f"{cut} ({split.path})"
    )
