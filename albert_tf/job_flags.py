"""What a fine-tuning begins with and how it goes, as the flags of run_finetuning say and else the task's recipe."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from absl import flags

from albert_tf import config_files, finetuning_flags, storage, task_flags
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.finetuning_data import Split, kind_of_split, without_placeholders
from albert_tf.tasks import recipes
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

_FLAG_OF_SETTING = {"null_threshold": "null_score_threshold"}  # where the two have different names
_MOST_EVALUATIONS, _LEAST_LOG_LINES, _MOST_LOG_STEPS = 20, 50, 50


def find_source(task: Task) -> Source:
    """Weights, sizes and vocabulary as the flags name them."""
    from albert_tf import finetuning_source, task_model

    vocabulary = vocabulary_flags()
    config = None
    if FLAGS.albert_config_file:
        config = AlbertConfig.from_json_file(config_files.config_path(FLAGS.albert_config_file))
    if FLAGS.init_from_task:
        beside = storage.beside(FLAGS.output_dir, FLAGS.init_from_task)
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
    assert config is not None  # finetuning_flags.check_flags saw to it
    return finetuning_source.random_source(config, vocabulary)


def vocabulary_flags() -> VocabularyFlags:
    """The vocabulary as the flags name it."""
    from albert_tf.finetuning_source import VocabularyFlags

    flag = "vocab_file" if FLAGS.vocab_file else "spm_model_file"
    return VocabularyFlags(FLAGS[flag].value, flag, FLAGS.do_lower_case, FLAGS.keep_accents)


def make_job(task: Task, source: Source, splits: Mapping[str, Split], strategy: tf.distribute.Strategy) -> Job:
    """All that is decided before the first step; it is printed."""
    from albert_tf import distribution, finetuning_report, weight_names
    from albert_tf.finetuning_run import Job
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
    data = data_of(kind, splits, source.tokenizer)
    check_sequences(data[TRAIN])
    batch = chosen("train_batch_size", "train_batch_size", FLAGS.train_batch_size, "train_batch_size")
    rate = chosen("learning_rate", "learning_rate", FLAGS.learning_rate, "learning_rate")
    distribution.per_replica_batch(batch, strategy, FLAGS.gradient_accumulation_steps)
    settings = find_settings(recipe, data[TRAIN], batch, rate, sources)
    columns = task_flags.columns_by_flags()
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
    finetuning_report.print_start(
        job, finetuning_flags.all_flags(), sources, sum(map(math.prod, shapes.values())), recipe.notes
    )
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
    finetuning_flags.refuse_flags(
        others, f"have no effect on {task.title}: the settings of its kind are {', '.join(known)}"
    )
    return {name: value for name, value in values.items() if value is not None}


def data_of(kind: TaskKind, splits: Mapping[str, Split], tokenizer: Tokenizer) -> dict[str, Data]:
    """The splits with their sequences; of those to predict, labels that stand for none are left out."""
    from albert_tf.finetuning_run import Data
    from albert_tf.task_kinds.arrays import label_names

    data = {}
    for name, given in splits.items():
        split = without_placeholders(given, label_names(kind.head))
        data[name] = Data(split, features_of(kind, split, tokenizer))
    return data


def features_of(kind: TaskKind, split: Split, tokenizer: Tokenizer) -> Any:
    """The sequences of a split, from the cache where there is one; a vocabulary that does not fit is told."""
    from albert_tf import feature_cache
    from albert_tf.tokenizer import warn_of_unknown

    features = feature_cache.cached_features(
        kind, split.examples, tokenizer, training=split.name == TRAIN, directory=FLAGS.cache_dir
    )
    unknown = (features.input_ids == tokenizer.unk_id).sum() / max(len(features.input_ids), 1)
    warn_of_unknown(unknown, f"{split.path}: ")
    return features


def check_sequences(training: Data) -> None:
    """Refuses a file of which nothing can be learned, such as one with unanswerable questions alone for SQuAD 1.1."""
    if not len(training.features):
        count, warnings = len(training.split.examples), training.features.warnings
        raise InputError(
            f"{training.split.path}: there is nothing to train on: none of its {count} example(s) can be learned from"
            + (f" ({'; '.join(warnings)})" if warnings else "")
        )


def find_settings(recipe: Recipe, training: Data, batch: int, rate: float, sources: dict[str, str]) -> Settings:
    """How long to train, how often to look, and everything else of `finetuning_state.Settings`."""
    from albert_tf.finetuning_state import Settings

    count = len(training.features)
    epoch = -(-count // batch)
    steps, warmup = recipe.steps_for(len(training.split.examples), count, batch)
    sources["num_train_steps"] = sources.get("num_train_epochs", "recipe")
    if steps != recipe.official_steps:
        sources["num_train_steps"] += f", scaled to {count:,} rows in batches of {batch}"
    if FLAGS.num_train_steps is not None or FLAGS.num_train_epochs is not None:
        given = FLAGS.num_train_steps
        steps = max(1, round(FLAGS.num_train_epochs * epoch)) if given is None else given
        warmup = round(recipe.warmup_proportion * steps)
        sources["num_train_steps"] = "--num_train_epochs" if given is None else "--num_train_steps"
    sources["num_warmup_steps"] = sources.get("warmup_proportion", "recipe")
    if steps != recipe.official_steps:
        sources["num_warmup_steps"] += f", scaled to {steps:,} steps"
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
