"""Records as text for a person."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping

import numpy as np

from albert_tf import record_metadata, record_spec
from albert_tf.errors import InputError
from albert_tf.files import expand_globs
from albert_tf.tokenization import load_tokenizer
from albert_tf.tokenizer import Tokenizer
from data_prep.records import decode_record
from data_prep.shards import TRAIN
from data_prep.tfrecord import read_records

_NEEDED = (
    record_spec.INPUT_IDS,
    record_spec.INPUT_MASK,
    record_spec.SEGMENT_IDS,
    *record_spec.PREDICTION_FEATURES,
)


def shown_records(directory: str, count: int, tokenizer: Tokenizer | None = None) -> Iterator[str]:
    """The first `count` training records of a directory, numbered; of one without metadata, of its *.tfrecord* files.

    Args:
        directory: what create_pretraining_data wrote, or the released script.
        count: how many at most.
        tokenizer: what reads the ids; None: the one that the metadata names.

    Raises:
        InputError: there are no records, they are damaged or something else, or are of another vocabulary.
    """
    metadata = record_metadata.read(directory)
    if metadata:
        settings = metadata["settings"]
        paths = [os.path.join(directory, shard["file"]) for shard in metadata["shards"] if shard["split"] == TRAIN]
        if tokenizer is None:
            tokenizer = load_tokenizer(
                settings["vocab_file"], do_lower_case=settings["do_lower_case"], keep_accents=settings["keep_accents"]
            )
        if tokenizer.settings()["vocab_sha256"] != settings["vocab_sha256"]:
            raise InputError(
                f"the records in {directory} were made with another vocabulary than {tokenizer.vocab_file}: give that "
                f"one, which was {settings['vocab_file']}"
            )
    else:
        paths = expand_globs([os.path.join(directory, "*.tfrecord*")], "output_dir")
        if tokenizer is None:
            raise InputError(
                f"{record_metadata.path_in(directory)} does not exist, so the vocabulary of the records must be given: "
                "--spm_model_file, or --vocab_file for WordPiece"
            )
    numbered = ((path, number, record) for path in paths for number, record in enumerate(read_records(path)))
    for shown, (path, number, record) in enumerate(itertools.islice(numbered, count)):
        try:
            yield f"record {shown}: {show_record(decode_record(record), tokenizer)}"
        except (IndexError, ValueError) as error:
            raise InputError(f"{path}: record {number} cannot be shown: {error}") from error


def show_record(record: Mapping[str, np.ndarray], tokenizer: Tokenizer) -> str:
    """The pieces of a record, A and B on lines of their own; a predicted piece is shown as {what it was>what it is}.

    Raises:
        IndexError: an id is outside the vocabulary.
        ValueError: it is no pre-training record.
    """
    if missing := [name for name in _NEEDED if name not in record]:
        raise ValueError(f"it is no pre-training record: it has no {missing[0]}")
    ids = record[record_spec.INPUT_IDS]
    segments = record[record_spec.SEGMENT_IDS]
    length = int(record[record_spec.INPUT_MASK].sum())
    predictions = int((record[record_spec.MASKED_LM_WEIGHTS] > 0).sum())
    positions = record[record_spec.MASKED_LM_POSITIONS][:predictions].tolist()
    old = dict(zip(positions, record[record_spec.MASKED_LM_IDS].tolist()))
    label = record.get(record_spec.SENTENCE_ORDER_LABEL, record.get(record_spec.OLD_SENTENCE_LABEL))

    shown: list[list[str]] = [[], []]
    for place, piece_id in enumerate(ids[:length].tolist()):
        piece = tokenizer.id_to_piece(piece_id)
        if place in old:
            piece = f"{{{tokenizer.id_to_piece(old[place])}>{piece}}}"
        shown[int(segments[place])].append(piece)
    title = f"label {int(label[0])}" if label is not None else "no label"
    lines = [f"{title}, {length} of {len(ids)} pieces, {predictions} predicted", f"  A: {' '.join(shown[0])}"]
    if shown[1]:
        lines.append(f"  B: {' '.join(shown[1])}")
    return "\n".join(lines)
