"""Several runs that differ by their seed alone: what is typical, how far they lie apart, and which is the best.

OUTPUT_DIR/seed-<n>/      of each, as of a single run (see finetuning_run)
OUTPUT_DIR/model/         a copy of the best one's
OUTPUT_DIR/predictions/   likewise
OUTPUT_DIR/report.json    the scores of all, and their median, mean and spread
OUTPUT_DIR/report.html    the same as a page, with a link to that of each
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf import finetuning_history, finetuning_predictions, finetuning_run, seeds_page, storage, task_model
from albert_tf.finetuning_predictions import PREDICTIONS
from albert_tf.finetuning_run import REPORT, REPORT_PAGE, Job

Summary = dict[str, dict[str, dict[str, float]]]  # split to metric to statistic, and how many seeds


def seed_directory(output_dir: str, seed: int) -> str:
    """Where the run of one of several seeds is."""
    return storage.join(output_dir, f"seed-{seed}")


def run(job: Job, output_dir: str, seeds: Sequence[int], stop: threading.Event) -> dict[str, Any] | None:
    """Runs the seeds one after another and returns the report on all; None where it was asked to stop."""
    reports = {}
    for seed in seeds:
        print(f"seed {seed}:", flush=True)
        report = finetuning_run.run(job, seed_directory(output_dir, seed), seed, stop)
        if report is None:
            return None
        reports[seed] = report
        tf.keras.backend.clear_session()  # the next seed makes a model of its own
    best = best_seed(reports, job.scored[0].split.name if job.scored else None, job.task.metrics)
    _copy(storage.join(seed_directory(output_dir, best), task_model.MODEL), storage.join(output_dir, task_model.MODEL))
    copy_predictions(seed_directory(output_dir, best), output_dir)
    first = reports[seeds[0]]
    report = {
        "task": job.task.name,
        "seeds": list(seeds),
        "best_seed": best,
        "metric": job.task.metrics[0],
        "scores": {str(seed): report["scores"] for seed, report in reports.items()},
        "summary": summary([report["scores"] for report in reports.values()]),
        "collapse_warning_at": {str(seed): report["collapse_warning_at"] for seed, report in reports.items()},
        "collapsed": {str(seed): report["collapsed"] for seed, report in reports.items()},
        "settings": {name: value for name, value in first["settings"].items() if name != "seed"},
        **job.about,
        "seconds": sum(report["seconds"] for report in reports.values()),
    }
    storage.write_json(storage.join(output_dir, REPORT), report)
    pages = {str(seed): storage.join(seed_directory("", seed), REPORT_PAGE) for seed in seeds}
    title = f"{job.task.title}, {len(seeds)} seeds"
    seeds_page.write(storage.join(output_dir, REPORT_PAGE), title, report, pages)
    return report


def best_seed(reports: Mapping[int, Mapping[str, Any]], split: str | None, metrics: Sequence[str]) -> int:
    """The seed with the best scores by `finetuning_history.merit`, the first of equals; of all without a split."""
    if split is None:
        return next(iter(reports))
    return max(reports, key=lambda seed: finetuning_history.merit(reports[seed]["scores"][split], metrics))


def summary(scores: Sequence[Mapping[str, Mapping[str, float]]]) -> Summary:
    """Median, mean, standard deviation (of a sample), least and largest of each score over the runs that have it.

    Under `seeds` stands how many these are: a type of entities that is neither in a split nor predicted has no score.
    """
    result: Summary = {}
    for split in dict.fromkeys(split for of_run in scores for split in of_run):
        result[split] = {}
        of_split = [of_run[split] for of_run in scores if split in of_run]
        for metric in dict.fromkeys(metric for found in of_split for metric in found):
            values = np.array([found[metric] for found in of_split if metric in found], np.float64)
            result[split][metric] = {
                "seeds": len(values),
                "median": float(np.median(values)),
                "mean": float(values.mean()),
                "std": float(values.std(ddof=1)) if len(values) > 1 else 0.0,
                "min": float(values.min()),
                "max": float(values.max()),
            }
    return result


def copy_predictions(source: str, output_dir: str) -> None:
    """Copies the predictions of a seed's directory to where others may be, such as those of runs without training."""
    told = finetuning_predictions.read(output_dir)
    _add(storage.join(source, PREDICTIONS), storage.join(output_dir, PREDICTIONS))
    finetuning_predictions.note_again(output_dir, told)


def _copy(source: str, target: str) -> None:
    with storage.complete_directory(target) as directory:
        for name in storage.list_directory(source):
            storage.copy_to_local(storage.join(source, name), os.path.join(directory, name))


def _add(source: str, target: str) -> None:
    """Copies files, also those in directories, to where others may be."""
    names = storage.list_directory(source)
    directories = [name for name in names if storage.is_directory(storage.join(source, name))]
    with storage.files_to_add(target) as directory:
        for name in sorted({*names} - {*directories}):
            storage.copy_to_local(storage.join(source, name), os.path.join(directory, name))
    for name in directories:
        _add(storage.join(source, name), storage.join(target, name))
