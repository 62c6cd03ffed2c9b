"""The main job in one go: text, vocabulary, records, pre-training, and a look at what has been learned.

usage: python -m scripts.pretrain [--input='my/*.txt'] [--output=folder] [--errors=replace]

Without --input the text is the English documentation inside this Python. Each stage is one command, printed before it
runs: they are the commands for work of one's own. A run that was stopped goes on when it is started again.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from absl import flags

from albert_tf import config_files, errors, files, record_spec
from albert_tf.config import CONFIG_FILE
from albert_tf.errors import InputError
from albert_tf.tokenization import load_tokenizer
from albert_tf.tokenizer import Tokenizer
from data_prep.documents import ERROR_MODES, open_text, read_documents
from data_prep.records import decode_record
from data_prep.tfrecord import read_records

FLAGS = flags.FLAGS

# The recipe: sized for about four minutes of training on two cores.
CONFIG = "albert_tiny"
INITIALIZER_RANGE = 0.07  # the usual 0.02 is for a width of 768: products over 128 would begin too small
VOCAB_SIZE = 4000
VOCABULARY_LINES = 100_000
BYTES_PER_PIECE_OF_VOCABULARY = 100  # a small text has no use for, and no room for, a large vocabulary
MAX_SEQ_LENGTH = 32  # what neighbours tell about a gap is learned soonest where each position is seen often
EVAL_FRACTION = 0.1
PREPARED_BYTES = 15_000_000  # a small text is masked anew several times, to about this much
MAX_DUPE_FACTOR = 10
TRAINING: dict[str, Any] = {
    "train_batch_size": 64,
    "learning_rate": 0.005,
    "num_train_steps": 3000,
    "num_warmup_steps": 150,
    "eval_interval": 1000,
    "save_checkpoints_steps": 500,
    "log_steps": 100,
}
NUM_EXAMPLES = 5
MAX_RECORDS_LOOKED_AT = 1000
STACK = "Keras 2.15" if sys.version_info < (3, 12) else "Keras 3"  # as checkpoints name it; see setup.py
VOCABULARY = "vocabulary.model"
PARAGRAPH_SHARE = 1 / 4  # of the lines hold more than one sentence: then a line is a paragraph

_INNER_SENTENCE_END = re.compile(r"[.!?][\"'”’)]*\s+[\"'“‘(]*[^\W\d_a-z]|[。！？].")


@dataclasses.dataclass(frozen=True)
class Text:
    """What there is to train on, and what decides how it is prepared.

    Attributes:
        given: names and patterns, as each stage resolves them for itself.
        errors: what the stages do with bytes that are not UTF-8.
        files: what the patterns stand for.
        bytes, documents: how much that is.
        has_paragraphs: whether a line is a paragraph, else it is a sentence.
    """

    given: str
    errors: str
    files: list[str]
    bytes: int
    documents: int
    has_paragraphs: bool


def main(argv: Sequence[str]) -> int:
    del argv
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    started = time.monotonic()
    output = FLAGS.output or default_output(FLAGS.input)
    try:
        text = survey(FLAGS.input or sample_text(output), FLAGS.errors)
    except InputError as error:  # the person calls make
        raise InputError(str(error).replace("--errors=", "ERRORS=").replace("--input", "INPUT")) from error
    claim(output, text)

    vocabulary = os.path.join(output, VOCABULARY)
    if not os.path.exists(vocabulary):
        make_vocabulary(text, vocabulary)
    tokenizer = load_tokenizer(vocabulary)
    config = write_config(output, tokenizer)

    records = os.path.join(output, "records")
    prepare(text, vocabulary, records)
    held_out = shard_pattern(records, "eval")
    evaluation: dict[str, Any] = {"eval_input_file": held_out} if held_out else {"do_eval": False}
    run(
        "albert_tf.run_pretraining",
        input_file=shard_pattern(records, "train"),
        albert_config_file=config,
        output_dir=os.path.join(output, "pretraining"),
        optimizer="lamb",
        **TRAINING,
        **evaluation,
    )

    unseen = masked_sentences(records, "eval", tokenizer) if held_out else []
    examples = unseen or masked_sentences(records, "train", tokenizer)
    if examples:
        where = "text the model has not seen" if unseen else "the training text"
        print(f"\nThe five likeliest fillings of gaps in {where}:", flush=True)
        run(
            "albert_tf.fill_mask",
            model=os.path.join(output, "pretraining", "model"),
            text=[sentence for sentence, _ in examples],
        )
        print(f"What stood there: {', '.join(word for _, word in examples)}")
    print(f"\n{output} took {(time.monotonic() - started) / 60:.1f} minutes")
    return 0


def default_output(given: str) -> str:
    """The folder for this input with this Python: what one stack has begun the other cannot go on with."""
    python = ".".join(map(str, sys.version_info[:2]))
    return os.path.join("output", f"{_slug(given) if given else 'python_documentation'}_py{python}")


# ---- the stages


def run(module: str, may_fail: bool = False, **arguments: Any) -> str | None:
    """Prints the command of a stage and runs it.

    A failure, which the command itself has told, ends this script too. If it `may_fail`, what it told is returned.
    Whatever ends this script meanwhile ends the command first: by SIGTERM a training saves where it is.
    """
    command = ["-m", module]
    for name, value in arguments.items():
        if isinstance(value, bool):
            command.append(f"--{name}" if value else f"--no{name}")
        else:
            command += [f"--{name}={one}" for one in (value if isinstance(value, list) else [value])]
    print(f"\n$ python {shlex.join(command)}", flush=True)
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ}
    stderr = subprocess.PIPE if may_fail else None
    with subprocess.Popen([sys.executable, *command], env=environment, stderr=stderr, text=True) as process:
        try:
            _, told = process.communicate()
        except BaseException:
            process.terminate()
            raise
    if may_fail:
        print(told, end="", file=sys.stderr, flush=True)
    if process.returncode and not may_fail:
        sys.exit(process.returncode)
    return told if process.returncode else None


def sample_text(output: str) -> str:
    """The file of the text that is on every machine."""
    path = os.path.join(output, "python_documentation.txt")
    if not os.path.exists(path):
        run("data_prep.python_documentation", output_file=path)
    return path


def survey(given: str, errors: str) -> Text:
    """Reads the text once to see how it is laid out."""
    text_files = files.expand_globs(given, "input")
    num_bytes = documents = lines = paragraphs = 0
    for index, path in enumerate(text_files):
        with open_text(path) as file:
            for document in read_documents(file, path, index, 0, None, errors):
                num_bytes += document.size
                documents += 1
                lines += len(document.lines)
                paragraphs += sum(bool(_INNER_SENTENCE_END.search(line)) for line in document.lines)
    if not documents:
        raise InputError(f"no text in {', '.join(text_files[:3])}: only blank lines")
    return Text(given, errors, text_files, num_bytes, documents, paragraphs > PARAGRAPH_SHARE * lines)


def claim(output: str, text: Text) -> None:
    """Marks the output folder as that of this text, recipe and stack.

    Raises:
        InputError: it was begun with another one.
    """
    recipe = {"training": TRAINING, "length": MAX_SEQ_LENGTH, "initializer_range": INITIALIZER_RANGE}
    facts = json.loads(json.dumps({"text": dataclasses.asdict(text), **recipe, "stack": STACK}))
    path = os.path.join(output, "pretrain.json")
    if not os.path.exists(path) or not os.path.exists(os.path.join(output, VOCABULARY)):  # nothing came of it yet
        files.write_json(path, facts)
        return
    begun = files.read_json(path)
    if begun != {**facts, "stack": begun.get("stack")}:
        raise InputError(
            f"{output} was begun with other text or settings ({path}): remove the folder, or name another with OUTPUT="
        )
    if begun["stack"] != STACK:
        raise InputError(
            f"{output} was begun with {begun['stack']}, and this Python has {STACK}: go on with the Python that began "
            "it (PYTHON=), or name another folder with OUTPUT="
        )


def make_vocabulary(text: Text, vocabulary: str) -> None:
    """Trains the vocabulary, of as many pieces as the text has use for."""
    arguments: dict[str, Any] = {
        "input_file": text.given,
        "errors": text.errors,
        "output_prefix": vocabulary[: -len(".model")],
        "input_sentence_size": VOCABULARY_LINES,
    }
    size = min(VOCAB_SIZE, max(100, text.bytes // BYTES_PER_PIECE_OF_VOCABULARY))
    told = run("data_prep.train_sentencepiece", **arguments, vocab_size=size, may_fail=True)
    if told is not None:  # only a text that is too uniform for so many pieces, or has more characters, is tried again
        most, characters = re.search(r"at most (\d+) pieces", told), re.search(r"characters alone take (\d+)", told)
        if not most and not characters:
            sys.exit(1)
        size = int(most[1]) if most else 2 * int(characters[1])  # type: ignore[index]
        run("data_prep.train_sentencepiece", **arguments, vocab_size=size)


def write_config(output: str, tokenizer: Tokenizer) -> str:
    """The file of the model's sizes: the packaged one, with this vocabulary's size and wider initial weights."""
    sizes = files.read_json(config_files.config_path(CONFIG))
    path = os.path.join(output, CONFIG_FILE)
    files.write_json(path, {**sizes, "vocab_size": tokenizer.vocab_size, "initializer_range": INITIALIZER_RANGE})
    return path


def prepare(text: Text, vocabulary: str, records: str) -> None:
    if text.documents == 1:
        print("The text is a single document, so none is held out: put a blank line between its documents.")
    run(
        "data_prep.create_pretraining_data",
        input_file=text.given,
        errors=text.errors,
        output_dir=records,
        spm_model_file=vocabulary,
        max_seq_length=MAX_SEQ_LENGTH,
        dupe_factor=min(MAX_DUPE_FACTOR, max(1, PREPARED_BYTES // text.bytes)),
        eval_fraction=EVAL_FRACTION if text.documents > 1 else 0.0,
        split_sentences=text.has_paragraphs,
    )


def shard_pattern(records: str, split: str) -> str | None:
    """The pattern of a split's shards, or None where it has no records."""
    metadata = files.read_json(os.path.join(records, record_spec.METADATA_FILE))
    has_records = any(shard["split"] == split and shard["records"] for shard in metadata["shards"])
    return os.path.join(records, f"{split}-*.tfrecord") if has_records else None


# ---- sentences with a gap


def masked_sentences(records: str, split: str, tokenizer: Tokenizer) -> list[tuple[str, str]]:
    """A few sentences of the records' text with one word as [MASK], and that word."""
    draw = random.Random(0)
    pieces = set(tokenizer.pieces())
    found: dict[str, tuple[str, str]] = {}
    for path in files.expand_globs(os.path.join(records, f"{split}-*.tfrecord"), "input"):
        for record in itertools.islice(read_records(path), MAX_RECORDS_LOOKED_AT):
            for sentence in whole_sentences(decode_record(record), tokenizer):
                words = [word for word in re.findall(r"(?<= )[^\W\d_]{3,}(?=[ .])", sentence) if f"▁{word}" in pieces]
                if words and sentence not in found:
                    word = draw.choice(words)
                    found[sentence] = (re.sub(rf" {word}(?=[ .])", " [MASK]", sentence, count=1), word)
    examples = sorted(found.values())
    return draw.sample(examples, min(NUM_EXAMPLES, len(examples)))


def whole_sentences(record: dict[str, Any], tokenizer: Tokenizer) -> list[str]:
    """The plain sentences that are whole in a record, its masked pieces put back."""
    ids = list(record[record_spec.INPUT_IDS])
    for position, piece, weight in zip(*(record[name] for name in record_spec.PREDICTION_FEATURES)):
        if weight:
            ids[position] = piece
    text = "".join(map(tokenizer.id_to_piece, ids)).replace("▁", " ")
    found = []
    for segment in re.split(r"\[CLS\]|\[SEP\]", text):
        # A segment may begin within a sentence, so its first one is left out.
        found += [
            one for one in re.split(r"(?<=\.) ", segment)[1:] if re.fullmatch(r"[^\W\d_]+( [^\W\d_]+){5,20}\.", one)
        ]
    return found


def _slug(pattern: str) -> str:
    return re.sub(r"\W+", "_", pattern).strip("_") or "text"


def define_flags() -> None:
    flags.DEFINE_string("input", "", "Text files or patterns with commas between; a blank line between documents.")
    flags.DEFINE_string("output", "", "Folder for all that is made; by default one below output/, named by the input.")
    flags.DEFINE_enum("errors", ERROR_MODES[0], list(ERROR_MODES), "What to do with bytes that are not UTF-8.")


if __name__ == "__main__":
    define_flags()
    errors.run_main(main)
