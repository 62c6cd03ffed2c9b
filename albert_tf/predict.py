"""Predictions for a file: `python -m albert_tf.predict --model=DIR --input=texts.tsv --output=predictions.jsonl`.

The model's head decides what it reads and answers: texts or pairs to labels or numbers; `question` and `context` to
an answer; `passage`, `question` and `options` to one of them; `words` to tags; of a pre-trained model, texts with
[MASK] to the likeliest pieces. An output that ends in .npy gets a vector for each text instead, by whatever model.

The input is a text a line, a table (.tsv, .csv) with a header or with the model's inputs in order, or JSON lines;
without --input it comes from standard input. A list in a table is JSON, or has a column for each of its texts.
Predictions are in the order of the rows, with their `id` where there is one.

The model may also be what albert_tf.export wrote for another runtime, of an encoder or a model with a head for a task;
with --packed that is the fastest for many short texts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from absl import flags

from albert_tf.errors import InputError, run_main

FLAGS = flags.FLAGS
_VECTORS = ".npy"


def main(argv: Sequence[str]) -> int:
    from albert_tf.scoring import output, source

    rows = source.Source(FLAGS.input, FLAGS.format)
    wants_vectors = FLAGS.output.lower().endswith(_VECTORS)
    form = "" if wants_vectors else output.form_of(FLAGS.output, FLAGS.output_format)
    columns = _columns(FLAGS.columns)
    if FLAGS.pooling and not wants_vectors:
        raise InputError("--pooling is for vectors: give an --output that ends in .npy")
    for name in ("output_format", "top_k") if wants_vectors else ():
        if FLAGS[name].value is not None:
            raise InputError(f"--{name} does nothing for vectors, an --output that ends in .npy: leave it out")

    from albert_tf.answering import loading
    from albert_tf.scoring import blocks
    from albert_tf.scoring.columns import instances

    settings: dict[str, Any] = {"batch_size": FLAGS.batch_size, "precision": FLAGS.mixed_precision}
    if FLAGS.max_seq_length is not None:
        settings["max_seq_length"] = FLAGS.max_seq_length
    if wants_vectors:
        pooling = {"pooling": FLAGS.pooling} if FLAGS.pooling else {}
        vectors = loading.load_vectors(FLAGS.model, **pooling, **settings)
        given = instances(rows.rows(), vectors.forms, row_form=rows.form, columns=columns, has_header=FLAGS.has_header)
        count = blocks.write_vectors(rows, given, vectors, FLAGS.output, FLAGS.rows_at_a_time)
    else:
        answerer = loading.load_answerer(FLAGS.model, top_k=FLAGS.top_k, **settings)
        given = instances(rows.rows(), answerer.forms, row_form=rows.form, columns=columns, has_header=FLAGS.has_header)
        try:
            count = blocks.write_answers(rows, given, answerer, FLAGS.output, form, FLAGS.rows_at_a_time)
        except BrokenPipeError:  # whoever read standard output has enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
    if FLAGS.output:
        print(f"wrote {FLAGS.output}: {count:,} rows", file=sys.stderr)
    return 0


def _columns(given: Sequence[str]) -> dict[str, list[str]]:
    columns: dict[str, list[str]] = {}
    for part in given:
        name, separator, column = part.partition("=")
        if not separator or not name or not column:
            raise InputError(f"--columns has {part!r}, but must have INPUT=COLUMN, such as text=review or question=2")
        columns.setdefault(name, []).append(column)
    return columns


def define_flags() -> None:
    flags.DEFINE_string(
        "model", None, "A fine-tuned model, its run, or its export for another runtime; or a pre-trained one."
    )
    flags.DEFINE_string("input", "-", "The file, .gz too; - is standard input.")
    flags.DEFINE_enum("format", None, ["lines", "tsv", "csv", "jsonl"], "Of the input; by default by its name.")
    flags.DEFINE_string("output", "", ".jsonl, .tsv, or .npy for vectors; by default standard output.")
    flags.DEFINE_enum("output_format", None, ["jsonl", "tsv"], "By default by the output's name, else jsonl.")
    flags.DEFINE_list(
        "columns",
        [],
        "Which column is what, by name or number counted from 0: question=query,context=2; of options several: "
        "options=1,options=2.",
    )
    flags.DEFINE_bool("has_header", None, "Whether the first row of a table names the columns; else found out.")
    flags.DEFINE_integer("max_seq_length", None, "The most pieces at a time; by default as in fine-tuning.")
    flags.DEFINE_enum(
        "mixed_precision",
        "float32",
        ["float32", "bfloat16"],
        "Of the large products, of models and OpenVINO exports. bfloat16 is faster where the processor multiplies it.",
    )
    flags.DEFINE_integer("batch_size", 32, "Rows at a time for the model.", lower_bound=1)
    flags.DEFINE_integer("rows_at_a_time", 2048, "Rows in memory, sorted by length among each other.", lower_bound=1)
    flags.DEFINE_integer("top_k", None, "Pieces for each [MASK]; by default 5.", lower_bound=1)
    flags.DEFINE_enum(
        "pooling",
        None,
        ["pooled", "mean", "cls"],
        "Of vectors: pooled, the pooler's output, is the default; mean, of the last layer; cls, its first piece.",
    )
    flags.mark_flags_as_required(["model"])


if __name__ == "__main__":
    define_flags()
    run_main(main)
