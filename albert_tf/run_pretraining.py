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
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags

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
from albert_tf.pretraining_output import EVALUATION_LOG, FINAL, TRAINING_LOG
from albert_tf.tokenizer import Tokenizer

if TYPE_CHECKING:
    import tensorflow as tf

    from albert_tf.input_pipeline import RecordShape
    from albert_tf.pretraining import Learner, Training
    from albert_tf.record_files import RecordFiles

FLAGS = flags.FLAGS

UNIGRAM_RECORDS = 20_000  # records that the unigram guess is counted on, at most


def main(argv: Sequence[str]) -> int:
    """Trains, or evaluates alone, as the flags say; returns the exit code."""
    # 1. The flags and the records are checked before TensorFlow is imported: a wrong one is told within a second.
    pretraining_flags.check_flags()
    stop = threading.Event()
    if FLAGS.do_train:
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
    config = AlbertConfig.from_json_file(config_files.config_path(FLAGS.albert_config_file))
    training, held_out = record_flags.find_records()

    # 2. The devices, and what must be set before the first of them is used.
    strategy = start_devices()

    # 3. What the records, the vocabulary and the model say of each other.
    training, held_out = map(record_flags.without_damaged, (training, held_out))
    tokenizer = record_flags.find_tokenizer(training or held_out, config)
    shape = record_flags.agree_on_shape([records for records in (training, held_out) if records], config, tokenizer)

    # 4. The model, and one of the two things to do with it.
    learner = make_learner(config, tokenizer, strategy, sentence_objective=shape.has_label)
    evaluate = make_evaluation(learner, held_out, shape) if held_out else None
    if training is None:
        assert evaluate is not None  # pretraining_flags.check_flags saw to it
        return evaluate_only(learner, evaluate)
    with claimed_output_directory(training, learner, shape):
        return train(learner, training, held_out, shape, evaluate, stop)


def train(
    learner: Learner,
    training: RecordFiles,
    held_out: RecordFiles | None,
    shape: RecordShape,
    evaluate: Callable[[], dict[str, float]] | None,
    stop: threading.Event,
) -> int:
    """Begins or goes on, tells what is about to happen, trains, and tells what came of it."""
    from albert_tf import distribution, input_pipeline, pretraining_report

    run = begin(learner)
    pretraining_report.print_start(
        pretraining_flags.all_settings(),
        learner.model.config,
        learner.weights(),
        learner.strategy,
        training,
        held_out,
        shape,
    )
    print(rate_advice(FLAGS.learning_rate, FLAGS.train_batch_size), flush=True)
    order = {
        "global_batch_size": FLAGS.train_batch_size,
        "seed": FLAGS.seed,
        "shuffle_buffer_size": FLAGS.shuffle_buffer_size,
    }
    try:
        batches: Iterator[Any] = iter(
            input_pipeline.distribute(
                learner.strategy, input_pipeline.training_batches, training, shape, start_step=run.step, **order
            )
        )
        is_done = run.train(batches, evaluate, stop)
    except Exception as error:
        found = [records for records in (training, held_out) if records]
        return pretraining_failure.tell(error, run.first_of_call, run.step, found, shape, order)
    if not is_done:
        print(f"stopped by SIGTERM after step {run.step}, nothing is lost: the same command goes on from here")
    elif distribution.is_chief(learner.strategy):
        end(learner, training, held_out, shape)
    return 0


def begin(learner: Learner) -> Training:
    """The beginning: this run's newest checkpoint, or weights from elsewhere, or random ones."""
    from albert_tf import pretraining, workers

    times = pretraining.Times(
        last=FLAGS.num_train_steps,
        per_call=FLAGS.iterations_per_loop,
        log=FLAGS.log_steps,
        evaluate=FLAGS.eval_interval,
        save=FLAGS.save_checkpoints_steps,
    )
    run = pretraining.Training(
        learner,
        FLAGS.output_dir,
        times,
        keep_checkpoints=FLAGS.keep_checkpoint_max,
        tensorboard=FLAGS.tensorboard,
    )
    if run.resumed_from:
        print(f"resuming at step {run.step} from {run.resumed_from} (--init_checkpoint has no part in this)")
    elif FLAGS.init_checkpoint:
        load_weights(FLAGS.init_checkpoint, learner.weights(), learner.model.config)
    else:
        print("RANDOM INITIALISATION: there is no --init_checkpoint, so the weights begin at random")
    workers.check_same_step(learner.strategy, run.step)
    return run


def end(learner: Learner, training: RecordFiles, held_out: RecordFiles | None, shape: RecordShape) -> None:
    """Saves the portable model and prints the closing report."""
    from albert_tf import evaluation, input_pipeline, pretraining_report
    from albert_tf.formats import training_run

    config = learner.model.config
    pretraining_output.save_portable(FLAGS.output_dir, FINAL, config, learner.weights(), learner.tokenizer)
    unigram = None
    if held_out:
        counts = [input_pipeline.masked_piece_counts(r, shape, UNIGRAM_RECORDS) for r in (training, held_out)]
        unigram = evaluation.unigram_loss(*counts)
    logs = [run_log.read(storage.join(FLAGS.output_dir, name)) for name in (TRAINING_LOG, EVALUATION_LOG)]
    pretraining_report.print_end(
        FLAGS.output_dir,
        *logs,
        vocab_size=config.vocab_size,
        unigram=unigram,
        checkpoint=training_run.latest(FLAGS.output_dir),
        tensorboard=FLAGS.tensorboard,
    )


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


def make_learner(
    config: AlbertConfig, tokenizer: Tokenizer | None, strategy: tf.distribute.Strategy, *, sentence_objective: bool
) -> Learner:
    """The model and its optimizer, as the flags say."""
    from albert_tf import optimization, pretraining, pretraining_step
    from albert_tf.loss_scale import LossScale
    from albert_tf.models import AlbertForPreTraining

    with strategy.scope():
        model = AlbertForPreTraining(config)
        schedule = optimization.LearningRateSchedule(
            FLAGS.learning_rate, FLAGS.num_train_steps, FLAGS.num_warmup_steps, FLAGS.poly_power, FLAGS.decay_start
        )
        optimizer = optimization.create_optimizer(
            FLAGS.optimizer,
            schedule,
            model.named_variables(),
            weight_decay=FLAGS.weight_decay,
            bias_correction=FLAGS.lamb_bias_correction if FLAGS.optimizer == "lamb" else None,
        )
        loss_scale = LossScale() if FLAGS.mixed_precision == "float16" else None
    settings = pretraining_step.StepSettings(
        seed=FLAGS.seed,
        sentence_objective=sentence_objective,
        micro_batches=FLAGS.gradient_accumulation_steps,
        jit_compile=FLAGS.jit_compile,
    )
    return pretraining.Learner(model, tokenizer, schedule, optimizer, loss_scale, strategy, settings)


def make_evaluation(learner: Learner, held_out: RecordFiles, shape: RecordShape) -> Callable[[], dict[str, float]]:
    """A function that gives the numbers of the held-out records, see `evaluation.evaluate`."""
    from albert_tf import evaluation, input_pipeline, pretraining_step

    evaluation_step = pretraining_step.make_evaluation_step(
        learner.model, learner.strategy, jit_compile=FLAGS.jit_compile
    )

    def evaluate() -> dict[str, float]:
        size = FLAGS.eval_batch_size
        steps = input_pipeline.evaluation_steps(held_out, size, FLAGS.max_eval_steps or None)
        batches = input_pipeline.distribute(
            learner.strategy, input_pipeline.evaluation_batches, held_out, shape, global_batch_size=size
        )
        return evaluation.evaluate(evaluation_step, itertools.islice(batches, steps))

    return evaluate


@contextlib.contextmanager
def claimed_output_directory(training: RecordFiles, learner: Learner, shape: RecordShape) -> Iterator[None]:
    """The output directory, where nobody else works meanwhile, and which holds this run or none."""
    from albert_tf import distribution

    with contextlib.ExitStack() as until_the_end:
        if distribution.is_chief(learner.strategy):
            storage.make_directory(FLAGS.output_dir)
            until_the_end.enter_context(output_lock.only_user(FLAGS.output_dir))
            claim_output_directory(training, learner.model.config, shape, learner.strategy.num_replicas_in_sync)
        yield


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


def evaluate_only(learner: Learner, evaluate: Callable[[], dict[str, float]]) -> int:
    """Held-out numbers of the run's newest checkpoint, or else of --init_checkpoint."""
    from albert_tf.formats import training_run

    source = training_run.latest(FLAGS.output_dir) or FLAGS.init_checkpoint
    if not source:
        raise InputError(
            f"nothing to evaluate: --output_dir={FLAGS.output_dir} has no checkpoint, and there is no --init_checkpoint"
        )
    load_weights(source, learner.weights(), learner.model.config)
    for name, value in evaluate().items():
        print(f"{name} = {value:.6g}")
    return 0


def script() -> None:
    pretraining_flags.define_flags()
    flags.adopt_module_key_flags(pretraining_flags)
    run_main(main)


if __name__ == "__main__":
    script()
