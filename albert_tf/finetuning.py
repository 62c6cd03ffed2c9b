"""Fine-tunes one model: the loop with its logs, evaluations and checkpoints.

The same call goes on where a stopped one was, bit for bit: a step number is a data position, dropout draws from (seed,
step, replica), and every decision is a function of logs that are on disk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from albert_tf import finetuning_history
from albert_tf.feature_set import FeatureSet
from albert_tf.finetuning_state import Selection, Settings, Training
from albert_tf.head_config import REGRESSION
from albert_tf.progress import Progress
from albert_tf.task_kinds.task_kind import TaskKind

DONE, STOPPED, COLLAPSED = "done", "stopped", "collapsed"


class Outcome(NamedTuple):
    """How a training ended.

    Attributes:
        status: `DONE`, `STOPPED` (it was asked to, and has saved), or `COLLAPSED` (and that was to end it).
        step: updates made.
        early: whether it ended before the last step for want of a better score.
        resumed_at: the step it went on from, 0 for a new one.
        seconds: it took up to there, evaluations included, over all starts; work that a kill lost is left out.
    """

    status: str
    step: int
    early: bool
    resumed_at: int
    seconds: float


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
    run = Training(model, kind, features, settings, output_dir, strategy, selection, say, tensorboard)
    stop = stop or threading.Event()
    last = settings.num_train_steps
    first, warned = run.step, False

    def outcome(status: str) -> Outcome:
        return Outcome(status, run.step, run.step < last and run.is_enough(), first, run.seconds())

    stream = run.batches.training(seed=settings.seed, start_step=run.step)
    with Progress(last, "fine-tuning", "steps", initial=run.step) as progress:
        while run.step < last and not run.is_enough():
            run.update(next(stream))
            progress.update(1)
            stopping = stop.is_set()
            if run.step == 1 or run.is_time(settings.log_steps):
                line = run.log()
                progress.update(0, loss=f"{line['loss']:.3f}")
                if not warned and run.has_collapsed(guess):
                    warned = True
                    progress.write(collapse_sentence(run.logs.training, guess, settings, kind.head.problem))
                    if stop_on_collapse:
                        return outcome(COLLAPSED)
            if selection is not None and run.is_time(settings.eval_every):
                progress.write(run.evaluate(selection))
            if stopping or run.is_enough() or run.is_time(settings.save_checkpoints_steps):
                run.save()
            if stopping and run.step < last:
                return outcome(STOPPED)
    return outcome(DONE)


def collapse_sentence(
    lines: Sequence[Mapping[str, Any]], guess: float | None, settings: Settings, problem: str | None
) -> str:
    """The warning that a model does not learn, and what has helped others.

    Args:
        lines: of the training log up to where `finetuning_history.has_collapsed`.
        guess: the loss of a guess.
        settings: of the training.
        problem: of a classifier, see `HeadConfig.problem`.
    """
    loss = finetuning_history.recent_loss(lines, steps=settings.num_train_steps, warmup_steps=settings.num_warmup_steps)
    assert loss is not None and guess is not None  # else nothing has collapsed
    of_numbers = "labels rescaled to about 0 to 5, more steps, " if problem == REGRESSION else ""
    return (
        f"WARNING: at step {lines[-1]['step']} the loss ({loss:.4f}, the mean of a fifth of all steps) is "
        f"{finetuning_history.against_guess(loss, guess)} that of a guess that does not look at the text "
        f"({guess:.4f}): the model does not learn. What helps: {of_numbers}a smaller --learning_rate (now "
        f"{settings.learning_rate:g}; 5e-6 to 1e-5 for large models, and for small ones no less than 1e-4), more "
        f"--num_warmup_steps (now {settings.num_warmup_steps}), dropout 0, another --seed (--restart_on_collapse=N "
        "tries N of them), a larger --train_batch_size"
    )
