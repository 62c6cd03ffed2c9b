"""The flags of run_finetuning: what they are, what they ask for, and what is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from absl import flags

from albert_tf import device_flags, storage
from albert_tf.errors import InputError
from albert_tf.head_config import PROBLEM_TYPES
from albert_tf.tasks import catalogue

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Defines the flags of fine-tuning, those of `device_flags` among them."""
    define_data_flags()
    define_model_flags()
    define_training_flags()
    device_flags.define_flags(several_machines=False)
    flags.adopt_module_key_flags(device_flags)


def define_data_flags() -> None:
    names = ", ".join(catalogue.TASKS)
    flags.DEFINE_string("task", None, f"In upper or lower case: {names}; or text, for your own files.")
    flags.DEFINE_string("data_dir", None, "The directory of the task's original files.")
    flags.DEFINE_string("train_file", None, "In place of the training file in --data_dir.")
    flags.DEFINE_string("dev_file", None, "In place of the files in --data_dir that scores are computed on.")
    flags.DEFINE_string("test_file", None, "In place of the files in --data_dir that are predicted.")
    flags.DEFINE_integer("max_train_examples", None, "Train on so many examples, drawn by --seed.", lower_bound=1)
    flags.DEFINE_string("cache_dir", None, "Keep tokenised texts in this local directory.")

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
        "Own files with choices: the number of the first choice where labels are numbers, by default 0; given, it also "
        "says that they are numbers where they could be choices' texts too.",
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
    flags.DEFINE_integer("doc_stride", None, "SQuAD, taggers: pieces from one window to the next.", lower_bound=1)
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
    flags.DEFINE_float(
        "num_train_epochs", None, "Passes over all rows to train on, in place of steps.", lower_bound=0.0
    )
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


def all_flags() -> dict[str, Any]:
    """Every flag of fine-tuning and its value."""
    return {flag.name: flag.value for flag in FLAGS.get_key_flags_for_module(__name__)}


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
    if storage.is_remote(FLAGS.cache_dir or ""):
        raise InputError(f"--cache_dir={FLAGS.cache_dir} is an address: give a directory on this machine")
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


def refuse_flags(names: Sequence[str], why: str) -> None:
    """Refuses flags that would have no effect."""
    given = [f"--{name}" for name in names if FLAGS[name].value is not None]
    if given:
        raise InputError(f"{', '.join(given)} {why}")
