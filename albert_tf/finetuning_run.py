"""A whole run of one seed: train, take the best step, score, predict, and leave a model and a report.

OUTPUT_DIR/
model/                    the best step as a portable directory with task.json (see task_model)
report.json, report.html  every number, and the curves
logs/, checkpoints/       see finetuning
collapsed.json            attempts that were given up, where --restart_on_collapse began anew
predictions/              of each split, in the form its scorer takes, and as a page, the worst first; scores.json
                          tells what they are of, also those of later runs without training (finetuning_predictions)
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from albert_tf import (
    finetuning,
    finetuning_history,
    finetuning_predictions,
    finetuning_source,
    finetuning_state,
    loading,
    prediction_page,
    storage,
    task_model,
    training_page,
)
from albert_tf.config import AlbertConfig
from albert_tf.feature_set import FeatureSet
from albert_tf.finetuning_data import Split, has_labels
from albert_tf.finetuning_predictions import PREDICTIONS
from albert_tf.finetuning_source import Source
from albert_tf.formats.reading import read_checkpoint
from albert_tf.formats.training_run import CHECKPOINTS
from albert_tf.predicting import Predictor
from albert_tf.pretrained_model import PretrainedModel
from albert_tf.task_file import PAIRS
from albert_tf.task_kinds import catalogue
from albert_tf.task_kinds.arrays import label_names
from albert_tf.task_kinds.task_kind import TaskKind
from albert_tf.task_kinds.texts import LABEL_IDS
from albert_tf.tasks.examples import come_in_pairs
from albert_tf.tasks.task import Task
from albert_tf.tokenizer import Tokenizer

REPORT, REPORT_PAGE, COLLAPSES = "report.json", "report.html", "collapsed.json"
_SEEDS_APART = 1000  # of the attempts of one seed, so that they meet no other run's

Scores = dict[str, dict[str, float]]  # split to metric to value


class Data(NamedTuple):
    """A split with its sequences."""

    split: Split
    features: FeatureSet

    def renamed(self, name: str) -> Data:
        """The same under another name of the split."""
        return self._replace(split=dataclasses.replace(self.split, name=name))


@dataclasses.dataclass(frozen=True)
class Job:
    """What the runs of all seeds have in common.

    Attributes:
        task, kind: what is learned.
        source: what they begin with.
        config: of the model, with the rates of dropout of this training.
        tokenizer: of the source.
        strategy: where to compute.
        settings: how to train; each run has its own seed.
        training: what to learn from.
        scored: splits with labels; the first chooses the best step.
        predicted: splits to predict.
        eval_batch_size: rows at a time when nothing is learned.
        restarts: how often to begin anew where the loss stays at that of a guess.
        about: further values for task.json and the report, such as the recipe.
        tensorboard: write TensorBoard's files.
    """

    task: Task
    kind: TaskKind
    source: Source
    config: AlbertConfig
    strategy: tf.distribute.Strategy
    settings: finetuning_state.Settings
    training: Data
    scored: Sequence[Data]
    predicted: Sequence[Data]
    eval_batch_size: int
    restarts: int = 0
    about: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    tensorboard: bool = True

    @property
    def tokenizer(self) -> Tokenizer:
        """That of the source."""
        return self.source.tokenizer


def run(job: Job, output_dir: str, seed: int, stop: threading.Event) -> dict[str, Any] | None:
    """Trains to the end and returns the report, which is in report.json too; None where it was asked to stop.

    Raises:
        NotFiniteError: the loss is not finite.
        InputError: the output directory holds another run's checkpoints, or cannot be written.
    """
    guess = finetuning_history.guess_loss(job.kind.head, job.training.features)
    while True:
        attempts = read_collapses(output_dir)
        own_seed = seed + _SEEDS_APART * len(attempts)
        tf.keras.utils.set_random_seed(own_seed)
        with job.strategy.scope():
            model = finetuning_source.make_model(
                job.source, job.kind.head, job.config, first_answer=first_answer(job.task, job.training.features)
            )
        print(finetuning_source.beginning(job.source, model), flush=True)
        predictor = _predictor(job, model)
        outcome = finetuning.train(
            model,
            job.kind,
            job.training.features,
            dataclasses.replace(job.settings, seed=own_seed),
            output_dir,
            strategy=job.strategy,
            selection=_selection(job, model, predictor, output_dir, own_seed) if job.scored else None,
            guess=guess,
            stop_on_collapse=len(attempts) < job.restarts,
            stop=stop,
            tensorboard=job.tensorboard,
        )
        if outcome.status == finetuning.STOPPED:
            print(f"stopped by SIGTERM after step {outcome.step}, saved: the same command goes on from here")
            return None
        if outcome.status == finetuning.DONE:
            break
        _give_up(output_dir, attempts, own_seed, outcome.step)
    logs = finetuning_state.read_logs(output_dir)
    directory = storage.join(output_dir, task_model.MODEL)
    if finetuning_history.best_line(logs.evaluation, job.task.metrics) is None:
        _save(job, model, directory, {"step": outcome.step, "seed": own_seed})
    else:
        loading.load(read_checkpoint(directory), model.named_variables(), job.config)
    # What is kept tells its own step: after a kill a device that is not deterministic can score a step anew, otherwise.
    kept = task_model.read_about(directory)
    predictor.kind = catalogue.tuned(job.kind, kept["scores"][job.scored[0].split.name] if "scores" in kept else {})
    scores, files = evaluate(job.task, predictor.kind, predictor, [*job.scored, *job.predicted], output_dir)
    settings = dict(predictor.kind.settings)
    task_model.write_about(directory, {**kept, "settings": settings, "scores": scores})
    report = {
        "task": job.task.name,
        "seed": own_seed,
        "steps": outcome.step,
        "early_stop": outcome.early,
        "best_step": kept["step"],
        "metric": job.task.metrics[0],
        "decided_by": finetuning_history.decided_by(logs.evaluation, job.task.metrics),
        "scores": scores,
        "collapsed_attempts": attempts,
        "collapse_warning_at": _first_warning(logs.training, guess, job.settings),
        "collapsed": _has_collapsed(logs.training, guess, job.settings),
        "guess_loss": guess,
        "last_loss": finetuning_history.recent_loss(logs.training, **_steps(job.settings)),
        "settings": dataclasses.asdict(dataclasses.replace(job.settings, seed=own_seed)),
        **job.about,
        "kind": settings,
        "files": files,
        "seconds": outcome.seconds,
        "history": {"training": logs.training, "evaluation": logs.evaluation},
    }
    storage.write_json(storage.join(output_dir, REPORT), report)
    training_page.write(
        storage.join(output_dir, REPORT_PAGE),
        f"{job.task.title}, seed {own_seed}",
        logs.training,
        logs.evaluation,
        best_step=report["best_step"],
        facts={f"{split} {metric}": value for split, of in scores.items() for metric, value in of.items()},
    )
    return report


def evaluate(
    task: Task, kind: TaskKind, predictor: Predictor, data: Sequence[Data], output_dir: str
) -> tuple[Scores, dict[str, list[str]]]:
    """Predicts splits, writes their predictions and pages of them, and scores those with labels.

    Returns:
        The scores by split, and the files that were written by split.
    """
    scores: Scores = {}
    files = {}
    labels = label_names(kind.head)
    storage.make_directory(storage.join(output_dir, PREDICTIONS))
    for split, features in data:
        predictions = predictor.of_features(features, split.examples)
        path = storage.join(output_dir, PREDICTIONS, split.name)
        files[split.name] = task.write_submission(path, split.examples, predictions, labels)
        if has_labels(split.examples):
            scores[split.name] = kind.scores(split.examples, predictions, task.metrics)
        prediction_page.write(
            f"{path}.html",
            f"{task.title}, {split.name}",
            split.examples,
            predictions,
            labels=labels,
            scores=scores.get(split.name),
        )
        files[split.name].append(f"{path}.html")
        finetuning_predictions.note(output_dir, split, scores.get(split.name))
    return scores, files


def first_answer(task: Task, features: FeatureSet) -> float | None:
    """What a new regression head answers before it has learned anything; None for 0, as released.

    A bias moves by about the learning rate a step, so from 0 it would never reach labels around 100.

    Args:
        task: what is learned.
        features: of the training examples; of a regression their labels are `label_ids` [N] float32.
    """
    return float(np.mean(features.per_sequence[LABEL_IDS], dtype=np.float64)) if task.starts_at_mean else None


def read_collapses(output_dir: str) -> list[dict[str, Any]]:
    """The attempts that were given up: seed and step of each."""
    path = storage.join(output_dir, COLLAPSES)
    return storage.read_json(path) if storage.exists(path) else []


def _give_up(output_dir: str, attempts: Sequence[Mapping[str, Any]], seed: int, step: int) -> None:
    """Notes a collapsed attempt and removes what it left; a kill in between leaves an attempt that collapses again."""
    for name in (CHECKPOINTS, finetuning_state.LOGS, task_model.MODEL):
        storage.remove_directory(storage.join(output_dir, name))
    storage.write_json(storage.join(output_dir, COLLAPSES), [*attempts, {"seed": seed, "step": step}])
    print(f"beginning anew with the seed {seed + _SEEDS_APART}", flush=True)


def _predictor(job: Job, model: PretrainedModel) -> Predictor:
    return Predictor(model, job.kind, job.strategy, batch_size=job.eval_batch_size, static=job.settings.static_shapes)


def _selection(
    job: Job, model: PretrainedModel, predictor: Predictor, output_dir: str, seed: int
) -> finetuning_state.Selection:
    split, features = job.scored[0]

    def scores() -> Mapping[str, float]:
        predictions = predictor.of_features(features, split.examples)
        return job.kind.scores(split.examples, predictions, job.task.metrics)

    def keep(line: Mapping[str, Any]) -> None:
        found = {name: value for name, value in line.items() if name != "step"}
        about = {"step": line["step"], "seed": seed, "scores": {split.name: found}}
        _save(job, model, storage.join(output_dir, task_model.MODEL), about)

    return finetuning_state.Selection(job.task.metrics, scores, keep)


def _save(job: Job, model: PretrainedModel, directory: str, about: Mapping[str, Any]) -> None:
    task: dict[str, Any] = {"task": job.task.name, "title": job.task.title, "metrics": list(job.task.metrics)}
    pairs = come_in_pairs(job.training.split.examples)
    if pairs is not None:
        task[PAIRS] = pairs
    task_model.save(directory, model, job.tokenizer, job.kind, {**task, **about, **job.about})


def _has_collapsed(
    lines: Sequence[Mapping[str, Any]], guess: float | None, settings: finetuning_state.Settings
) -> bool:
    return finetuning_history.has_collapsed(lines, guess, **_steps(settings))


def _steps(settings: finetuning_state.Settings) -> dict[str, int]:
    return {"steps": settings.num_train_steps, "warmup_steps": settings.num_warmup_steps}


def _first_warning(
    lines: Sequence[Mapping[str, Any]], guess: float | None, settings: finetuning_state.Settings
) -> int | None:
    """The step at which the loss had stayed at that of a guess, or None."""
    counts = (count for count in range(1, len(lines) + 1) if _has_collapsed(lines[:count], guess, settings))
    first = next(counts, None)
    return None if first is None else int(lines[first - 1]["step"])
