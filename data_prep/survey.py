"""A first reading of the input: what is in each file and where it can be cut between documents."""

from __future__ import annotations

import dataclasses

import google_crc32c

from albert_tf.errors import InputError
from data_prep.documents import open_text, read_documents
from data_prep.random_draws import held_out_draw


@dataclasses.dataclass(frozen=True)
class FileSurvey:
    """One input file. `cuts` are offsets in the unpacked text where a document begins; the first document is one."""

    path: str
    crc32c: int  # of the file as it lies on the disk
    text_bytes: int  # unpacked, blank lines not counted
    documents: int
    lines: int
    end: int  # the offset behind the last document
    cuts: tuple[int, ...]
    lowest_draw: float  # the smallest held-out draw of its documents; 1 when it has none


def survey_file(path: str, file_index: int, *, grain: int, errors: str, seed: int) -> FileSurvey:
    """Reads the whole file once.

    Args:
        path: a plain or gzip text file.
        file_index: its place in the list of inputs.
        grain: at least this many bytes lie between two cuts.
        errors: see `documents.read_lines`.
        seed: of the held-out draws.

    Raises:
        InputError: the file cannot be read, is a damaged gzip file, is not UTF-8, or has the line ends of old Macs.
    """
    documents = lines = text_bytes = end = inner_returns = 0
    cuts: list[int] = []
    lowest = 1.0
    with open_text(path) as file:
        for document in read_documents(file, path, file_index, 0, None, errors):
            documents += 1
            lines += len(document.lines)
            inner_returns += sum(line.count("\r") for line in document.lines)
            text_bytes += document.size
            end = document.offset + document.size
            if not cuts or document.offset - cuts[-1] >= grain:
                cuts.append(document.offset)
            lowest = min(lowest, held_out_draw(seed, file_index, document.offset))
    if inner_returns > lines:
        raise InputError(
            f"{path} ends its lines with carriage returns alone: convert them, for example with tr '\\r' '\\n'"
        )
    return FileSurvey(path, _checksum(path), text_bytes, documents, lines, end, tuple(cuts), lowest)


def _checksum(path: str) -> int:
    checksum = 0
    try:
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                checksum = google_crc32c.extend(checksum, block)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    return checksum
