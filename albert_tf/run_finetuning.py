"""Fine-tunes, scores and predicts: `python -m albert_tf.run_finetuning --task=… --data_dir=… --model=… --output_dir=…`.

What is in OUTPUT_DIR is told by `finetuning_run`, and for several seeds by `finetuning_seeds`. The same command goes on
where a stopped run was, with the very numbers it would have had.
"""

from __future__ import annotations

import dataclasses
import json
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags

from albert_tf import (
    device_flags,
    finetuning_flags,
    finetuning_output,
    finetuning_predictions,
    job_flags,
    output_lock,
    run_settings,
    storage,
    task_flags,
    training_failure,
)
from albert_tf.errors import InputError, run_main
from albert_tf.finetuning_data import Split, check_pairs
from albert_tf.head_config import HEAD_CONFIG_FILE, HeadConfig
from albert_tf.task_file import PAIRS
from albert_tf.tasks import rows, text_file
from albert_tf.tasks.examples import fingerprint
from albert_tf.tasks.task import Task

if TYPE_CHECKING:
    import tensorflow as tf

    from albert_tf.finetuning_run import Job

FLAGS = flags.FLAGS

# Parts of `finetuning_state.Settings` that decide how often something is written, but not what comes out.
_WITHOUT_EFFECT_ON_THE_RESULT = ("save_checkpoints_steps",)


def main(argv: Sequence[str]) -> int:
    # 1. The flags, the task and its files are checked before TensorFlow is imported: a wrong one is told at once.
    finetuning_flags.check_flags()
    to_do = finetuning_flags.what_to_do()
    task = task_flags.find_task(to_do)
    stop = threading.Event()
    if "train" in to_do:
        finetuning_output.check(FLAGS.output_dir)
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
    splits = task_flags.read_splits(task, to_do)

    # 2. The devices, and what must be set before the first of them is used.
    strategy = device_flags.start_devices({"output_dir": FLAGS.output_dir}, FLAGS.seed)
    if "train" not in to_do:
        return use_model(task, splits, strategy)

    # 3. What the training begins with, and how it goes.
    source = job_flags.find_source(task)
    job = job_flags.make_job(task, source, splits, strategy)

    # 4. The training, of one seed or several.
    from albert_tf import finetuning_report, finetuning_run, finetuning_seeds

    seeds = [FLAGS.seed + number for number in range(FLAGS.seeds)]
    storage.make_directory(FLAGS.output_dir)
    with output_lock.only_user(FLAGS.output_dir):
        claim_output_directory(job)
        try:
            if len(seeds) == 1:
                report = finetuning_run.run(job, FLAGS.output_dir, seeds[0], stop)
            else:
                report = finetuning_seeds.run(job, FLAGS.output_dir, seeds, stop)
        except Exception as error:
            return tell_failure(error)
    if report is not None:
        end = finetuning_report.print_end if len(seeds) == 1 else finetuning_report.print_seeds_end
        end(FLAGS.output_dir, report)
    return 0


def claim_output_directory(job: Job) -> None:
    """Records what decides this run's result, or refuses to go on with a run that was begun otherwise."""
    settings = dataclasses.asdict(job.settings)
    for name in _WITHOUT_EFFECT_ON_THE_RESULT:
        del settings[name]
    splits = [data.split for data in (job.training, *job.scored)]
    settings.update(
        task=job.task.name,
        head=job.kind.head.to_dict(),
        kind=dict(job.kind.settings),
        model=job.config.to_dict(),
        weights=_short(job.source.fingerprint()),
        vocabulary=job.tokenizer.settings(),
        examples={
            split.name: f"{len(split.examples)} rows of content {_short(fingerprint(split.examples))}"
            for split in splits
        },
        mixed_precision=FLAGS.mixed_precision,
        replicas=job.strategy.num_replicas_in_sync,
        restart_on_collapse=job.restarts,
        several_seeds=FLAGS.seeds > 1,
        **{name: value for name, value in job.about.items() if name == "columns"},
    )
    settings = json.loads(json.dumps(settings))  # as it will be read again
    run_settings.claim(FLAGS.output_dir, settings, "Give the old ones to go on with it, or another --output_dir")


def _short(fingerprint: str) -> str:
    """Enough of a fingerprint to tell two things apart."""
    return fingerprint[:16]


def use_model(task: Task, splits: Mapping[str, Split], strategy: tf.distribute.Strategy) -> int:
    """Scores and predicts with the run's own model, or else with --model."""
    from albert_tf import finetuning_report, finetuning_run, predicting, task_model

    path = task_model.find(FLAGS.output_dir) or FLAGS.model
    if not path:
        raise InputError(
            f"--output_dir={FLAGS.output_dir} has no fine-tuned model to use: train one first (--do_train), or name "
            "one with --model"
        )
    changes = job_flags.settings_by_flags(task)
    if FLAGS.max_seq_length is not None:
        changes["max_seq_length"] = FLAGS.max_seq_length
    with strategy.scope():
        model, tokenizer, kind, about = task_model.load(path, **changes)
    check_model(path, kind.head, about, task)
    for split in splits.values():
        columns = task.columns.get(split.path)
        check_pairs(split.examples, about.get(PAIRS), f"the model in {path} has learned from", columns)
    given = FLAGS.model if path != FLAGS.model else None
    for line in finetuning_report.columns_lines(task, splits.values()):
        print(line)
    print(f"using the model in {path}" + (f" (--model={given} has no part in this)" if given else ""), flush=True)
    predictor = predicting.Predictor(model, kind, strategy, batch_size=FLAGS.eval_batch_size, static=bool(FLAGS.tpu))
    data = job_flags.data_of(kind, splits, tokenizer)
    storage.make_directory(FLAGS.output_dir)
    with output_lock.only_user(FLAGS.output_dir):
        beside = [of.renamed(finetuning_predictions.name_beside(FLAGS.output_dir, of.split)) for of in data.values()]
        scores, files = finetuning_run.evaluate(task, kind, predictor, beside, FLAGS.output_dir)
    finetuning_report.print_use(FLAGS.output_dir, scores, files)
    return 0


def check_model(path: str, head: HeadConfig, about: Mapping[str, Any], task: Task) -> None:
    """Refuses a model that cannot answer for the task; warns of one that was trained on another."""
    from albert_tf.task_kinds.arrays import label_names

    if head.kind != task.head:
        raise InputError(f"{path} has the head {head.kind}, but {task.title} needs {task.head}: is it of this task?")
    if task.problem_type and head.problem != task.problem_type:
        raise InputError(
            f"{path} is for the problem type {head.problem}, not {task.problem_type}"
            + (f": give --problem_type={head.problem}" if task.name == text_file.TEXT_FILE.name else "")
        )
    labels = label_names(head)
    if task.labels and set(labels) != set(task.labels):
        those = f"those of {task.title} are {rows.names(task.labels)}"
        if not head.labels and len(labels) == len(task.labels):
            raise InputError(
                f"{path} has no names for its {len(labels)} labels, and {those}: name them in the order of the outputs "
                f"(id2label in a config.json of Hugging Face, labels in {HEAD_CONFIG_FILE})"
            )
        raise InputError(f"{path} has the labels {rows.names(labels)}, and {those}: give a model of this task")
    if about.get("task", task.name) != task.name:
        print(f"WARNING: {path} was fine-tuned on {about.get('title', about['task'])}, and is used for {task.title}")


def tell_failure(error: Exception) -> int:
    """Says in a sentence what can be said so; anything else is a programming error with its stack trace."""
    from albert_tf.training_log import NotFiniteError

    if isinstance(error, NotFiniteError):
        print(f"error: step {error.step + 1} failed: {error}", file=sys.stderr, flush=True)
        return 1
    raise training_failure.of_the_machine(error) or error


def script() -> None:
    finetuning_flags.define_flags()
    flags.adopt_module_key_flags(finetuning_flags)
    run_main(main)


if __name__ == "__main__":
    script()
