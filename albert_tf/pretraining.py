"""Pre-trains one model: the loop with its logs, evaluations and checkpoints.

The same calls go on where a stopped process was, bit for bit: a step number is a data position, and what a log line
counts up is in the checkpoint. What is in the output directory is told by `pretraining_output`.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import tensorflow as tf
from absl import logging

from albert_tf import (
    checkpointing,
    distribution,
    optimization,
    pretraining_output,
    pretraining_report,
    pretraining_step,
    run_log,
    storage,
    training_log,
    workers,
)
from albert_tf.loss_scale import LossScale
from albert_tf.models import AlbertForPreTraining
from albert_tf.pretraining_output import EVALUATION_LOG, TENSORBOARD, TRAINING_LOG
from albert_tf.progress import Progress
from albert_tf.tokenizer import Tokenizer

TRAIN_BOARD, HELD_OUT_BOARD = "train", "held_out"


@dataclasses.dataclass(frozen=True)
class Learner:
    """A model and what trains it, all made in the scope of the strategy.

    Attributes:
        model: with both heads.
        tokenizer: what is saved beside the weights; None where the vocabulary is not known.
        schedule, optimizer: of the updates.
        loss_scale: in float16; None otherwise.
        strategy: where to compute.
        settings: of the step.
    """

    model: AlbertForPreTraining
    tokenizer: Tokenizer | None
    schedule: optimization.LearningRateSchedule
    optimizer: Any
    loss_scale: LossScale | None
    strategy: tf.distribute.Strategy
    settings: pretraining_step.StepSettings

    def weights(self) -> dict[str, Any]:
        """The model's variables by released name."""
        return self.model.named_variables()

    def variables(self) -> dict[str, Any]:
        """All that a checkpoint holds, by name."""
        weights = self.weights()
        return checkpointing.training_variables(
            weights,
            optimization.state_variables(self.optimizer, weights),
            training_log.loss_scale_variables(self.loss_scale),
        )


class Times(NamedTuple):
    """When something is done, in steps.

    Attributes:
        last: at which the training ends.
        per_call: steps made by one call on the device, at most.
        log, evaluate, save: steps between two of them; 0 for one at the end.
    """

    last: int
    per_call: int
    log: int
    evaluate: int
    save: int

    def is_time(self, step: int, every: int) -> bool:
        """Whether something that happens every so many steps, and at the end, happens after `step`."""
        return step == self.last or (every > 0 and step % every == 0)

    def steps_of_call(self, step: int) -> int:
        """How many steps can run in one call after `step`: up to the next thing to do, or the most of a call."""
        if step == 0:
            return 1  # the first loss is always logged: it tells whether the run begins where it should
        to_next = [every - step % every for every in (self.log, self.evaluate, self.save) if every > 0]
        return min(self.per_call, self.last - step, *to_next)


class Training:
    """A pre-training under way, which begins at the newest checkpoint of its output directory.

    Attributes:
        resumed_from: that checkpoint's path, or None.
        first_of_call, step: updates made before the newest call on the device, and by now.

    Raises:
        InputError: the checkpoints are of another model, or none can be read.
    """

    def __init__(
        self, learner: Learner, output_dir: str, times: Times, *, keep_checkpoints: int, tensorboard: bool
    ) -> None:
        self.learner = learner
        self.output_dir = output_dir
        self.times = times
        self._keep_checkpoints = keep_checkpoints
        self._weights, self._variables = learner.weights(), learner.variables()
        self._writes = distribution.is_chief(learner.strategy)
        self._train_loop = pretraining_step.make_train_loop(
            pretraining_step.make_train_step(
                learner.model, learner.optimizer, learner.strategy, learner.settings, learner.loss_scale
            )
        )
        restored = checkpointing.restore_latest(output_dir, self._variables, warn=logging.warning)
        self.resumed_from = restored.path if restored else None
        self.step = self.first_of_call = self._saved = restored.step if restored else 0
        self._interval = restored.state["interval"] if restored else pretraining_step.empty_interval()
        self._mark = (self.step, time.monotonic())
        self._boards = training_log.tensorboard_writers(
            storage.join(output_dir, TENSORBOARD) if tensorboard and self._writes else None,
            (TRAIN_BOARD, HELD_OUT_BOARD),
        )

    def train(
        self, batches: Iterator[Any], evaluate: Callable[[], Mapping[str, float]] | None, stop: threading.Event
    ) -> bool:
        """Trains up to the last step.

        Args:
            batches: of the whole strategy, from this step on.
            evaluate: numbers of the held-out records; None where there are none.
            stop: set by somebody who wants it to save and end.

        Returns:
            Whether it came to the last step; otherwise it was stopped, and what it has is saved.

        Raises:
            NotFiniteError: the loss is not finite.
        """
        times = self.times
        self._begin()
        with Progress(times.last, "pre-training", "steps", initial=self.step) as progress:
            self._mark = (self.step, time.monotonic())
            while self.step < times.last:
                if workers.any_worker(self.learner.strategy, stop.is_set()):
                    if self.step != self._saved:
                        self._save()
                    return False
                self._update(batches)
                progress.update(self.step - self.first_of_call)
                if self.step == 1 or times.is_time(self.step, times.log):
                    progress.update(0, **self._log())
                if evaluate and times.is_time(self.step, times.evaluate):
                    progress.write(self._evaluate(evaluate))
                if times.is_time(self.step, times.save):
                    self._save()
        return True

    def _begin(self) -> None:
        """Puts the config and the vocabulary into the directory, and takes out lines of steps that were lost."""
        if self._writes:
            pretraining_output.write_companions(self.output_dir, self.learner.model.config, self.learner.tokenizer)
            for log in (TRAINING_LOG, EVALUATION_LOG):
                run_log.cut_after(storage.join(self.output_dir, log), self.step)

    def _update(self, batches: Iterator[Any]) -> None:
        count = self.times.steps_of_call(self.step)
        self.first_of_call = self.step
        self._interval = self._train_loop(
            batches, tf.constant(self.step), tf.constant(count), training_log.to_tensors(self._interval)
        )
        self.step += count

    def _log(self) -> dict[str, str]:
        """Writes a line of the training log and begins a new interval; returns what stands behind the bar."""
        learner = self.learner
        interval = training_log.finite_numbers(self._interval)
        line = pretraining_report.training_line(
            self.step, interval, learner.schedule, learner.optimizer, learner.settings, learner.loss_scale
        )
        step, clock = self._mark
        speed = pretraining_report.pieces_per_second(interval, steps=self.step - step, seconds=time.monotonic() - clock)
        if self._writes:
            run_log.append(storage.join(self.output_dir, TRAINING_LOG), line)
            ratios = optimization.trust_ratios(learner.optimizer, self._weights)
            training_log.write_board(self._boards[TRAIN_BOARD], {**line, "pieces_per_second": speed}, ratios)
        self._interval, self._mark = pretraining_step.empty_interval(), (self.step, time.monotonic())
        return pretraining_report.progress_details(line, speed)

    def _evaluate(self, evaluate: Callable[[], Mapping[str, float]]) -> str:
        """Writes a line of the evaluation log and keeps the weights if they are the best; returns the line in words."""
        learner = self.learner
        self._interval = training_log.finite_numbers(self._interval)
        line = pretraining_report.evaluation_line(self.step, evaluate(), learner.settings)
        if self._writes:
            run_log.append(storage.join(self.output_dir, EVALUATION_LOG), line)
            training_log.write_board(self._boards[HELD_OUT_BOARD], line)
            pretraining_output.keep_if_best(
                self.output_dir, line, learner.model.config, self._weights, learner.tokenizer
            )
        self._mark = (self.step, time.monotonic())
        return pretraining_report.evaluation_sentence(line)

    def _save(self) -> None:
        self._interval = training_log.finite_numbers(self._interval)
        if self._writes:
            state = {"interval": self._interval}
            checkpointing.save(self.output_dir, self.step, self._variables, state, keep=self._keep_checkpoints)
        self._saved = self.step
