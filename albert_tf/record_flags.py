"""The records and the vocabulary that the flags of run_pretraining name, and whether they fit the model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from absl import flags, logging

from albert_tf import record_files, storage
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError

if TYPE_CHECKING:
    from albert_tf.input_pipeline import RecordShape
    from albert_tf.record_files import RecordFiles
    from albert_tf.tokenizer import Tokenizer

FLAGS = flags.FLAGS


def find_records() -> tuple[RecordFiles | None, RecordFiles | None]:
    """The training and the held-out shards that the flags name.

    Raises:
        InputError: there are none (see `record_files.find_record_files`), or one of them is both.
    """
    wanted = {
        "input_file": FLAGS.input_file if FLAGS.do_train else None,
        "eval_input_file": FLAGS.eval_input_file if FLAGS.do_eval else None,
    }
    found = [
        record_files.find_record_files(patterns, flag, skip_bad=FLAGS.skip_bad_shards) if patterns else None
        for flag, patterns in wanted.items()
    ]
    training, held_out = found
    if training and held_out:
        trained_on = {_place(path) for path in training.paths}
        both = next((path for path in held_out.paths if _place(path) in trained_on), None)
        if both:
            raise InputError(
                f"{both} is named by --input_file and by --eval_input_file: what is held out must not be trained on, "
                "so narrow one of the two, such as --input_file='records/train-*.tfrecord'"
            )
    return training, held_out


def _place(path: str) -> str:
    """The same for all names of one file."""
    return path if storage.is_remote(path) else os.path.realpath(path)


def without_damaged(records: RecordFiles | None) -> RecordFiles | None:
    """The records without the shards whose checksums show damage, if that is asked for."""
    from albert_tf import input_pipeline

    if records is None or not FLAGS.skip_bad_shards:
        return records
    records = record_files.leave_out(records, input_pipeline.is_damaged)
    if records.left_out:
        logging.warning("left out %d bad shard(s): %s", len(records.left_out), ", ".join(records.left_out))
    return records


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
    for name in ("do_lower_case", "keep_accents"):
        if FLAGS[name].value is not None:
            sources[name] = f"--{name}"
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
