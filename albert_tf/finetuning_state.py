"""A fine-tuning under way: weights, optimizer, logs and step, and what is done between two steps.

In the output directory: `logs/` (training_log.jsonl, evaluation_log.jsonl and TensorBoard's files) and `checkpoints/`.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from absl import logging

from albert_tf import checkpointing, finetuning_history, finetuning_step, optimization, run_log, storage, training_log
from albert_tf.batches import Batches, bucket_lengths
from albert_tf.feature_set import FeatureSet
from albert_tf.loss_scale import LossScale
from albert_tf.task_kinds.task_kind import TaskKind
from albert_tf.training_step import distribute

LOGS, TRAINING_LOG, EVALUATION_LOG = "logs", "training_log.jsonl", "evaluation_log.jsonl"
BOARDS = ("train", "held_out")  # directories of TensorBoard's files beside the logs
_CHECKPOINTS_KEPT = 2


@dataclasses.dataclass(frozen=True)
class Settings:
    """How to train.

    Attributes:
        learning_rate, num_train_steps, num_warmup_steps: the schedule, see `LearningRateSchedule`.
        train_batch_size: rows of one update, over all replicas and parts.
        optimizer: "adamw" as released, or "lamb".
        weight_decay: of all but biases and LayerNorm.
        seed: of order and dropout.
        gradient_accumulation_steps: into how many parts each replica's share of a batch is cut.
        float16: whether the model computes in it, which needs a loss scale.
        eval_every: steps between two evaluations.
        early_stop_patience: evaluations without a better score after which to stop; 0 for never.
        log_steps: steps between two lines of the log.
        save_checkpoints_steps: steps between two checkpoints; 0 for one at the end.
        jit_compile: compile the whole step with XLA.
        static_shapes: pad every batch to the longest length, as TPUs want it.
    """

    learning_rate: float
    num_train_steps: int
    num_warmup_steps: int
    train_batch_size: int
    eval_every: int
    optimizer: str = "adamw"
    weight_decay: float = 0.01
    seed: int = 0
    gradient_accumulation_steps: int = 1
    float16: bool = False
    early_stop_patience: int = 0
    log_steps: int = 10
    save_checkpoints_steps: int = 1000
    jit_compile: bool = False
    static_shapes: bool = False


class Selection(NamedTuple):
    """How the best step is found.

    Attributes:
        metrics: the scores that decide: the first, of equal ones the second, ….
        evaluate: the scores of the model as it is, on the split that decides.
        keep: keeps the model's weights; given the line of the evaluation log, whenever it is the best so far.
    """

    metrics: Sequence[str]
    evaluate: Callable[[], Mapping[str, float]]
    keep: Callable[[Mapping[str, Any]], None]


class Logs(NamedTuple):
    """The lines of both logs, as far as they are written."""

    training: list[dict[str, Any]]
    evaluation: list[dict[str, Any]]


def read_logs(output_dir: str) -> Logs:
    """Both logs of a run."""
    return Logs(*(run_log.read(_log_file(output_dir, name)) for name in (TRAINING_LOG, EVALUATION_LOG)))


class Training:
    """What changes from step to step, and what is done between steps; see `finetuning.train` for the arguments."""

    def __init__(
        self,
        model: Any,
        kind: TaskKind,
        features: FeatureSet,
        settings: Settings,
        output_dir: str,
        strategy: tf.distribute.Strategy,
        selection: Selection | None,
        say: Callable[[str], None],
        tensorboard: bool,
    ):
        self.settings, self.output_dir, self.strategy = settings, output_dir, strategy
        self.metric = None if selection is None else selection.metrics[0]
        with strategy.scope():
            weights = model.named_variables()
            self.schedule = optimization.LearningRateSchedule(
                settings.learning_rate, settings.num_train_steps, settings.num_warmup_steps
            )
            self.optimizer = optimization.create_optimizer(
                settings.optimizer, self.schedule, weights, weight_decay=settings.weight_decay
            )
            self.loss_scale = LossScale() if settings.float16 else None
        lengths = bucket_lengths(kind.settings["max_seq_length"], static=settings.static_shapes)
        self.batches = Batches(features, settings.train_batch_size, lengths)
        self.train_step = finetuning_step.make_train_step(
            model,
            kind,
            self.optimizer,
            strategy,
            finetuning_step.StepSettings(
                seed=settings.seed,
                micro_batches=settings.gradient_accumulation_steps,
                jit_compile=settings.jit_compile,
            ),
            self.loss_scale,
            signature=None if settings.static_shapes else self.batches.signature(),
        )
        self.variables = checkpointing.training_variables(
            weights,
            optimization.state_variables(self.optimizer, weights),
            training_log.loss_scale_variables(self.loss_scale),
        )
        self._go_on(say)
        self.boards = training_log.tensorboard_writers(storage.join(output_dir, LOGS) if tensorboard else None, BOARDS)

    def _go_on(self, say: Callable[[str], None]) -> None:
        """Takes up the newest checkpoint, and the logs as far as it goes."""
        restored = checkpointing.restore_latest(self.output_dir, self.variables, warn=logging.warning)
        self.step = restored.step if restored else 0
        self._started = time.monotonic() - (restored.state.get("seconds", 0.0) if restored else 0.0)
        interval = restored.state["interval"] if restored else finetuning_step.empty_interval()
        self.interval = training_log.to_tensors(interval)
        if restored:
            say(f"resuming at step {self.step} from {restored.path}")
        storage.make_directory(storage.join(self.output_dir, LOGS))
        for name in (TRAINING_LOG, EVALUATION_LOG):
            run_log.cut_after(_log_file(self.output_dir, name), self.step)
        self.logs = read_logs(self.output_dir)

    def is_time(self, every: int) -> bool:
        """Whether something that happens every so many steps, and at the end, happens now; 0 is the end alone."""
        return self.step == self.settings.num_train_steps or (every > 0 and self.step % every == 0)

    def is_enough(self) -> bool:
        """Whether there were as many evaluations without a better score as the patience allows."""
        patience = self.settings.early_stop_patience
        if not patience or self.metric is None:
            return False
        return finetuning_history.evaluations_since_best(self.logs.evaluation, self.metric) >= patience

    def has_collapsed(self, guess: float | None) -> bool:
        """Whether the loss has stayed at that of a guess."""
        return finetuning_history.has_collapsed(
            self.logs.training,
            guess,
            steps=self.settings.num_train_steps,
            warmup_steps=self.settings.num_warmup_steps,
        )

    def update(self, batch: Mapping[str, np.ndarray]) -> None:
        """Makes the update of the next step."""
        batch = distribute(self.strategy, batch)
        self.interval = self.train_step(batch, tf.constant(self.step), self.interval)
        self.step += 1

    def log(self) -> Mapping[str, Any]:
        """Writes the line of the training log that ends here; raises `NotFiniteError`."""
        numbers = training_log.finite_numbers(self.interval)
        rate = training_log.last_rate(self.schedule, self.optimizer)
        line = {
            **_training_line(self.step, self.batches, numbers, rate),
            **training_log.loss_scale_line(self.loss_scale, numbers),
        }
        run_log.append(_log_file(self.output_dir, TRAINING_LOG), line)
        self.logs.training.append(line)
        training_log.write_board(self.boards["train"], line)
        self.interval = training_log.to_tensors(finetuning_step.empty_interval())
        return line

    def evaluate(self, selection: Selection) -> str:
        """Scores the model as it is, keeps it if it is the best, and says so; raises `NotFiniteError`."""
        training_log.finite_numbers(self.interval)
        line = {"step": self.step, **selection.evaluate()}
        run_log.append(_log_file(self.output_dir, EVALUATION_LOG), line)
        self.logs.evaluation.append(line)
        training_log.write_board(self.boards["held_out"], line)
        best = finetuning_history.best_line(self.logs.evaluation, selection.metrics)
        if best is line:
            selection.keep(line)
        return _evaluation_sentence(line, selection.metrics[0], best)

    def seconds(self) -> float:
        """How long the training took, over all starts."""
        return time.monotonic() - self._started

    def save(self) -> None:
        """Writes a checkpoint; raises `NotFiniteError`."""
        state = {"interval": training_log.finite_numbers(self.interval), "seconds": self.seconds()}
        checkpointing.save(self.output_dir, self.step, self.variables, state, keep=_CHECKPOINTS_KEPT)


def _training_line(step: int, batches: Batches, numbers: Mapping[str, float], rate: float) -> dict[str, Any]:
    """Means over the steps since the line before; there is no clock in it, so that equal runs have equal logs."""
    steps = numbers[training_log.STEPS]
    return {
        "step": step,
        "steps": int(steps),
        "epoch": step / batches.steps_per_epoch,
        "learning_rate": rate,
        "loss": numbers["loss"] / steps,
        "loss_max": numbers["loss_max"],
        "gradient_norm": numbers["gradient_norm"] / steps,
        "gradient_norm_max": numbers["gradient_norm_max"],
        "rows": numbers["rows"],
        "pieces": numbers["pieces"],
    }


def _evaluation_sentence(line: Mapping[str, Any], metric: str, best: Mapping[str, Any] | None) -> str:
    scores = ", ".join(f"{name} {value:.4f}" for name, value in line.items() if name != "step")
    verdict = (
        "the best so far"
        if best is line
        else f"the best is {best[metric]:.4f} at step {best['step']}"
        if best
        else "no score"
    )
    return f"step {line['step']}: {scores} ({verdict})"


def _log_file(output_dir: str, name: str) -> str:
    return storage.join(output_dir, LOGS, name)
