"""Pre-trains an ALBERT: `python -m albert_tf.run_pretraining --input_file=… --albert_config_file=… --output_dir=…`.

What is in OUTPUT_DIR:

albert_config.json, the vocabulary       what the weights need to be of use
run.json, checkpoints/                   what the run needs to go on (see run_settings, checkpointing)
training_log.jsonl                       a line per logged step
evaluation_log.jsonl                     a line per evaluation on held-out records
tensorboard/                             the same curves, and speed, loss scale and trust ratios
best/, model/                            portable directories: the best held-out step, and the end

The same command goes on where a stopped run was, with the very numbers it would have had.
"""

from __future__ import annotations

import itertools
import math
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags, logging

from albert_tf import config_files, record_files, run_log, run_settings, storage
from albert_tf.config import CONFIG_FILE, AlbertConfig
from albert_tf.errors import InputError, run_main
from albert_tf.progress import Progress

if TYPE_CHECKING:
    import tensorflow as tf

    from albert_tf.input_pipeline import RecordShape
    from albert_tf.record_files import RecordFiles
    from albert_tf.tokenizer import Tokenizer

FLAGS = flags.FLAGS

TRAINING_LOG, EVALUATION_LOG = "training_log.jsonl", "evaluation_log.jsonl"
BEST, FINAL = "best", "model"
BEST_FILE = "evaluation.json"  # in the best directory: its step and numbers
REFERENCE_BATCH, REFERENCE_RATE = 4096, 0.00176  # the released defaults (paper section 4.1)
UNIGRAM_RECORDS = 20_000  # records that the unigram guess is counted on, at most

# Flags that decide where, how often and by what means, but not what comes out; run.json leaves them out.
_WITHOUT_EFFECT_ON_THE_RESULT = frozenset(
    "albert_config_file allow_changed_settings do_eval do_train eval_batch_size eval_input_file eval_interval "
    "init_checkpoint input_file iterations_per_loop keep_accents do_lower_case keep_checkpoint_max log_steps "
    "max_eval_steps max_predictions_per_seq max_seq_length output_dir save_checkpoints_steps sentence_objective "
    "skip_bad_shards spm_model_file tensorboard tpu vocab_file".split()
)


def main(argv: Sequence[str]) -> int:
    # 1. The flags and the records are checked before TensorFlow is imported: a wrong one is told within a second.
    check_flags()
    config = AlbertConfig.from_json_file(config_files.config_path(FLAGS.albert_config_file))
    training, held_out = find_records()

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
    training, held_out = without_damaged(training), without_damaged(held_out)
    tokenizer = find_tokenizer(training or held_out, config)
    shape = agree_on_shape([records for records in (training, held_out) if records], config, tokenizer)

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
        assert held_out is not None  # check_flags saw to it
        return evaluate_only(weights, config, evaluate, held_out)

    # 6. The beginning: this run's newest checkpoint, or weights from elsewhere, or random ones.
    variables = checkpointing.training_variables(
        weights, optimization.state_variables(optimizer, weights), training_log.loss_scale_variables(loss_scale)
    )
    if chief:
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
        write_companions(config, tokenizer)
        run_log.cut_after(storage.join(FLAGS.output_dir, TRAINING_LOG), step)
        run_log.cut_after(storage.join(FLAGS.output_dir, EVALUATION_LOG), step)

    # 7. What is about to happen, in full.
    report.print_start(all_settings(), config, weights, strategy, training, held_out, shape)
    print(rate_advice(FLAGS.learning_rate, FLAGS.train_batch_size), flush=True)

    # 8. The loop.
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    boards = training_log.tensorboard_writers(
        storage.join(FLAGS.output_dir, "tensorboard") if FLAGS.tensorboard and chief else None, ("train", "held_out")
    )
    last, first_of_call = FLAGS.num_train_steps, step
    try:
        batches = iter(
            input_pipeline.distribute(
                strategy, input_pipeline.training_batches, training, shape, start_step=step, **order
            )
        )
        with Progress(last, "pre-training", "steps", initial=step) as progress:
            mark = (step, time.monotonic())
            while step < last:
                first_of_call, count = step, steps_until_something(step)
                interval = train_loop(batches, tf.constant(step), tf.constant(count), training_log.to_tensors(interval))
                step += count
                progress.update(count)
                stopping = workers.any_worker(strategy, stop.is_set())

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
                        keep_if_best(line, config, weights, tokenizer)
                    mark = (step, time.monotonic())

                if stopping or is_time(step, FLAGS.save_checkpoints_steps):
                    interval = training_log.finite_numbers(interval)
                    if chief:
                        state = {"interval": interval}
                        checkpointing.save(FLAGS.output_dir, step, variables, state, keep=FLAGS.keep_checkpoint_max)

                if stopping and step < last:
                    print(f"stopped by SIGTERM after step {step}, saved: the same command goes on from here")
                    return 0
    except Exception as error:
        return tell_failure(error, first_of_call, step, [r for r in (training, held_out) if r], shape, order)

    # 9. The end.
    if chief:
        save_portable(FINAL, config, weights, tokenizer)
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


def check_flags() -> None:
    """Refuses what can be seen to be wrong without looking at any file."""
    needed = {"albert_config_file": FLAGS.albert_config_file, "output_dir": FLAGS.output_dir}
    if FLAGS.do_train:
        needed["input_file"] = FLAGS.input_file
    else:
        needed["eval_input_file"] = FLAGS.eval_input_file
    for name, value in needed.items():
        if not value:
            raise InputError(f"--{name} is missing (--help lists the flags)")
    if not FLAGS.do_train and not FLAGS.do_eval:
        raise InputError("--nodo_train and --nodo_eval leave nothing to do")
    if FLAGS.spm_model_file and FLAGS.vocab_file:
        raise InputError("give one vocabulary: --spm_model_file or --vocab_file")
    for name in ("learning_rate", "poly_power", "weight_decay"):
        if not math.isfinite(float(FLAGS[name].value or 0.0)):  # the flags' own bounds let nan through
            raise InputError(f"--{name}={FLAGS[name].value} is not a finite number")


def find_records() -> tuple[RecordFiles | None, RecordFiles | None]:
    """The training and the held-out shards that the flags name."""
    wanted = {
        "input_file": FLAGS.input_file if FLAGS.do_train else None,
        "eval_input_file": FLAGS.eval_input_file if FLAGS.do_eval else None,
    }
    found = [
        record_files.find_record_files(patterns, flag, skip_bad=FLAGS.skip_bad_shards) if patterns else None
        for flag, patterns in wanted.items()
    ]
    return found[0], found[1]


def without_damaged(records: RecordFiles | None) -> RecordFiles | None:
    """The records without the shards whose checksums show damage, if that is asked for."""
    from albert_tf import input_pipeline

    if records is None or not FLAGS.skip_bad_shards:
        return records
    records = record_files.leave_out(records, input_pipeline.is_damaged)
    if records.left_out:
        logging.warning("left out %d bad shard(s): %s", len(records.left_out), ", ".join(records.left_out))
    return records


def start_devices() -> tf.distribute.Strategy:
    """Sets up devices, precision, determinism and seed, and checks that the batches can be divided among them."""
    from albert_tf import distribution

    paths = {name: FLAGS[name].value for name in ("input_file", "eval_input_file", "output_dir")}
    distribution.check_tpu_paths(FLAGS.tpu, paths)
    strategy = distribution.start_devices(
        FLAGS.distribution_strategy,
        tpu=FLAGS.tpu,
        num_devices=FLAGS.num_devices,
        num_logical_cpu_devices=FLAGS.num_logical_cpu_devices,
        precision=FLAGS.mixed_precision,
        deterministic=FLAGS.deterministic,
        seed=FLAGS.seed,
    )
    if FLAGS.do_train:
        distribution.per_replica_batch(FLAGS.train_batch_size, strategy, FLAGS.gradient_accumulation_steps)
    if FLAGS.eval_input_file:
        distribution.per_replica_batch(FLAGS.eval_batch_size, strategy)
    return strategy


def find_tokenizer(records: RecordFiles | None, config: AlbertConfig) -> Tokenizer | None:
    """The vocabulary the flags name, or else the one the records were made with if its file is still there."""
    from albert_tf.tokenization import load_tokenizer

    made_with = records.settings if records else {}
    flag = "vocab_file" if FLAGS.vocab_file else "spm_model_file"
    file = FLAGS[flag].value or made_with.get("vocab_file")
    if not file or (not FLAGS[flag].value and not storage.exists(file)):
        logging.warning("the vocabulary is not known (--spm_model_file): it will not be put beside the model")
        return None
    tokenizer = load_tokenizer(
        file,
        flag=flag,
        do_lower_case=made_with.get("do_lower_case", True) if FLAGS.do_lower_case is None else FLAGS.do_lower_case,
        keep_accents=made_with.get("keep_accents", False) if FLAGS.keep_accents is None else FLAGS.keep_accents,
    )
    tokenizer.check_config(config.vocab_size)
    return tokenizer


def agree_on_shape(found: Sequence[RecordFiles], config: AlbertConfig, tokenizer: Tokenizer | None) -> RecordShape:
    """Compares flags, vocabulary and model with the records, all of them with each other, and returns their shape."""
    from albert_tf import input_pipeline

    expected: dict[str, Any] = {
        "max_seq_length": FLAGS.max_seq_length,
        "max_predictions_per_seq": FLAGS.max_predictions_per_seq,
        "sentence_objective": None if FLAGS.sentence_objective == "none" else FLAGS.sentence_objective,
        **({name: tokenizer.settings()[name] for name in tokenizer.settings()} if tokenizer else {}),
    }
    sources = {name: f"--{name}" for name in expected}
    for name in tokenizer.settings() if tokenizer else ():
        sources[name] = f"the vocabulary {tokenizer.vocab_file}"  # type: ignore[union-attr]
    for records in found:
        made_with = input_pipeline.record_settings(records)
        record_files.check_against(made_with, expected, records_flag=records.flag, flags=sources)
        for name in ("max_seq_length", "max_predictions_per_seq", "sentence_objective", "vocab_sha256"):
            if expected.get(name) is None and made_with.get(name) is not None:
                expected[name], sources[name] = made_with[name], f"the records of --{records.flag}"
        record_files.check_fits_model(made_with, config, records.flag)
    objective = "none" if FLAGS.sentence_objective == "none" else expected["sentence_objective"]
    return input_pipeline.RecordShape(
        max_seq_length=expected["max_seq_length"],
        max_predictions_per_seq=expected["max_predictions_per_seq"],
        vocab_size=config.vocab_size,
        type_vocab_size=config.type_vocab_size,
        has_label=objective != "none",
    )


def all_settings() -> dict[str, Any]:
    """Every flag of this script and its value."""
    script = sys.modules[define_flags.__module__]
    return {flag.name: flag.value for flag in FLAGS.get_key_flags_for_module(script)}


def claim_output_directory(training: RecordFiles, config: AlbertConfig, shape: RecordShape, replicas: int) -> None:
    """Records what decides this run's result, or refuses to go on with a run that was begun otherwise."""
    storage.make_directory(FLAGS.output_dir)
    settings = {name: value for name, value in all_settings().items() if name not in _WITHOUT_EFFECT_ON_THE_RESULT}
    settings["records"] = [[storage.basename(shard.path), shard.records, shard.bytes] for shard in training.shards]
    settings["replicas"] = replicas
    settings["sentence_loss"] = shape.has_label
    settings["model"] = config.to_dict()
    changed = run_settings.changed_settings(FLAGS.output_dir, settings)
    if changed and not FLAGS.allow_changed_settings:
        raise InputError(
            f"--output_dir={FLAGS.output_dir} holds a run that was begun with other settings: {'; '.join(changed)}. "
            "Give the old ones, or another --output_dir, or --allow_changed_settings to go on with the new ones"
        )
    for sentence in changed:
        logging.warning("going on with a changed setting: %s", sentence)
    run_settings.record_settings(FLAGS.output_dir, settings)


def write_companions(config: AlbertConfig, tokenizer: Tokenizer | None) -> None:
    """Puts config and vocabulary into the output directory."""
    with storage.files_to_add(FLAGS.output_dir) as directory:
        config.to_json_file(f"{directory}/{CONFIG_FILE}")
        if tokenizer:
            tokenizer.save(directory)


def save_portable(name: str, config: AlbertConfig, weights: Mapping[str, Any], tokenizer: Any, **more: Any) -> None:
    """Writes a portable directory into the output directory, and each of `more` as JSON beside the weights."""
    from albert_tf.formats import portable
    from albert_tf.formats.checkpoint import Vocabulary
    from albert_tf.head_config import HeadConfig

    vocabulary = Vocabulary.of(tokenizer) if tokenizer else None
    with storage.complete_directory(storage.join(FLAGS.output_dir, name)) as directory:
        portable.save(directory, config, weights, HeadConfig("pretraining"), vocabulary)
        for file, value in more.items():
            storage.write_json(f"{directory}/{file}.json", value)


def keep_if_best(line: Mapping[str, float], config: AlbertConfig, weights: Mapping[str, Any], tokenizer: Any) -> None:
    """Keeps the weights apart if no evaluation before had a lower held-out loss."""
    path = storage.join(FLAGS.output_dir, BEST, BEST_FILE)
    if not storage.exists(path) or line["loss"] < storage.read_json(path)["loss"]:
        save_portable(BEST, config, weights, tokenizer, evaluation=dict(line))


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


def tell_failure(
    error: Exception, first: int, step: int, found: Sequence[RecordFiles], shape: RecordShape, order: Mapping[str, int]
) -> int:
    """Says in which steps a run failed and which shards they read; a damaged record is looked for and named."""
    import tensorflow as tf

    from albert_tf import input_pipeline
    from albert_tf.training_log import NotFiniteError

    if isinstance(error, InputError):
        raise error
    if isinstance(error, (tf.errors.DataLossError, tf.errors.InvalidArgumentError)):
        for records in found:
            bad = input_pipeline.find_bad_record(records, shape)
            if bad is not None:
                raise InputError(f"at step {first + 1}: {bad}") from error
    if isinstance(error, NotFiniteError):
        first = error.step
    else:
        traceback.print_exc()
    shards = input_pipeline.files_of_batch(found[0], first, **order)
    epoch = first * order["global_batch_size"] // found[0].records
    where = (
        f"step {first + 1}" if isinstance(error, NotFiniteError) or step <= first + 1 else f"steps {first + 1}..{step}"
    )
    kind = type(error).__name__
    print(
        f"error: {where} failed (epoch {epoch + 1}; shards {', '.join(shards)}): {kind}: {error}",
        file=sys.stderr,
        flush=True,
    )
    return 1


def define_flags() -> None:
    flags.DEFINE_string(
        "input_file",
        None,
        "Training shards (TFRecord) of create_pretraining_data: names and patterns with commas between. As many shards "
        "as a worker reads at once (16) or more mix best; fewer, down to one, work too.",
    )
    flags.DEFINE_string("eval_input_file", None, "Held-out shards, in the same form.")
    flags.DEFINE_string("albert_config_file", None, "The model: a JSON file, or a name such as albert_base_v2.")
    flags.DEFINE_string("output_dir", None, "Where everything goes, and where a stopped run goes on.")
    flags.DEFINE_string(
        "init_checkpoint",
        None,
        "Weights to begin with, at step 0: any checkpoint that albert_tf.convert reads, by its path, its address or "
        "the name of a public model. Without it the weights are random.",
    )
    flags.DEFINE_string("spm_model_file", None, "The SentencePiece model; by default the one the records name.")
    flags.DEFINE_string("vocab_file", None, "A WordPiece vocab.txt, in place of --spm_model_file.")
    flags.DEFINE_bool("do_lower_case", None, "Of the vocabulary kept beside the model; by default as the records say.")
    flags.DEFINE_bool("keep_accents", None, "Of the vocabulary kept beside the model; by default as the records say.")
    flags.DEFINE_integer("max_seq_length", None, "If given, the records must have this length.")
    flags.DEFINE_integer("max_predictions_per_seq", None, "If given, the records must have so many prediction slots.")
    flags.DEFINE_enum(
        "sentence_objective",
        None,
        ["sop", "nsp", "none"],
        "If given, the records must have been made for it; none trains on masked pieces alone, whatever the records.",
    )
    flags.DEFINE_bool("skip_bad_shards", False, "Read every shard at start-up and leave out damaged and empty ones.")

    flags.DEFINE_bool("do_train", True, "Train.")
    flags.DEFINE_bool("do_eval", True, "Evaluate on --eval_input_file.")
    flags.DEFINE_integer(
        "train_batch_size", 4096, "Examples of one update, over all replicas and parts.", lower_bound=1
    )
    flags.DEFINE_integer(
        "gradient_accumulation_steps",
        1,
        "Into how many parts each replica's share of a batch is cut, to save memory; the update is the same.",
        lower_bound=1,
    )
    flags.DEFINE_integer("eval_batch_size", 64, "Examples evaluated at a time, over all replicas.", lower_bound=1)
    flags.DEFINE_integer("max_eval_steps", 0, "Batches of an evaluation, at most; 0 for all records.", lower_bound=0)
    flags.DEFINE_integer("num_train_steps", 125000, "Updates.", lower_bound=1)
    flags.DEFINE_enum("optimizer", "lamb", ["lamb", "adamw"], "The optimizer.")
    flags.DEFINE_float(
        "learning_rate",
        REFERENCE_RATE,
        "The peak rate. 0.00176 belongs to batch 4096; the square-root rule gives 0.000622 for 512, 0.00044 for 256, "
        "0.000156 for 32. Small models bear more.",
        lower_bound=0.0,
    )
    flags.DEFINE_integer("num_warmup_steps", 3125, "Updates over which the rate rises from 0.", lower_bound=0)
    flags.DEFINE_float("poly_power", 1.0, "The power of the rate's decay to 0.", lower_bound=0.0)
    flags.DEFINE_enum(
        "decay_start",
        "zero",
        ["zero", "warmup_end"],
        "Where the decay counts from: step 0, as released (the rate drops at the end of the warm-up), or the end of "
        "the warm-up.",
    )
    flags.DEFINE_float("weight_decay", 0.01, "Decay of all but biases and LayerNorm.", lower_bound=0.0)
    flags.DEFINE_bool(
        "lamb_bias_correction", True, "LAMB as in its paper; --nolamb_bias_correction is the released ALBERT's."
    )
    flags.DEFINE_integer(
        "seed", 12345, "Decides initial weights, order and dropout.", lower_bound=0, upper_bound=2**31 - 1
    )
    flags.DEFINE_integer("shuffle_buffer_size", 10000, "Records shuffled among each other at a time.", lower_bound=1)

    flags.DEFINE_integer("log_steps", 100, "Updates between two lines of the log.", lower_bound=1)
    flags.DEFINE_integer("eval_interval", 1000, "Updates between two evaluations; 0 for one at the end.", lower_bound=0)
    flags.DEFINE_integer(
        "save_checkpoints_steps", 1000, "Updates between two checkpoints; 0: at the end.", lower_bound=0
    )
    flags.DEFINE_integer("keep_checkpoint_max", 5, "Checkpoints that stay; 0 for all.", lower_bound=0)
    flags.DEFINE_integer("iterations_per_loop", 10, "Updates per call from Python, at most.", lower_bound=1)
    flags.DEFINE_bool("tensorboard", True, "Write OUTPUT_DIR/tensorboard.")
    flags.DEFINE_bool("allow_changed_settings", False, "Go on with a run that was begun with other settings.")

    flags.DEFINE_enum(
        "distribution_strategy",
        None,
        ["one_device", "mirrored", "multi_worker", "tpu"],
        "one_device (default); mirrored: all GPUs of this machine; multi_worker: the same command on each machine, "
        "TF_CONFIG naming them; tpu (default with --tpu).",
    )
    flags.DEFINE_integer("num_devices", None, "With mirrored: how many devices.", lower_bound=1)
    flags.DEFINE_integer("num_logical_cpu_devices", 1, "Divide the CPU, to try out mirrored.", lower_bound=1)
    flags.DEFINE_string("tpu", None, "A TPU's name or grpc:// address, or local on a TPU VM. Files must be on gs://.")
    flags.DEFINE_enum(
        "mixed_precision",
        "float32",
        ["float32", "bfloat16", "float16"],
        "Of the large products; weights, LayerNorm, softmax and losses stay float32. float16 has a dynamic loss scale.",
    )
    flags.DEFINE_bool("jit_compile", False, "Compile the step with XLA.")
    flags.DEFINE_bool(
        "deterministic", None, "The same bits each time; by default on CPUs, where it costs next to nothing."
    )


def script() -> None:
    define_flags()
    run_main(main)


if __name__ == "__main__":
    script()
