"""Fine-tunes one model: the loop with its logs, evaluations, checkpoints, and the decisions that follow from them.

In the output directory: `logs/` (training_log.jsonl, evaluation_log.jsonl and TensorBoard's files) and `checkpoints/`.
The same call goes on where a stopped one was, bit for bit: a step number is a data position, dropout draws from (seed,
step, replica), and every decision is a function of logs that are on disk.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf
from absl import logging

from albert_tf import checkpointing, finetuning_history, finetuning_step, optimization, run_log, storage, training_log
from albert_tf.batches import Batches, bucket_lengths
from albert_tf.feature_set import FeatureSet
from albert_tf.loss_scale import LossScale
from albert_tf.progress import Progress
from albert_tf.task_kinds.task_kind import TaskKind
from albert_tf.training_step import distribute

LOGS, TRAINING_LOG, EVALUATION_LOG = "logs", "training_log.jsonl", "evaluation_log.jsonl"
DONE, STOPPED, COLLAPSED = "done", "stopped", "collapsed"
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
        metric: the score that decides.
        evaluate: the scores of the model as it is, on the split that decides.
        keep: keeps the model's weights; given the line of the evaluation log, whenever it is the best so far.
    """

    metric: str
    evaluate: Callable[[], Mapping[str, float]]
    keep: Callable[[Mapping[str, Any]], None]


class Outcome(NamedTuple):
    """How a training ended.

    Attributes:
        status: `DONE`, `STOPPED` (it was asked to, and has saved), or `COLLAPSED` (and that was to end it).
        step: updates made.
        early: whether it ended before the last step for want of a better score.
        resumed_at: the step it went on from, 0 for a new one.
        seconds: it took since then, evaluations included.
    """

    status: str
    step: int
    early: bool
    resumed_at: int
    seconds: float


class Logs(NamedTuple):
    """The lines of both logs, as far as they are written."""

    training: list[dict[str, Any]]
    evaluation: list[dict[str, Any]]


def read_logs(output_dir: str) -> Logs:
    """Both logs of a run."""
    return Logs(*(run_log.read(_log_file(output_dir, name)) for name in (TRAINING_LOG, EVALUATION_LOG)))


def train(
    model: Any,
    kind: TaskKind,
    features: FeatureSet,
    settings: Settings,
    output_dir: str,
    *,
    strategy: tf.distribute.Strategy,
    selection: Selection | None = None,
    guess: float | None = None,
    stop_on_collapse: bool = False,
    stop: threading.Event | None = None,
    tensorboard: bool = True,
    say: Callable[[str], None] = print,
) -> Outcome:
    """Trains the model, or goes on with what is in the output directory.

    Args:
        model: made in the scope of the strategy; its weights change in place.
        kind: of the task.
        features: made with `training=True`.
        settings: see there.
        output_dir: where logs and checkpoints are.
        strategy: where to compute.
        selection: how the best step is found; None where there is no split for it.
        guess: the loss of a guess that does not look at the text, see `finetuning_history.guess_loss`.
        stop_on_collapse: end as `COLLAPSED` when the loss stays there; else it is said once and training goes on.
        stop: set by somebody who wants it to save and end.
        tensorboard: write TensorBoard's files too.
        say: told what a person should know.

    Raises:
        NotFiniteError: the loss is not finite; the step is in the error.
        InputError: the checkpoints in the output directory are of another model, or none can be read.
    """
    with strategy.scope():
        weights = model.named_variables()
        schedule = optimization.LearningRateSchedule(
            settings.learning_rate, settings.num_train_steps, settings.num_warmup_steps
        )
        optimizer = optimization.create_optimizer(
            settings.optimizer, schedule, weights, weight_decay=settings.weight_decay
        )
        loss_scale = LossScale() if settings.float16 else None
    lengths = bucket_lengths(kind.settings["max_seq_length"], static=settings.static_shapes)
    batches = Batches(features, settings.train_batch_size, lengths)
    train_step = finetuning_step.make_train_step(
        model,
        kind,
        optimizer,
        strategy,
        finetuning_step.StepSettings(
            seed=settings.seed,
            micro_batches=settings.gradient_accumulation_steps,
            jit_compile=settings.jit_compile,
        ),
        loss_scale,
        signature=None if settings.static_shapes else batches.signature(),
    )
    variables = checkpointing.training_variables(
        weights, optimization.state_variables(optimizer, weights), training_log.loss_scale_variables(loss_scale)
    )
    restored = checkpointing.restore_latest(output_dir, variables, warn=logging.warning)
    first = step = restored.step if restored else 0
    interval = training_log.to_tensors(restored.state["interval"] if restored else finetuning_step.empty_interval())
    if restored:
        say(f"resuming at step {step} from {restored.path}")
    files = [_log_file(output_dir, name) for name in (TRAINING_LOG, EVALUATION_LOG)]
    storage.make_directory(storage.join(output_dir, LOGS))
    for file in files:
        run_log.cut_after(file, step)
    logs = read_logs(output_dir)
    boards = training_log.tensorboard_writers(
        storage.join(output_dir, LOGS) if tensorboard else None, ("train", "held_out")
    )

    last, start, warned = settings.num_train_steps, time.monotonic(), False
    patience = settings.early_stop_patience

    def is_time(every: int) -> bool:
        return step == last or (every > 0 and step % every == 0)

    def early() -> bool:
        if not patience or selection is None:
            return False
        return finetuning_history.evaluations_since_best(logs.evaluation, selection.metric) >= patience

    def outcome(status: str) -> Outcome:
        return Outcome(status, step, step < last and early(), first, time.monotonic() - start)

    stream = batches.training(seed=settings.seed, start_step=step)
    with Progress(last, "fine-tuning", "steps", initial=step) as progress:
        while step < last and not early():
            batch = distribute(strategy, next(stream))
            interval = train_step(batch, tf.constant(step), interval)
            step += 1
            progress.update(1)
            stopping = stop is not None and stop.is_set()

            if step == 1 or is_time(settings.log_steps):
                numbers = training_log.finite_numbers(interval)
                line = _training_line(step, batches, numbers, training_log.last_rate(schedule, optimizer))
                line.update(training_log.loss_scale_line(loss_scale, numbers))
                progress.update(0, loss=f"{line['loss']:.3f}")
                run_log.append(files[0], line)
                logs.training.append(line)
                training_log.write_board(boards["train"], line)
                interval = training_log.to_tensors(finetuning_step.empty_interval())
                if not warned and finetuning_history.has_collapsed(
                    logs.training, guess, steps=last, warmup_steps=settings.num_warmup_steps
                ):
                    warned = True
                    progress.write(collapse_sentence(logs.training, guess, settings))
                    if stop_on_collapse:
                        return outcome(COLLAPSED)

            if selection is not None and is_time(settings.eval_every):
                training_log.finite_numbers(interval)
                line = {"step": step, **selection.evaluate()}
                run_log.append(files[1], line)
                logs.evaluation.append(line)
                training_log.write_board(boards["held_out"], line)
                best = finetuning_history.best_line(logs.evaluation, selection.metric)
                if best is line:
                    selection.keep(line)
                progress.write(_evaluation_sentence(line, selection.metric, best))

            if stopping or early() or is_time(settings.save_checkpoints_steps):
                state = {"interval": training_log.finite_numbers(interval)}
                checkpointing.save(output_dir, step, variables, state, keep=_CHECKPOINTS_KEPT)
            if stopping and step < last:
                return outcome(STOPPED)
    return outcome(DONE)


def collapse_sentence(lines: list[dict[str, Any]], guess: float | None, settings: Settings) -> str:
    """The warning that a model does not learn, and what has helped others."""
    return (
        f"WARNING: at step {lines[-1]['step']} the loss ({lines[-1]['loss']:.4f}) is still that of a guess that does "
        f"not look at the text ({guess:.4f}), as it was for a fifth of all steps: the model does not learn. What "
        f"helps: a smaller --learning_rate (now {settings.learning_rate:g}; 5e-6 to 1e-5 for large models), more "
        f"--num_warmup_steps (now {settings.num_warmup_steps}), dropout 0, another --seed (--restart_on_collapse=N "
        "tries N of them), a larger --train_batch_size"
    )


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
