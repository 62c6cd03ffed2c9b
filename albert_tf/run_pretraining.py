"""Pre-trains an ALBERT: `python -m albert_tf.run_pretraining --input_file=… --albert_config_file=… --output_dir=…`.

What is in OUTPUT_DIR is told by `pretraining_output`, and what a run needs to go on by `run_settings` and
`checkpointing`. The same command goes on where a stopped run was, with the very numbers it would have had.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags, logging

from albert_tf import (
    config_files,
    device_flags,
    output_lock,
    pretraining_failure,
    pretraining_flags,
    pretraining_output,
    record_flags,
    run_log,
    run_settings,
    storage,
)
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError, run_main
from albert_tf.pretraining_flags import REFERENCE_BATCH, REFERENCE_RATE
from albert_tf.pretraining_output import EVALUATION_LOG, FINAL, TENSORBOARD, TRAINING_LOG
from albert_tf.progress import Progress

if TYPE_CHECKING:
    import tensorflow as tf

    from albert_tf.input_pipeline import RecordShape
    from albert_tf.record_files import RecordFiles

FLAGS = flags.FLAGS

UNIGRAM_RECORDS = 20_000  # records that the unigram guess is counted on, at most


def main(argv: Sequence[str]) -> int:
    with contextlib.ExitStack() as until_the_end:
        return pretrain(until_the_end)


def pretrain(until_the_end: contextlib.ExitStack) -> int:
    """Trains, or evaluates alone, as the flags say; returns the exit code."""
    # 1. The flags and the records are checked before TensorFlow is imported: a wrong one is told within a second.
    pretraining_flags.check_flags()
    stop = threading.Event()
    if FLAGS.do_train:
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
    config = AlbertConfig.from_json_file(config_files.config_path(FLAGS.albert_config_file))
    training, held_out = record_flags.find_records()

    # 2. The devices, and what must be set before the first of them is used.
    import tensorflow as tf

    from albert_tf import (
        checkpointing,
        distribution,
        evaluation,
        input_pipeline,
        optimization,
        pretraining_step,
        training_log,
        workers,
    )
    from albert_tf import pretraining_report as report
    from albert_tf.formats import training_run
    from albert_tf.loss_scale import LossScale
    from albert_tf.models import AlbertForPreTraining

    strategy = start_devices()
    chief = distribution.is_chief(strategy)

    # 3. What the records, the vocabulary and the model say of each other.
    training, held_out = map(record_flags.without_damaged, (training, held_out))
    tokenizer = record_flags.find_tokenizer(training or held_out, config)
    found = [records for records in (training, held_out) if records]
    shape = record_flags.agree_on_shape(found, config, tokenizer)

    # 4. The model and its optimizer.
    with strategy.scope():
        model = AlbertForPreTraining(config)
        weights = model.named_variables()
        schedule = optimization.LearningRateSchedule(
            FLAGS.learning_rate, FLAGS.num_train_steps, FLAGS.num_warmup_steps, FLAGS.poly_power, FLAGS.decay_start
        )
        optimizer = optimization.create_optimizer(
            FLAGS.optimizer,
            schedule,
            weights,
            weight_decay=FLAGS.weight_decay,
            bias_correction=FLAGS.lamb_bias_correction if FLAGS.optimizer == "lamb" else None,
        )
        loss_scale = LossScale() if FLAGS.mixed_precision == "float16" else None

    # 5. The functions: batches in, one update or one evaluation.
    order = {
        "global_batch_size": FLAGS.train_batch_size,
        "seed": FLAGS.seed,
        "shuffle_buffer_size": FLAGS.shuffle_buffer_size,
    }
    settings = pretraining_step.StepSettings(
        seed=FLAGS.seed,
        sentence_objective=shape.has_label,
        micro_batches=FLAGS.gradient_accumulation_steps,
        jit_compile=FLAGS.jit_compile,
    )
    train_step = pretraining_step.make_train_step(model, optimizer, strategy, settings, loss_scale)
    train_loop = pretraining_step.make_train_loop(train_step)
    evaluation_step = pretraining_step.make_evaluation_step(model, strategy, jit_compile=FLAGS.jit_compile)

    def evaluate(held_out: RecordFiles) -> dict[str, float]:
        size = FLAGS.eval_batch_size
        steps = input_pipeline.evaluation_steps(held_out, size, FLAGS.max_eval_steps or None)
        batches = input_pipeline.distribute(
            strategy, input_pipeline.evaluation_batches, held_out, shape, global_batch_size=size
        )
        return evaluation.evaluate(evaluation_step, itertools.islice(batches, steps))

    if training is None:
        assert held_out is not None  # pretraining_flags.check_flags saw to it
        return evaluate_only(weights, config, evaluate, held_out)

    # 6. The beginning: this run's newest checkpoint, or weights from elsewhere, or random ones.
    variables = checkpointing.training_variables(
        weights, optimization.state_variables(optimizer, weights), training_log.loss_scale_variables(loss_scale)
    )
    if chief:
        storage.make_directory(FLAGS.output_dir)
        until_the_end.enter_context(output_lock.only_user(FLAGS.output_dir))
        claim_output_directory(training, config, shape, strategy.num_replicas_in_sync)
    restored = checkpointing.restore_latest(FLAGS.output_dir, variables, warn=logging.warning)
    step = restored.step if restored else 0
    interval = restored.state["interval"] if restored else pretraining_step.empty_interval()
    if restored:
        print(f"resuming at step {step} from {restored.path} (--init_checkpoint has no part in this)")
    elif FLAGS.init_checkpoint:
        load_weights(FLAGS.init_checkpoint, weights, config)
    else:
        print("RANDOM INITIALISATION: there is no --init_checkpoint, so the weights begin at random")
    workers.check_same_step(strategy, step)
    if chief:
        pretraining_output.write_companions(FLAGS.output_dir, config, tokenizer)
        run_log.cut_after(storage.join(FLAGS.output_dir, TRAINING_LOG), step)
        run_log.cut_after(storage.join(FLAGS.output_dir, EVALUATION_LOG), step)

    # 7. What is about to happen, in full.
    report.print_start(pretraining_flags.all_settings(), config, weights, strategy, training, held_out, shape)
    print(rate_advice(FLAGS.learning_rate, FLAGS.train_batch_size), flush=True)

    # 8. The loop.
    boards = training_log.tensorboard_writers(
        storage.join(FLAGS.output_dir, TENSORBOARD) if FLAGS.tensorboard and chief else None, ("train", "held_out")
    )

    def save(step: int, interval: Mapping[str, Any]) -> None:
        state = {"interval": training_log.finite_numbers(interval)}
        if chief:
            checkpointing.save(FLAGS.output_dir, step, variables, state, keep=FLAGS.keep_checkpoint_max)

    last = FLAGS.num_train_steps
    first_of_call = saved = step
    try:
        batches = iter(
            input_pipeline.distribute(
                strategy, input_pipeline.training_batches, training, shape, start_step=step, **order
            )
        )
        with Progress(last, "pre-training", "steps", initial=step) as progress:
            mark = (step, time.monotonic())
            while step < last:
                if workers.any_worker(strategy, stop.is_set()):
                    if step != saved:
                        save(step, interval)
                    print(f"stopped by SIGTERM after step {step}, nothing is lost: the same command goes on from here")
                    return 0
                first_of_call, count = step, steps_until_something(step)
                interval = train_loop(batches, tf.constant(step), tf.constant(count), training_log.to_tensors(interval))
                step += count
                progress.update(count)

                if step == 1 or is_time(step, FLAGS.log_steps):
                    interval = training_log.finite_numbers(interval)
                    line = report.training_line(step, interval, schedule, optimizer, settings, loss_scale)
                    speed = report.pieces_per_second(interval, steps=step - mark[0], seconds=time.monotonic() - mark[1])
                    progress.update(0, **report.progress_details(line, speed))
                    if chief:
                        run_log.append(storage.join(FLAGS.output_dir, TRAINING_LOG), line)
                        ratios = optimization.trust_ratios(optimizer, weights)
                        training_log.write_board(boards["train"], {**line, "pieces_per_second": speed}, ratios)
                    interval, mark = pretraining_step.empty_interval(), (step, time.monotonic())

                if held_out and is_time(step, FLAGS.eval_interval):
                    interval = training_log.finite_numbers(interval)
                    line = report.evaluation_line(step, evaluate(held_out), settings)
                    progress.write(report.evaluation_sentence(line))
                    if chief:
                        run_log.append(storage.join(FLAGS.output_dir, EVALUATION_LOG), line)
                        training_log.write_board(boards["held_out"], line)
                        pretraining_output.keep_if_best(FLAGS.output_dir, line, config, weights, tokenizer)
                    mark = (step, time.monotonic())

                if is_time(step, FLAGS.save_checkpoints_steps):
                    save(step, interval)
                    saved = step
    except Exception as error:
        return pretraining_failure.tell(error, first_of_call, step, found, shape, order)

    # 9. The end.
    if chief:
        pretraining_output.save_portable(FLAGS.output_dir, FINAL, config, weights, tokenizer)
        unigram = None
        if held_out:
            counts = [input_pipeline.masked_piece_counts(r, shape, UNIGRAM_RECORDS) for r in (training, held_out)]
            unigram = evaluation.unigram_loss(*counts)
        logs = [run_log.read(storage.join(FLAGS.output_dir, name)) for name in (TRAINING_LOG, EVALUATION_LOG)]
        report.print_end(
            FLAGS.output_dir,
            *logs,
            vocab_size=config.vocab_size,
            unigram=unigram,
            checkpoint=training_run.latest(FLAGS.output_dir),
            tensorboard=FLAGS.tensorboard,
        )
    return 0


def is_time(step: int, every: int) -> bool:
    """Whether something that happens every so many steps, and at the end, happens after `step`; 0 is the end alone."""
    return step == FLAGS.num_train_steps or (every > 0 and step % every == 0)


def steps_until_something(step: int) -> int:
    """How many steps can run in one call: up to the next log, evaluation or checkpoint, or the end of the loop."""
    if step == 0:
        return 1  # the first loss is always logged: it tells whether the run begins where it should
    everies = (FLAGS.log_steps, FLAGS.eval_interval, FLAGS.save_checkpoints_steps)
    to_next = [every - step % every for every in everies if every > 0]
    return min(FLAGS.iterations_per_loop, FLAGS.num_train_steps - step, *to_next)


def rate_advice(rate: float, batch: int) -> str:
    """The square-root rule beside the rate chosen."""
    by_rule = REFERENCE_RATE * math.sqrt(batch / REFERENCE_BATCH)
    return (
        f"learning rate {rate:g} at batch {batch}; the square-root rule from the paper's {REFERENCE_RATE:g} at "
        f"{REFERENCE_BATCH} gives {by_rule:.3g}"
    )


def start_devices() -> tf.distribute.Strategy:
    """Sets up the devices, and checks that the batches can be divided among them."""
    from albert_tf import distribution

    paths = {"input_file": FLAGS.input_file, "eval_input_file": FLAGS.eval_input_file, "output_dir": FLAGS.output_dir}
    strategy = device_flags.start_devices(paths, FLAGS.seed)
    if FLAGS.do_train:
        distribution.per_replica_batch(FLAGS.train_batch_size, strategy, FLAGS.gradient_accumulation_steps)
    if FLAGS.eval_input_file:
        distribution.per_replica_batch(FLAGS.eval_batch_size, strategy)
    return strategy


def claim_output_directory(training: RecordFiles, config: AlbertConfig, shape: RecordShape, replicas: int) -> None:
    """Records what decides this run's result, or refuses to go on with a run that was begun otherwise.

    Without a checkpoint there is nothing to go on with: a start that failed holds nobody to its settings.
    """
    from albert_tf.formats import training_run

    if run_settings.holds_fine_tuning(FLAGS.output_dir):
        raise InputError(f"--output_dir={FLAGS.output_dir} holds a fine-tuning run: give another directory")
    settings = pretraining_flags.settings_of_result()
    settings["records"] = [[storage.basename(shard.path), shard.records, shard.bytes] for shard in training.shards]
    settings["replicas"] = replicas
    settings["sentence_loss"] = shape.has_label
    settings["model"] = config.to_dict()
    if not training_run.checkpoint_names(storage.join(FLAGS.output_dir, training_run.CHECKPOINTS)):
        run_settings.record_settings(FLAGS.output_dir, settings)
        return
    run_settings.claim(
        FLAGS.output_dir,
        settings,
        "Give the old ones, or another --output_dir, or --allow_changed_settings to go on with the new ones",
        allow_changes=FLAGS.allow_changed_settings,
    )


def load_weights(path: str, weights: Mapping[str, Any], config: AlbertConfig) -> None:
    """Gives the variables the weights of any checkpoint, no more than these, and says what matched."""
    from albert_tf import loading
    from albert_tf.formats.reading import read_checkpoint

    print("\n".join(loading.load(read_checkpoint(path, config), weights, config).lines()), flush=True)


def evaluate_only(
    weights: Mapping[str, Any],
    config: AlbertConfig,
    evaluate: Callable[[RecordFiles], dict[str, float]],
    held_out: RecordFiles,
) -> int:
    """Held-out numbers of the run's newest checkpoint, or else of --init_checkpoint."""
    from albert_tf.formats import training_run

    source = training_run.latest(FLAGS.output_dir) or FLAGS.init_checkpoint
    if not source:
        raise InputError(
            f"nothing to evaluate: --output_dir={FLAGS.output_dir} has no checkpoint, and there is no --init_checkpoint"
        )
    load_weights(source, weights, config)
    for name, value in evaluate(held_out).items():
        print(f"{name} = {value:.6g}")
    return 0


def script() -> None:
    pretraining_flags.define_flags()
    flags.adopt_module_key_flags(pretraining_flags)
    run_main(main)


if __name__ == "__main__":
    script()
