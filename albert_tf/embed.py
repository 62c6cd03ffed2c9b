"""A vector for each text: `python -m albert_tf.embed --model=DIR --input_file=texts.txt --output_file=vectors.npy`.

The output is a NumPy file, float32 [N,H], one row for each row of the input and in its order; `numpy.load(…,
mmap_mode="r")` reads it. In a .txt file each line is a text, an empty one too. A .tsv, .csv, .jsonl or .json file is
read as `run_finetuning --task=text` reads it: with its header or without, single texts or pairs.
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from absl import flags

from albert_tf import storage, vector_file
from albert_tf.errors import InputError, run_main
from albert_tf.progress import Progress
from albert_tf.tasks import rows, text_file

FLAGS = flags.FLAGS
TEXTS_AT_A_TIME = 1024  # sorted by length among each other, and held in memory


class TextRow(NamedTuple):
    """A text, and the second one of a pair."""

    text: str
    pair: str | None = None


def read_rows(path: str, columns: text_file.Columns) -> tuple[int, Iterable[TextRow]]:
    """How many rows a file has, and the rows; those of a .txt file are read only as they are asked for.

    Raises:
        InputError: the file cannot be read, a column is not there, or a row is no text; with file and line.
    """
    name = path.lower()
    if (name[:-3] if name.endswith(".gz") else name).endswith(".txt"):
        return sum(1 for _ in _lines(path)), map(TextRow, _lines(path))
    # As several labels, of which there may be none: what the label's column holds is of no interest here.
    examples = text_file.read_texts(path, columns, text_file.MULTI_LABEL)
    return len(examples), [TextRow(example.text_a, example.text_b) for example in examples]  # type: ignore[union-attr]


def _lines(path: str) -> Iterator[str]:
    """The lines of a file without their ends, empty ones too."""
    if storage.is_directory(path) or not storage.exists(path):
        raise InputError(f"--input_file={path} is not a file: give one with a text a line")
    with contextlib.ExitStack() as opened:
        file = opened.enter_context(storage.open_binary(path))
        lines: Iterable[bytes] = opened.enter_context(gzip.open(file)) if path.endswith(".gz") else file
        try:
            for number, line in enumerate(lines, start=1):
                yield _decoded(line, path, number).removesuffix("\n").removesuffix("\r")
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InputError(f"{path} is not a whole gzip file: {error}") from error


def _decoded(line: bytes, path: str, number: int) -> str:
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{rows.place(path, number)}: the byte 0x{line[error.start]:02x} is not UTF-8: save the file as UTF-8"
        ) from error


def main(argv: Sequence[str]) -> int:
    count, texts = read_rows(
        FLAGS.input_file, text_file.Columns(FLAGS.text_column, FLAGS.text_b_column, has_header=FLAGS.has_header)
    )
    if not count:
        raise InputError(f"--input_file={FLAGS.input_file} is empty: it must have one text a line")
    if not FLAGS.output_file.endswith(".npy"):
        raise InputError(f"--output_file={FLAGS.output_file} must end in .npy: NumPy's form is what it is written in")

    from albert_tf import sequences, text_vectors

    vectors = text_vectors.load(FLAGS.model, FLAGS.pooling, FLAGS.max_seq_length, FLAGS.batch_size)

    def blocks() -> Iterator[np.ndarray]:
        remaining = iter(texts)
        with Progress(count, "embedding", "texts") as progress:
            while block := list(itertools.islice(remaining, TEXTS_AT_A_TIME)):
                yield vectors([row.text for row in block], [row.pair for row in block])
                progress.update(len(block))

    written = vector_file.write_vectors(FLAGS.output_file, vectors.width, blocks())
    sequences.warn_of_cut(vectors.cut, written, vectors.max_seq_length)
    print(f"wrote {FLAGS.output_file}: {written:,} rows of {vectors.width} numbers ({FLAGS.pooling})")
    return 0


def define_flags() -> None:
    flags.DEFINE_string(
        "model", None, "Any model that albert_tf.convert reads, fine-tuned ones and runs of run_finetuning too."
    )
    flags.DEFINE_string("input_file", None, "The texts: .txt, one a line; or .tsv, .csv, .jsonl, .json; or .gz of one.")
    flags.DEFINE_string("output_file", None, "The .npy file to write.")
    flags.DEFINE_enum(
        "pooling",
        "pooled",
        ["pooled", "mean", "cls"],
        "pooled: the pooler's output; mean: of the last layer over all pieces; cls: the last layer at [CLS].",
    )
    flags.DEFINE_string("text_column", None, "The text's column, by its name or number counted from 0.")
    flags.DEFINE_string("text_b_column", None, "The second text's column, for pairs.")
    flags.DEFINE_bool("has_header", None, "Whether the first line names the columns; else found out.")
    flags.DEFINE_integer(
        "max_seq_length", None, "The most pieces of a text; by default 512, or the model's positions.", lower_bound=3
    )
    flags.DEFINE_integer("batch_size", 32, "Texts at a time.", lower_bound=1)
    flags.mark_flags_as_required(["model", "input_file", "output_file"])


if __name__ == "__main__":
    define_flags()
    run_main(main)
