"""Text to pre-training records: python -m data_prep.create_pretraining_data --input_file='text/*.txt' --output_dir=…

Input: UTF-8 text, plain or gzip, one sentence a line; a blank line ends a document. Output: shards of tf.train.Example
and metadata.json. The bytes depend on the input's content, the settings and the seed, not on the number of processes.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Sequence
from typing import Any

from absl import flags, logging

from albert_tf import record_metadata, record_spec
from albert_tf.errors import InputError, run_main
from albert_tf.files import expand_globs
from albert_tf.progress import Progress
from albert_tf.tokenization import load_tokenizer
from albert_tf.tokenizer import Tokenizer, warn_of_unknown
from data_prep.documents import ERROR_MODES
from data_prep.processes import available_cores, build_shards
from data_prep.run_state import RunState
from data_prep.segments import SENTENCE_OBJECTIVES
from data_prep.settings import Settings
from data_prep.shards import EVAL, TRAIN, FinishedFile, Job, finished_from_dict
from data_prep.show_records import shown_records
from data_prep.statistics import Statistics
from data_prep.survey import FileSurvey, survey_file
from data_prep.work_list import default_num_shards, make_work_list

FLAGS = flags.FLAGS

# A file that is one document of more lines than this probably lacks its blank lines.
MANY_LINES = 1000
_GRAIN_BYTES = 1 << 16


def prepare(
    input_files: Sequence[str],
    output_dir: str,
    tokenizer: Tokenizer,
    settings: Settings,
    *,
    num_shards: int | None = None,
    num_workers: int = 1,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Prepares the records of `input_files`, or goes on with a stopped run of the same; returns the metadata.

    Args:
        input_files: plain or gzip text files, in the order that decides the output.
        output_dir: where the shards and metadata.json go.
        tokenizer: text to pieces.
        settings: see `Settings`.
        num_shards: how many shards each split has at most; None: by the size of the text.
        num_workers: processes at a time.
        overwrite: remove records of another run from `output_dir` first.

    Raises:
        InputError: unreadable input, no usable text, or an output directory that holds something else.
    """
    surveys = _survey(input_files, settings, num_shards)
    held_out_limit = _held_out_limit(surveys, settings.eval_fraction)
    text_bytes = sum(survey.text_bytes for survey in surveys)
    shards = make_work_list(surveys, num_shards or default_num_shards(text_bytes))
    plan: dict[str, Any] = {
        "format": record_spec.METADATA_FORMAT,
        "settings": {**dataclasses.asdict(settings), "num_shards": len(shards)},
        "tokenizer": tokenizer.settings(),
        "input_content": [[survey.text_bytes, survey.crc32c] for survey in surveys],
    }
    state = RunState(output_dir, plan, (TRAIN, EVAL), overwrite=overwrite)
    try:
        if state.is_complete:
            logging.info("%s is complete already: nothing to do", output_dir)
            return record_metadata.read(output_dir)
        finished = {shard.index: value for shard in shards if (value := state.finished(shard.index))}
        if finished:
            logging.info("going on with a stopped run: %d of %d shards are there", len(finished), len(shards))
        done = sum(shard.size for shard in shards if shard.index in finished)
        job = Job(settings, tokenizer, output_dir, len(shards), held_out_limit)
        total = sum(shard.size for shard in shards)
        with Progress(total, "prepared", "bytes", initial=done, scale=True) as progress:
            missing = [shard for shard in shards if shard.index not in finished]
            for shard, value in build_shards(job, missing, num_workers):
                state.finish(shard.index, value)
                finished[shard.index] = value
                progress.update(shard.size, shards=f"{len(finished)}/{len(shards)}")
        files, statistics = _totals([finished[shard.index] for shard in shards])
        try:
            _check(statistics, settings)
        except InputError:
            state.discard()
            raise
        metadata = {
            **plan,
            # The reader compares these names, wherever they come from.
            "settings": {**plan["settings"], **tokenizer.settings(), "vocab_file": tokenizer.vocab_file},
            "input": [
                {"file": s.path, "bytes": s.text_bytes, "documents": s.documents, "lines": s.lines} for s in surveys
            ],
            "shards": [dataclasses.asdict(file) for file in files],
            "statistics": statistics.summary(),
        }
        state.complete(metadata)
        print(statistics.table())
        return metadata
    finally:
        state.close()


def _survey(input_files: Sequence[str], settings: Settings, num_shards: int | None) -> list[FileSurvey]:
    grain = _GRAIN_BYTES
    if num_shards is not None:
        if num_shards < 1:
            raise InputError(f"--num_shards={num_shards}: give 1 or more")
        grain = min(grain, sum(map(os.path.getsize, input_files)) // (8 * num_shards))
    surveys = []
    with Progress(len(input_files), "looked through", "files") as progress:
        for file_index, path in enumerate(input_files):
            survey = survey_file(path, file_index, grain=grain, errors=settings.errors, seed=settings.random_seed)
            if survey.documents == 1 and survey.lines > MANY_LINES:
                logging.warning(
                    "%s is a single document of %d lines: is a blank line between its documents missing?",
                    path,
                    survey.lines,
                )
            surveys.append(survey)
            progress.update(1)
    documents = sum(survey.documents for survey in surveys)
    if not documents:
        raise InputError(f"no text in {', '.join(input_files[:3])}{' …' * (len(input_files) > 3)}: only blank lines")
    if documents == 1 and settings.sentence_objective == "nsp":
        raise InputError(
            "--sentence_objective=nsp takes half of the second segments from other documents, but the input is a "
            "single document: put blank lines between the documents, or choose sop"
        )
    return surveys


def _held_out_limit(surveys: Sequence[FileSurvey], eval_fraction: float) -> float:
    """The draw below which a document is held out; it holds out one at least."""
    if eval_fraction == 0.0:
        return 0.0
    if sum(survey.documents for survey in surveys) == 1:
        raise InputError(
            f"--eval_fraction={eval_fraction}: the input is a single document, so none can be held out: put blank "
            "lines between the documents, or give --eval_fraction=0"
        )
    return max(eval_fraction, math.nextafter(min(survey.lowest_draw for survey in surveys), 1.0))


def _totals(finished: Sequence[dict[str, Any]]) -> tuple[list[FinishedFile], Statistics]:
    files: list[FinishedFile] = []
    statistics = Statistics()
    for value in finished:
        more_files, more_statistics = finished_from_dict(value)
        files += more_files
        statistics.add(more_statistics)
    return sorted(files, key=lambda file: file.file), statistics


def _check(statistics: Statistics, settings: Settings) -> None:
    if TRAIN not in statistics.splits:
        raise InputError(
            f"no record came of {statistics.text.documents} documents with {statistics.text.pieces} pieces "
            f"({statistics.text.held_out_documents} held out, {statistics.text.skipped_documents} too short): "
            "give more or longer documents"
        )
    if settings.eval_fraction and EVAL not in statistics.splits:
        logging.warning("no record came of the held-out documents, they are too short: raise --eval_fraction")
    if settings.sentence_objective != "none":
        for split, counts in statistics.splits.items():
            if counts.labels_are_uneven:
                logging.warning(
                    "%.0f %% of the %s records have label 1 and not about half: were there too few documents to take "
                    "second segments from?",
                    100 * counts.label_1_share,
                    split,
                )
    warn_of_unknown(statistics.unknown_share)


def define_flags() -> None:
    flags.DEFINE_string("input_file", None, "Text files or patterns, separated by commas; plain or gzip UTF-8.")
    flags.DEFINE_string("output_dir", None, "Where the shards and metadata.json go.")
    flags.DEFINE_string("spm_model_file", None, "The SentencePiece .model file.")
    flags.DEFINE_string("vocab_file", None, "A WordPiece vocab.txt, in place of --spm_model_file.")
    flags.DEFINE_bool("do_lower_case", True, "Lower-case the text.")
    flags.DEFINE_bool("keep_accents", False, "Keep accents.")
    flags.DEFINE_integer("max_seq_length", 512, "Pieces in a record, [CLS] and [SEP] included.")
    flags.DEFINE_integer(
        "max_predictions_per_seq",
        None,
        "Most predictions in a record. By default masked_lm_prob of the length: 77 at 512. The released recipe is 20.",
    )
    flags.DEFINE_float("masked_lm_prob", Settings.masked_lm_prob, "The share of the pieces to predict.")
    flags.DEFINE_enum(
        "sentence_objective",
        Settings.sentence_objective,
        list(SENTENCE_OBJECTIVES),
        "sop: A and B follow each other, label 1 = swapped. nsp: label 1 = B is from another document. none: A alone.",
    )
    flags.DEFINE_integer("ngram", Settings.ngram, "The longest n-gram to mask, in words.")
    flags.DEFINE_bool("favor_shorter_ngram", Settings.favor_shorter_ngram, "p(n) ~ 1/n, else the reverse of it.")
    flags.DEFINE_bool("do_whole_word_mask", Settings.do_whole_word_mask, "Mask whole words; else pieces.")
    flags.DEFINE_alias("whole_word_mask", "do_whole_word_mask")
    flags.DEFINE_float("short_seq_prob", Settings.short_seq_prob, "The share of documents packed to a shorter length.")
    flags.DEFINE_integer(
        "dupe_factor", Settings.dupe_factor, "Passes over the text, each with new masks. The released recipe is 40."
    )
    flags.DEFINE_integer("random_seed", Settings.random_seed, "Decides every random choice.")
    flags.DEFINE_float("eval_fraction", Settings.eval_fraction, "The share of documents held out as eval-*.tfrecord.")
    flags.DEFINE_bool("split_sentences", False, "The text has a paragraph a line: cut it to sentences first.")
    flags.DEFINE_enum("errors", Settings.errors, list(ERROR_MODES), "What to do with bytes that are not UTF-8.")
    flags.DEFINE_integer(
        "num_shards",
        None,
        "Files per split, at most. By default one per MiB of text up to 16, then one per 4 MiB up to 1024. Training "
        "reads best from several files per host and device.",
    )
    flags.DEFINE_integer(
        "num_workers", None, "Processes at a time; by default one per core. Does not change the output."
    )
    flags.DEFINE_bool("overwrite", False, "Remove other records from --output_dir instead of refusing.")
    flags.DEFINE_integer(
        "inspect", 0, "Print this many training records of --output_dir, whatever made them, and stop.", lower_bound=0
    )
    flags.mark_flag_as_required("output_dir")


def main(argv: Sequence[str]) -> int:
    if not FLAGS.output_dir:
        raise InputError("--output_dir is empty: give a directory")
    if FLAGS.inspect > 0:
        given = _tokenizer() if FLAGS.spm_model_file or FLAGS.vocab_file else None
        for text in shown_records(FLAGS.output_dir, FLAGS.inspect, given):
            print(text)
        return 0
    values: dict[str, Any] = {field.name: FLAGS[field.name].value for field in dataclasses.fields(Settings)}
    settings = Settings.create(**values)
    if FLAGS.num_workers is not None and FLAGS.num_workers < 1:
        raise InputError(f"--num_workers={FLAGS.num_workers}: give 1 or more")
    if not FLAGS.input_file:
        raise InputError("--input_file is missing: give a text file or a pattern such as 'text/*.txt'")
    metadata = prepare(
        expand_globs(FLAGS.input_file, "input_file"),
        FLAGS.output_dir,
        _tokenizer(),
        settings,
        num_shards=FLAGS.num_shards,
        num_workers=FLAGS.num_workers or available_cores(),
        overwrite=FLAGS.overwrite,
    )
    print(f"{sum(shard['records'] for shard in metadata['shards']):,} records in {FLAGS.output_dir}")
    return 0


def _tokenizer() -> Tokenizer:
    if FLAGS.spm_model_file and FLAGS.vocab_file:
        raise InputError("one vocabulary is enough: give --spm_model_file, or --vocab_file for WordPiece, but not both")
    if not FLAGS.spm_model_file and not FLAGS.vocab_file:
        raise InputError("give the vocabulary: --spm_model_file=FILE.model, or --vocab_file=vocab.txt for WordPiece")
    flag = "spm_model_file" if FLAGS.spm_model_file else "vocab_file"
    return load_tokenizer(
        str(FLAGS[flag].value),
        do_lower_case=FLAGS.do_lower_case,
        keep_accents=FLAGS.keep_accents,
        flag=flag,
        kind="sentencepiece" if flag == "spm_model_file" else None,
    )


if __name__ == "__main__":
    define_flags()
    logging.set_verbosity(logging.INFO)
    run_main(main)
