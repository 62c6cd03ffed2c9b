"""Fine-tunes, scores and predicts: `python -m albert_tf.run_finetuning --task=… --data_dir=… --model=… --output_dir=…`.

What is in OUTPUT_DIR is told by `finetuning_run`, and for several seeds by `finetuning_seeds`. The same command goes on
where a stopped run was, with the very numbers it would have had.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags

from albert_tf import config_files, finetuning_data, finetuning_output, run_settings, storage, task_file
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError, run_main
from albert_tf.finetuning_data import Split, kind_of_split
from albert_tf.head_config import PROBLEM_TYPES, HeadConfig
from albert_tf.tasks import catalogue, choice_file, recipes, rows, text_file
from albert_tf.tasks.examples import fingerprint
from albert_tf.tasks.recipes import Recipe
from albert_tf.tasks.task import TRAIN, Task

if TYPE_CHECKING:
    import tensorflow as tf

    from albert_tf.finetuning_run import Data, Job
    from albert_tf.finetuning_source import Source, VocabularyFlags
    from albert_tf.finetuning_state import Settings
    from albert_tf.task_kinds.task_kind import TaskKind
    from albert_tf.tokenizer import Tokenizer

FLAGS = flags.FLAGS

OWN_FILES = ("text", "text_file", "choice", "choice_file")
_TEXT_COLUMNS = ("text_column", "text_b_column", "problem_type", "label_separator")
_CHOICE_COLUMNS = ("choice_columns", "passage_column", "question_column", "first_choice_label")
_COLUMNS = (*_TEXT_COLUMNS, *_CHOICE_COLUMNS, "label_column", "id_column", "has_header")
_FLAG_OF_SETTING = {"null_threshold": "null_score_threshold"}  # where the two have different names
_MOST_EVALUATIONS, _LEAST_LOG_LINES, _MOST_LOG_STEPS = 20, 50, 50
# Parts of `finetuning_state.Settings` that decide how often something is written, but not what comes out.
_WITHOUT_EFFECT_ON_THE_RESULT = ("save_checkpoints_steps",)


def main(argv: Sequence[str]) -> int:
    # 1. The flags, the task and its files are checked before TensorFlow is imported: a wrong one is told at once.
    check_flags()
    to_do = what_to_do()
    task = find_task(to_do)
    if "train" in to_do:
        finetuning_output.check(FLAGS.output_dir)
    splits = read_splits(task, to_do)

    # 2. The devices, and what must be set before the first of them is used.
    strategy = start_devices()
    if "train" not in to_do:
        return use_model(task, splits, strategy)

    # 3. What the training begins with, and how it goes.
    source = find_source(task)
    job = make_job(task, source, splits, strategy)

    # 4. The training, of one seed or several.
    from albert_tf import finetuning_report, finetuning_run, finetuning_seeds

    seeds = [FLAGS.seed + number for number in range(FLAGS.seeds)]
    storage.make_directory(FLAGS.output_dir)
    with finetuning_output.only_user(FLAGS.output_dir):
        claim_output_directory(job)
        stop = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
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


# Flags, task, files


def check_flags() -> None:
    """Refuses what can be seen to be wrong without looking at any file."""
    for name in ("task", "output_dir"):
        if not FLAGS[name].value:
            raise InputError(f"--{name} is missing (--help lists the flags)")
    if not FLAGS.data_dir and not (FLAGS.train_file or FLAGS.dev_file or FLAGS.test_file):
        raise InputError("--data_dir is missing: the directory of the task's files (or name them with --train_file, …)")
    for name in ("model", "init_from_task"):
        if FLAGS[name].value == "":
            raise InputError(f"--{name} is empty: give a model, or leave the flag out and name --albert_config_file")
    if FLAGS.model and FLAGS.init_from_task:
        raise InputError("give one beginning: --model or --init_from_task")
    if FLAGS.spm_model_file and FLAGS.vocab_file:
        raise InputError("give one vocabulary: --spm_model_file or --vocab_file")
    if FLAGS.num_train_steps is not None and FLAGS.num_train_epochs is not None:
        raise InputError("give the length of the training once: --num_train_steps or --num_train_epochs")
    for name in ("learning_rate", "num_train_epochs", "weight_decay", "null_score_threshold"):
        value: Any = FLAGS[name].value
        if value is not None and not math.isfinite(value):  # the flags' own bounds let nan through
            raise InputError(f"--{name}={value} is not a finite number")
    if FLAGS.num_train_epochs == 0:
        raise InputError(
            "--num_train_epochs=0 leaves nothing to train: give more, or leave the training out (--do_eval)"
        )
    if "train" not in what_to_do():
        return
    if not FLAGS.model and not FLAGS.init_from_task:
        if not FLAGS.albert_config_file:
            raise InputError(
                "--model is missing: a pre-trained model to begin with (or --albert_config_file with "
                "--spm_model_file, to begin with random weights)"
            )
        if not FLAGS.spm_model_file and not FLAGS.vocab_file:
            raise InputError("--spm_model_file is missing: random weights need a vocabulary (or --vocab_file)")


def what_to_do() -> frozenset[str]:
    """ "train", "eval", "predict": those asked for, or else all that are not refused."""
    said = {"train": FLAGS.do_train, "eval": FLAGS.do_eval, "predict": FLAGS.do_predict}
    if any(said.values()):
        return frozenset(name for name, value in said.items() if value)
    left = frozenset(name for name, value in said.items() if value is None)
    if not left:
        raise InputError("--nodo_train, --nodo_eval and --nodo_predict leave nothing to do")
    return left


def find_task(to_do: frozenset[str]) -> Task:
    """The task that the flags name, or that of a person's own files, read by default as for the training."""
    name = FLAGS.task.lower().replace("-", "_")
    if name not in OWN_FILES:
        refuse_flags(_COLUMNS, f"are for your own files (--task=text), not for --task={FLAGS.task}")
        return catalogue.find_task(FLAGS.task)
    columns = columns_by_flags()
    if "train" not in to_do:
        columns = {**columns_of_model(), **columns}
    if columns.get("choice_columns") or name.startswith("choice"):
        refuse_flags(_TEXT_COLUMNS, "have no place beside --choice_columns")
        return choice_file.choice_file_task(
            choice_file.ChoiceColumns(
                choices=tuple(columns.get("choice_columns", ())),
                passage=columns.get("passage_column"),
                question=columns.get("question_column"),
                label=columns.get("label_column"),
                id=columns.get("id_column"),
                first_label=columns.get("first_choice_label", 0),
                has_header=columns.get("has_header"),
            )
        )
    refuse_flags(_CHOICE_COLUMNS, "need --choice_columns")
    own = text_file.Columns(
        columns.get("text_column"),
        columns.get("text_b_column"),
        columns.get("label_column"),
        columns.get("id_column"),
        columns.get("has_header"),
    )
    more = {"problem": columns.get("problem_type"), "separator": columns.get("label_separator")}
    return text_file.text_file_task(own, **{name: value for name, value in more.items() if value is not None})


def columns_by_flags() -> dict[str, Any]:
    """How a person's own files are to be read, by flag, as far as flags are given."""
    values = {
        "text_column": FLAGS.text_column,
        "text_b_column": FLAGS.text_b_column,
        "label_column": FLAGS.label_column,
        "id_column": FLAGS.id_column,
        "has_header": FLAGS.has_header,
        "problem_type": FLAGS.problem_type,
        "label_separator": FLAGS.label_separator,
        "choice_columns": FLAGS.choice_columns,
        "passage_column": FLAGS.passage_column,
        "question_column": FLAGS.question_column,
        "first_choice_label": FLAGS.first_choice_label,
    }
    return {name: value for name, value in values.items() if value is not None}


def columns_of_model() -> dict[str, Any]:
    """The same as the model to use was trained with them; the problem also where it was trained elsewhere."""
    directory = task_file.find(FLAGS.output_dir) or (task_file.find(FLAGS.model) if FLAGS.model else None)
    columns = task_file.read_about(directory).get("columns", {}) if directory else {}
    head = HeadConfig.read(directory or FLAGS.model or FLAGS.output_dir)
    return {**({"problem_type": head.problem} if head is not None and head.kind == "classifier" else {}), **columns}


def refuse_flags(names: Sequence[str], why: str) -> None:
    """Refuses flags that would have no effect."""
    given = [f"--{name}" for name in names if FLAGS[name].value is not None]
    if given:
        raise InputError(f"{', '.join(given)} {why}")


def read_splits(task: Task, to_do: frozenset[str]) -> dict[str, Split]:
    """The examples of every split that has a part in what is to be done."""
    files = {"train": FLAGS.train_file, "dev": FLAGS.dev_file, "test": FLAGS.test_file}
    paths = finetuning_data.find_paths(task, FLAGS.data_dir, files)
    asked = {"dev": FLAGS.do_eval, "test": FLAGS.do_predict}
    needed = [TRAIN] if "train" in to_do else []
    needed += [kind for kind, is_asked in asked.items() if is_asked]
    finetuning_data.check_needed(task, FLAGS.data_dir, paths, needed)
    chooses_best_step = "train" in to_do and FLAGS.do_eval is not False
    used = {TRAIN: "train" in to_do, "dev": "eval" in to_do or chooses_best_step, "test": "predict" in to_do}
    splits = {}
    for name, path in paths.items():
        if used[kind_of_split(name)]:
            most = FLAGS.max_train_examples if name == TRAIN else None
            splits[name] = finetuning_data.read_split(task, name, path, most=most, seed=FLAGS.seed)
            finetuning_data.check_labels(task, splits[name])
    if not splits:
        finetuning_data.check_needed(task, FLAGS.data_dir, paths, ["dev" if "eval" in to_do else "test"])
    if TRAIN in splits and FLAGS.early_stop_patience and not any(kind_of_split(name) == "dev" for name in splits):
        raise InputError(
            "--early_stop_patience needs scores, and there is no split to compute them on: give --dev_file"
        )
    if TRAIN in splits:
        finetuning_data.warn_of_overlap(splits[TRAIN], [split for name, split in splits.items() if name != TRAIN])
    return splits


def start_devices() -> tf.distribute.Strategy:
    """Sets up devices, precision, determinism and seed, as the flags say."""
    from albert_tf import distribution

    distribution.check_tpu_paths(FLAGS.tpu, {"output_dir": FLAGS.output_dir})
    return distribution.start_devices(
        FLAGS.distribution_strategy,
        tpu=FLAGS.tpu,
        num_devices=FLAGS.num_devices,
        num_logical_cpu_devices=FLAGS.num_logical_cpu_devices,
        precision=FLAGS.mixed_precision,
        deterministic=FLAGS.deterministic,
        seed=FLAGS.seed,
    )


# What a training begins with, and how it goes


def find_source(task: Task) -> Source:
    """Weights, sizes and vocabulary as the flags name them."""
    from albert_tf import finetuning_source, task_model

    vocabulary = vocabulary_flags()
    config = None
    if FLAGS.albert_config_file:
        config = AlbertConfig.from_json_file(config_files.config_path(FLAGS.albert_config_file))
    if FLAGS.init_from_task:
        beside = storage.join(os.path.dirname(os.path.abspath(FLAGS.output_dir)), FLAGS.init_from_task)
        path = next((path for path in (FLAGS.init_from_task, beside) if task_model.find(path)), None)
        if path is None:
            raise InputError(
                f"--init_from_task={FLAGS.init_from_task}: there is no fine-tuned model in {FLAGS.init_from_task} or "
                f"{beside}: give the --output_dir of that task's run"
            )
        return finetuning_source.read_source(path, vocabulary, config)
    if task.start_from:
        print(
            f"HINT: published results of {task.title} start from a model fine-tuned on {task.start_from}: run that "
            f"task first, then this one with --init_from_task=ITS_OUTPUT_DIR"
        )
    if FLAGS.model:
        return finetuning_source.read_source(FLAGS.model, vocabulary, config)
    assert config is not None  # check_flags saw to it
    return finetuning_source.random_source(config, vocabulary)


def vocabulary_flags() -> VocabularyFlags:
    """The vocabulary as the flags name it."""
    from albert_tf.finetuning_source import VocabularyFlags

    flag = "vocab_file" if FLAGS.vocab_file else "spm_model_file"
    return VocabularyFlags(FLAGS[flag].value, flag, FLAGS.do_lower_case, FLAGS.keep_accents)


def make_job(task: Task, source: Source, splits: Mapping[str, Split], strategy: tf.distribute.Strategy) -> Job:
    """All that is decided before the first step; it is printed."""
    from albert_tf import distribution, finetuning_report, weight_names
    from albert_tf.finetuning_run import Data, Job
    from albert_tf.task_kinds.catalogue import kind_of
    from albert_tf.tasks.labels import find_labels

    recipe = recipes.find_recipe(task.name, source.config)
    sources = dict(recipe.sources)

    def chosen(name: str, flag: str, given: Any, of_recipe: str) -> Any:
        """The value of a flag, else that of the recipe; who says so is noted under `name`."""
        sources[name] = recipe.sources.get(of_recipe, "") if given is None else f"--{flag}"
        return getattr(recipe, of_recipe) if given is None else given

    rates = {
        "hidden_dropout_prob": ("hidden_dropout", FLAGS.hidden_dropout, "encoder_dropout"),
        "attention_probs_dropout_prob": ("attention_dropout", FLAGS.attention_dropout, "encoder_dropout"),
        "classifier_dropout_prob": ("classifier_dropout", FLAGS.classifier_dropout, "classifier_dropout"),
    }
    config = source.config.replace(**{name: chosen(name, *values) for name, values in rates.items()})
    length = chosen("max_seq_length", "max_seq_length", FLAGS.max_seq_length, "max_seq_length")
    kind = kind_of(
        task,
        find_labels(task, splits[TRAIN].examples),
        max_seq_length=checked_length(length, config),
        **kind_settings(task, recipe, sources),
    )
    data = {name: Data(split, features_of(kind, split, source.tokenizer)) for name, split in splits.items()}
    batch = chosen("train_batch_size", "train_batch_size", FLAGS.train_batch_size, "train_batch_size")
    rate = chosen("learning_rate", "learning_rate", FLAGS.learning_rate, "learning_rate")
    distribution.per_replica_batch(batch, strategy, FLAGS.gradient_accumulation_steps)
    settings = find_settings(recipe, data[TRAIN], batch, rate, sources)
    columns = columns_by_flags()
    job = Job(
        task=task,
        kind=kind,
        source=source,
        config=config,
        strategy=strategy,
        settings=settings,
        training=data[TRAIN],
        scored=[of for name, of in data.items() if kind_of_split(name) == "dev"],
        predicted=[of for name, of in data.items() if kind_of_split(name) == "test"],
        eval_batch_size=FLAGS.eval_batch_size,
        restarts=FLAGS.restart_on_collapse,
        about={
            "recipe": {"sources": sources, "notes": list(recipe.notes)},
            "kind": dict(kind.settings),
            **({"columns": columns} if columns else {}),
        },
        tensorboard=FLAGS.tensorboard,
    )
    shapes = weight_names.variable_shapes(config, kind.head)
    finetuning_report.print_start(job, all_flags(), sources, sum(map(math.prod, shapes.values())), recipe.notes)
    return job


def checked_length(length: int, config: AlbertConfig) -> int:
    """The longest sequence, if the model has as many positions."""
    if length > config.max_position_embeddings:
        raise InputError(
            f"--max_seq_length={length}, but the model has {config.max_position_embeddings} positions: give at most "
            "that many, or extend the model with albert_tf.convert --max_position_embeddings"
        )
    return length


def kind_settings(task: Task, recipe: Recipe, sources: dict[str, str]) -> dict[str, Any]:
    """Further settings of the kind of task: flags, else the recipe's; None leaves the kind its default."""
    from albert_tf.task_kinds.catalogue import settings_of

    values = settings_by_flags(task)
    for name in values:
        sources[name] = f"--{_FLAG_OF_SETTING.get(name, name)}"
    of_recipe = {name: getattr(recipe, name, None) for name in settings_of(task.head) if name != "max_seq_length"}
    return {**of_recipe, **values}


def settings_by_flags(task: Task) -> dict[str, Any]:
    """The settings of the kind of task, beside `max_seq_length`, that flags are given for."""
    from albert_tf.task_kinds.catalogue import settings_of

    values = {
        "doc_stride": FLAGS.doc_stride,
        "max_query_length": FLAGS.max_query_length,
        "max_answer_length": FLAGS.max_answer_length,
        "n_best_size": FLAGS.n_best_size,
        "null_threshold": FLAGS.null_score_threshold,
        "max_qa_length": FLAGS.max_qa_length,
    }
    known = settings_of(task.head)
    others = [_FLAG_OF_SETTING.get(name, name) for name in values if name not in known]
    refuse_flags(others, f"have no effect on {task.title}: the settings of its kind are {', '.join(known)}")
    return {name: value for name, value in values.items() if value is not None}


def features_of(kind: TaskKind, split: Split, tokenizer: Tokenizer) -> Any:
    """The sequences of a split, from the cache where there is one."""
    from albert_tf import feature_cache

    return feature_cache.cached_features(
        kind, split.examples, tokenizer, training=split.name == TRAIN, directory=FLAGS.cache_dir
    )


def find_settings(recipe: Recipe, training: Data, batch: int, rate: float, sources: dict[str, str]) -> Settings:
    """How long to train, how often to look, and everything else of `finetuning_state.Settings`."""
    from albert_tf.finetuning_state import Settings

    epoch = -(-len(training.features) // batch)
    steps, warmup = recipe.steps_for(len(training.split.examples), batch)
    sources["num_train_steps"] = sources.get("num_train_epochs", "recipe")
    sources["num_warmup_steps"] = sources.get("warmup_proportion", "recipe")
    if FLAGS.num_train_steps is not None or FLAGS.num_train_epochs is not None:
        given = FLAGS.num_train_steps
        steps = max(1, round(FLAGS.num_train_epochs * epoch)) if given is None else given
        warmup = round(recipe.warmup_proportion * steps)
        sources["num_train_steps"] = "--num_train_epochs" if given is None else "--num_train_steps"
    if FLAGS.num_warmup_steps is not None:
        warmup, sources["num_warmup_steps"] = FLAGS.num_warmup_steps, "--num_warmup_steps"
    if warmup > steps:
        raise InputError(
            f"--num_warmup_steps={warmup}, but there are {steps} steps: the rate would never reach its peak; give fewer"
        )
    return Settings(
        learning_rate=rate,
        num_train_steps=steps,
        num_warmup_steps=warmup,
        train_batch_size=batch,
        eval_every=FLAGS.eval_every or max(epoch, math.ceil(steps / _MOST_EVALUATIONS)),
        optimizer=FLAGS.optimizer,
        weight_decay=FLAGS.weight_decay,
        seed=FLAGS.seed,
        gradient_accumulation_steps=FLAGS.gradient_accumulation_steps,
        float16=FLAGS.mixed_precision == "float16",
        early_stop_patience=FLAGS.early_stop_patience,
        log_steps=FLAGS.log_steps or max(1, min(_MOST_LOG_STEPS, steps // _LEAST_LOG_LINES)),
        save_checkpoints_steps=FLAGS.save_checkpoints_steps,
        jit_compile=FLAGS.jit_compile,
        static_shapes=bool(FLAGS.tpu),
    )


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
    changed = run_settings.changed_settings(FLAGS.output_dir, settings)
    if changed:
        raise InputError(
            f"--output_dir={FLAGS.output_dir} holds a run that was begun with other settings: {'; '.join(changed)}. "
            "Give the old ones to go on with it, or another --output_dir"
        )
    run_settings.record_settings(FLAGS.output_dir, settings)


def _short(fingerprint: str) -> str:
    """Enough of a fingerprint to tell two things apart."""
    return fingerprint[:16]


# Without training


def use_model(task: Task, splits: Mapping[str, Split], strategy: tf.distribute.Strategy) -> int:
    """Scores and predicts with the run's own model, or else with --model."""
    from albert_tf import finetuning_report, finetuning_run, predicting, task_model
    from albert_tf.finetuning_run import Data

    path = task_model.find(FLAGS.output_dir) or FLAGS.model
    if not path:
        raise InputError(
            f"--output_dir={FLAGS.output_dir} has no fine-tuned model to use: train one first (--do_train), or name "
            "one with --model"
        )
    changes = settings_by_flags(task)
    if FLAGS.max_seq_length is not None:
        changes["max_seq_length"] = FLAGS.max_seq_length
    with strategy.scope():
        model, tokenizer, kind, about = task_model.load(path, **changes)
    check_model(path, kind.head, about, task)
    given = FLAGS.model if path != FLAGS.model else None
    for split in splits.values():
        if split.path in task.columns:
            print(f"columns of {split.path}: {task.columns[split.path]}")
    print(f"using the model in {path}" + (f" (--model={given} has no part in this)" if given else ""), flush=True)
    predictor = predicting.Predictor(model, kind, strategy, batch_size=FLAGS.eval_batch_size, static=bool(FLAGS.tpu))
    data = [Data(split, features_of(kind, split, tokenizer)) for split in splits.values()]
    storage.make_directory(FLAGS.output_dir)
    with finetuning_output.only_user(FLAGS.output_dir):
        scores, files = finetuning_run.evaluate(task, kind, predictor, data, FLAGS.output_dir)
    finetuning_report.print_use(scores, files)
    return 0


def check_model(path: str, head: HeadConfig, about: Mapping[str, Any], task: Task) -> None:
    """Refuses a model that cannot answer for the task; warns of one that was trained on another."""
    if head.kind != task.head:
        raise InputError(f"{path} has the head {head.kind}, but {task.title} needs {task.head}: is it of this task?")
    if task.problem_type and head.problem != task.problem_type:
        raise InputError(
            f"{path} is for the problem type {head.problem}, not {task.problem_type}"
            + (f": give --problem_type={head.problem}" if task.name == text_file.TEXT_FILE.name else "")
        )
    if task.labels and (head.num_labels != len(task.labels) or (head.labels and set(head.labels) != set(task.labels))):
        raise InputError(
            f"{path} has the labels {rows.names(head.labels) or head.num_labels}, and those of {task.title} are "
            f"{rows.names(task.labels)}: give a model of this task"
        )
    if about.get("task", task.name) != task.name:
        print(f"WARNING: {path} was fine-tuned on {about.get('title', about['task'])}, and is used for {task.title}")


# What went wrong


def tell_failure(error: Exception) -> int:
    """Says in a sentence what can be said so; anything else is a programming error with its stack trace."""
    import tensorflow as tf

    from albert_tf.training_log import NotFiniteError

    if isinstance(error, NotFiniteError):
        print(f"error: step {error.step + 1} failed: {error}", file=sys.stderr, flush=True)
        return 1
    if isinstance(error, tf.errors.ResourceExhaustedError):
        raise InputError(
            "the memory of the device is full: raise --gradient_accumulation_steps, or lower --train_batch_size, "
            "--eval_batch_size or --max_seq_length"
        ) from error
    raise error


def all_flags() -> dict[str, Any]:
    """Every flag of this script and its value."""
    script = sys.modules[define_flags.__module__]
    return {flag.name: flag.value for flag in FLAGS.get_key_flags_for_module(script)}


def define_flags() -> None:
    define_data_flags()
    define_model_flags()
    define_training_flags()
    define_device_flags()


def define_data_flags() -> None:
    names = ", ".join(catalogue.TASKS)
    flags.DEFINE_string("task", None, f"In upper or lower case: {names}; or text, for your own files.")
    flags.DEFINE_string("data_dir", None, "The directory of the task's original files.")
    flags.DEFINE_string("train_file", None, "In place of the training file in --data_dir.")
    flags.DEFINE_string("dev_file", None, "In place of the files in --data_dir that scores are computed on.")
    flags.DEFINE_string("test_file", None, "In place of the files in --data_dir that are predicted.")
    flags.DEFINE_integer("max_train_examples", None, "Train on so many examples, drawn by --seed.", lower_bound=1)
    flags.DEFINE_string("cache_dir", None, "Keep tokenised texts here; what decides them is in the files' names.")

    flags.DEFINE_string("text_column", None, "Own files: the text's column, by its name or number counted from 0.")
    flags.DEFINE_string("text_b_column", None, "Own files: the second text's column, for pairs.")
    flags.DEFINE_string("label_column", None, "Own files: the column of the label, of several, or of a number.")
    flags.DEFINE_string("id_column", None, "Own files: the column of what each row is called in predictions.")
    flags.DEFINE_bool("has_header", None, "Own files: whether the first line names the columns; else found out.")
    flags.DEFINE_enum(
        "problem_type",
        None,
        PROBLEM_TYPES,
        "Own files: one label a row (default), several, or a number.",
    )
    flags.DEFINE_string("label_separator", None, "Own files: between the labels of a row; by default a comma.")
    flags.DEFINE_list("choice_columns", None, "Own files of questions with choices: the columns of the choices.")
    flags.DEFINE_string("passage_column", None, "Own files with choices: the text that the question is about.")
    flags.DEFINE_string("question_column", None, "Own files with choices: the question.")

    flags.DEFINE_integer(
        "first_choice_label",
        None,
        "Own files with choices: the number of the first choice where labels are numbers; by default 0.",
        lower_bound=0,
        upper_bound=1,
    )

    flags.DEFINE_bool("do_train", None, "Train. Naming one of the three leaves out those not named; by default all.")
    flags.DEFINE_bool(
        "do_eval",
        None,
        "Compute scores on the dev files. Without training: of OUTPUT_DIR/model. --nodo_eval trains without them, so "
        "that the last step is kept and not the best.",
    )
    flags.DEFINE_bool("do_predict", None, "Predict the test files. Without training: with OUTPUT_DIR/model.")
    flags.DEFINE_string("output_dir", None, "Where everything goes, and where a stopped run goes on.")


def define_model_flags() -> None:
    flags.DEFINE_string(
        "model",
        None,
        "What to begin with: any checkpoint that albert_tf.convert reads, by its path, its address or the name of a "
        "public model such as albert_base_v2.",
    )
    flags.DEFINE_string(
        "init_from_task",
        None,
        "Begin with a model that was fine-tuned on another task: the output directory of its run, or the task's name "
        "where that lies beside --output_dir.",
    )
    flags.DEFINE_string("albert_config_file", None, "The sizes, where --model does not tell them or is left out.")
    flags.DEFINE_string("spm_model_file", None, "The SentencePiece model; by default the one beside the weights.")
    flags.DEFINE_string("vocab_file", None, "A WordPiece vocab.txt, in place of --spm_model_file.")
    flags.DEFINE_bool("do_lower_case", None, "Lower-case texts; by default as told beside the vocabulary.")
    flags.DEFINE_bool("keep_accents", None, "Keep accents; by default as told beside the vocabulary.")
    flags.DEFINE_integer("max_seq_length", None, "The most pieces of a sequence; longer texts are cut.", lower_bound=1)
    flags.DEFINE_integer("doc_stride", None, "SQuAD: pieces between the beginnings of two windows.", lower_bound=1)
    flags.DEFINE_integer("max_query_length", None, "SQuAD: the most pieces of a question.", lower_bound=1)
    flags.DEFINE_integer("max_answer_length", None, "SQuAD: the most pieces of an answer.", lower_bound=1)
    flags.DEFINE_integer("n_best_size", None, "SQuAD: answers kept of each question.", lower_bound=1)
    flags.DEFINE_float(
        "null_score_threshold", None, "SQuAD 2.0: odds above which there is no answer; else the best for F1 on dev."
    )
    flags.DEFINE_integer("max_qa_length", None, "Choices: the most pieces of question and choice.", lower_bound=1)
    rate: dict[str, Any] = {"lower_bound": 0.0, "upper_bound": 0.99}
    flags.DEFINE_float("hidden_dropout", None, "Dropout in the encoder; by default the recipe's.", **rate)
    flags.DEFINE_float("attention_dropout", None, "Dropout of attention; by default the recipe's.", **rate)
    flags.DEFINE_float("classifier_dropout", None, "Dropout before the head; by default the recipe's.", **rate)


def define_training_flags() -> None:
    flags.DEFINE_float("learning_rate", None, "The peak rate; by default the recipe's.", lower_bound=0.0)
    flags.DEFINE_integer("train_batch_size", None, "Rows of one update; by default the recipe's.", lower_bound=1)
    flags.DEFINE_integer("eval_batch_size", 32, "Rows scored or predicted at a time.", lower_bound=1)
    flags.DEFINE_integer("num_train_steps", None, "Updates; by default the recipe's.", lower_bound=1)
    flags.DEFINE_float("num_train_epochs", None, "Passes over the training file, in place of steps.", lower_bound=0.0)
    flags.DEFINE_integer("num_warmup_steps", None, "Updates over which the rate rises from 0.", lower_bound=0)
    flags.DEFINE_enum("optimizer", "adamw", ["lamb", "adamw"], "The optimizer; adamw as released.")
    flags.DEFINE_float("weight_decay", 0.01, "Decay of all but biases and LayerNorm.", lower_bound=0.0)
    flags.DEFINE_integer(
        "gradient_accumulation_steps",
        1,
        "Into how many parts each replica's share of a batch is cut, to save memory; the update is the same.",
        lower_bound=1,
    )
    flags.DEFINE_integer(
        "seed", 42, "Decides the new head, order and dropout.", lower_bound=0, upper_bound=2**31 - 1_000_000
    )
    flags.DEFINE_integer("seeds", 1, "Train so many times, with --seed and those after it.", lower_bound=1)
    flags.DEFINE_integer(
        "restart_on_collapse",
        0,
        "Begin anew with another seed, so often at most, when the loss stays at that of a guess.",
        lower_bound=0,
    )
    flags.DEFINE_integer("eval_every", None, "Updates between two evaluations; by default an epoch.", lower_bound=1)
    flags.DEFINE_integer(
        "early_stop_patience", 0, "Stop after so many evaluations without a better score; 0 for never.", lower_bound=0
    )
    flags.DEFINE_integer("log_steps", None, "Updates between two lines of the log.", lower_bound=1)
    flags.DEFINE_integer(
        "save_checkpoints_steps", 1000, "Updates between two checkpoints; 0: at the end.", lower_bound=0
    )
    flags.DEFINE_bool("tensorboard", True, "Write TensorBoard's files to OUTPUT_DIR/logs.")


def define_device_flags() -> None:
    flags.DEFINE_enum(
        "distribution_strategy",
        None,
        ["one_device", "mirrored", "tpu"],
        "one_device (default); mirrored: all GPUs of this machine; tpu (default with --tpu).",
    )
    flags.DEFINE_integer("num_devices", None, "With mirrored: how many devices.", lower_bound=1)
    flags.DEFINE_integer("num_logical_cpu_devices", 1, "Divide the CPU, to try out mirrored.", lower_bound=1)
    flags.DEFINE_string("tpu", None, "A TPU's name or grpc:// address, or local on a TPU VM. OUTPUT_DIR is on gs://.")
    flags.DEFINE_enum(
        "mixed_precision",
        "float32",
        ["float32", "bfloat16", "float16"],
        "Of the large products; weights, LayerNorm, softmax and losses stay float32. float16 has a dynamic loss scale.",
    )
    flags.DEFINE_bool("jit_compile", False, "Compile the step with XLA, once for each padded length.")
    flags.DEFINE_bool(
        "deterministic", None, "The same bits each time; by default on CPUs, where it costs next to nothing."
    )


def script() -> None:
    define_flags()
    run_main(main)


if __name__ == "__main__":
    script()
