"""Trains a SentencePiece vocabulary by the released recipe.

    python -m data_prep.train_sentencepiece --input_file='text/*.txt' --output_prefix=vocab/albert

Unigram, 30,000 pieces, character coverage 0.99995, pad 0, unk 1, no bos or eos, [CLS] [SEP] [MASK] as control symbols
and the released user-defined symbols, on sampled lines. Writes OUTPUT_PREFIX.model, the only file the other scripts
need, and OUTPUT_PREFIX.vocab, a listing for people. The text goes through the clean-up that encoding applies later.
"""

from __future__ import annotations

import io
import itertools
import os
import random
import re
from collections.abc import Iterable, Iterator, Sequence

import sentencepiece
from absl import flags

from albert_tf.errors import InputError, run_main
from albert_tf.files import atomic_write, expand_globs
from albert_tf.progress import Progress
from albert_tf.text_cleanup import clean_batch
from albert_tf.tokenization import SPECIAL_PIECES, SentencePieceTokenizer
from data_prep.documents import ERROR_MODES, open_text, read_lines

FLAGS = flags.FLAGS

# Lists, never one comma-separated string: SentencePiece reads such a string as CSV, where the quote swallows the rest.
CONTROL_SYMBOLS = ["[CLS]", "[SEP]", "[MASK]"]
USER_DEFINED_SYMBOLS = ["(", ")", '"', "-", ".", "–", "£", "€"]
FIRST_PIECES = [*SPECIAL_PIECES, *USER_DEFINED_SYMBOLS]

MAX_LINE_BYTES = 4192  # the trainer leaves out longer lines without a word, so they are cut
LARGE_SAMPLE_CHARACTERS = 1 << 29  # from here on the trainer's suffix array is given 64-bit indices
NUM_THREADS = 16  # fixed, because the sums over threads, and so the scores, depend on their number
LINES_PER_CLEANUP = 1000

_TOO_HIGH = re.compile(r"Vocabulary size too high \(\d+\)\. Please set it to a value <= (\d+)")
_TOO_LOW = re.compile(r"Vocabulary size is smaller than required_chars\. \d+ vs (\d+)")


def training_lines(
    files: Sequence[str], do_lower_case: bool, keep_accents: bool, errors: str, progress: Progress
) -> Iterator[str]:
    """Yields the cleaned lines of text files, blank ones left out, none longer than the trainer takes.

    Raises:
        InputError: a file cannot be read or is not UTF-8 (file and line are named).
    """
    for path in files:
        with open_text(path) as file:
            lines = read_lines(file, path, 0, None, errors)
            while chunk := list(itertools.islice(lines, LINES_PER_CLEANUP)):
                for line in clean_batch([text for _, text, _ in chunk], do_lower_case, keep_accents):
                    yield from cut_line(line)
                progress.update(sum(length for _, _, length in chunk))


def cut_line(line: str) -> Iterator[str]:
    """Cuts a line into parts of at most MAX_LINE_BYTES, at spaces where there are any; a blank line has no part."""
    longest = MAX_LINE_BYTES // 4  # characters, of at most four bytes
    while len(line) > longest and len(line.encode("utf-8")) > MAX_LINE_BYTES:
        cut = line.rfind(" ", 1, longest + 1)
        cut = longest if cut < 0 else cut
        yield line[:cut]
        line = line[cut:].lstrip(" ")
    if line:
        yield line


def sample_lines(lines: Iterable[str], size: int, rng: random.Random) -> list[str]:
    """A uniform sample of at most `size` lines, in memory bounded by the sample; 0 takes all."""
    sample: list[str] = []
    for seen, line in enumerate(lines):
        if not size or seen < size:
            sample.append(line)
        else:
            place = rng.randrange(seen + 1)
            if place < size:
                sample[place] = line
    return sample


def train(lines: list[str], vocab_size: int, character_coverage: float) -> bytes:
    """Trains a model on lines and returns it serialised; `lines` is emptied on the way, to save memory.

    Raises:
        InputError: SentencePiece cannot make this vocabulary from this text.
    """
    characters = sum(map(len, lines))
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_emptying(lines),
            model_writer=model,
            model_type="unigram",
            vocab_size=vocab_size,
            character_coverage=character_coverage,
            pad_id=0,
            unk_id=1,
            bos_id=-1,
            eos_id=-1,
            control_symbols=CONTROL_SYMBOLS,
            user_defined_symbols=USER_DEFINED_SYMBOLS,
            max_sentence_length=MAX_LINE_BYTES,
            train_extremely_large_corpus=characters > LARGE_SAMPLE_CHARACTERS,
            num_threads=NUM_THREADS,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise InputError(_training_error(str(error), vocab_size)) from error
    return model.getvalue()


def _emptying(lines: list[str]) -> Iterator[str]:
    while lines:
        yield lines.pop()


def _training_error(message: str, vocab_size: int) -> str:
    if found := _TOO_HIGH.search(message):
        return (
            f"--vocab_size={vocab_size} is too large for this text, which gives at most {found[1]} pieces: lower it, "
            "or give more text"
        )
    if found := _TOO_LOW.search(message):
        return (
            f"--vocab_size={vocab_size} is too small for this text, whose characters alone take {found[1]} pieces: "
            "raise it, or lower --character_coverage"
        )
    return f"SentencePiece cannot train on this text: {message}"


def check_model(tokenizer: SentencePieceTokenizer, vocab_size: int) -> None:
    """Checks that the model has the ids of the released recipe, and that text gives no control symbol.

    Raises:
        InputError: it has not, so nothing trained with it could be read by others.
    """
    pieces = tokenizer.pieces()
    first = pieces[: len(FIRST_PIECES)]
    if first != FIRST_PIECES or len(pieces) != vocab_size:
        raise InputError(f"SentencePiece made {len(pieces)} pieces that begin with {first} instead of {FIRST_PIECES}")
    typed = tokenizer.encode(" ".join(CONTROL_SYMBOLS))
    if set(typed) & {tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id}:
        raise InputError(f"the trained model reads {' '.join(CONTROL_SYMBOLS)} in a text as control symbols")


def listing(tokenizer: SentencePieceTokenizer) -> str:
    """The .vocab listing: a piece and its log-probability a line."""
    return "".join(f"{piece}\t{score:.6g}\n" for piece, score in zip(tokenizer.pieces(), tokenizer.scores()))


def define_flags() -> None:
    """The script's flags."""
    flags.DEFINE_string("input_file", None, "Text files or patterns, separated by commas; plain or gzip UTF-8.")
    flags.DEFINE_string("output_prefix", None, "The files are OUTPUT_PREFIX.model and OUTPUT_PREFIX.vocab.")
    flags.DEFINE_integer("vocab_size", 30000, "Pieces, special ones included.", lower_bound=len(FIRST_PIECES) + 1)
    flags.DEFINE_bool("do_lower_case", True, "Lower-case the text.")
    flags.DEFINE_bool("keep_accents", False, "Keep accents.")
    flags.DEFINE_float(
        "character_coverage",
        0.99995,
        "The share of the text's characters with pieces.",
        lower_bound=0.9,
        upper_bound=1.0,
    )
    flags.DEFINE_integer(
        "input_sentence_size",
        10_000_000,
        "Lines to train on, sampled from all; they are kept in memory. 0: all lines.",
        lower_bound=0,
    )
    flags.DEFINE_integer("random_seed", 12345, "Decides the sample.")
    flags.DEFINE_enum("errors", ERROR_MODES[0], list(ERROR_MODES), "What to do with bytes that are not UTF-8.")
    flags.mark_flags_as_required(["input_file", "output_prefix"])


def check_writable(path: str) -> None:
    """Refuses a name that the result could not take, before the work is done.

    Raises:
        InputError: `path` is a directory, or its own directory cannot be made or written to.
    """
    directory = os.path.dirname(path) or "."
    try:
        os.makedirs(directory, exist_ok=True)
    except OSError as error:
        raise InputError(f"--output_prefix: cannot make the directory {directory}: {error.strerror}") from error
    if os.path.isdir(path) or not os.access(directory, os.W_OK):
        raise InputError(f"--output_prefix: cannot write {path}: choose another place")


def main(argv: Sequence[str]) -> None:
    """Reads and samples the text, trains, checks, writes."""
    del argv
    files = expand_globs(FLAGS.input_file, "input_file")
    model_file, listing_file = f"{FLAGS.output_prefix}.model", f"{FLAGS.output_prefix}.vocab"
    if not os.path.basename(FLAGS.output_prefix):
        raise InputError(f"--output_prefix={FLAGS.output_prefix} is a directory: add the beginning of the files' names")
    for path in (model_file, listing_file):
        check_writable(path)
    if not FLAGS.character_coverage <= 1.0:  # the flag's own bounds let nan through
        raise InputError(f"--character_coverage={FLAGS.character_coverage}: give a share such as 0.99995")

    with Progress(None, "reading", "B", scale=True) as progress:
        lines = training_lines(files, FLAGS.do_lower_case, FLAGS.keep_accents, FLAGS.errors, progress)
        sample = sample_lines(lines, FLAGS.input_sentence_size, random.Random(FLAGS.random_seed))
    if not sample:
        raise InputError(f"--input_file={FLAGS.input_file}: there is no text in {len(files)} file(s), only blank lines")
    count = len(sample)
    print(f"training {FLAGS.vocab_size} pieces on {count:,} lines from {len(files)} file(s)", flush=True)

    model = train(sample, FLAGS.vocab_size, FLAGS.character_coverage)
    tokenizer = SentencePieceTokenizer(model_file, model, FLAGS.do_lower_case, FLAGS.keep_accents)
    check_model(tokenizer, FLAGS.vocab_size)

    with atomic_write(listing_file, "w") as file:
        file.write(listing(tokenizer))
    with atomic_write(model_file) as file:
        file.write(model)
    print(f"ids 0..{len(FIRST_PIECES) - 1} are {' '.join(FIRST_PIECES)}, as in the released vocabulary")
    print(f"wrote {model_file} ({tokenizer.vocab_size} pieces) and {listing_file}")


if __name__ == "__main__":
    define_flags()
    run_main(main)
