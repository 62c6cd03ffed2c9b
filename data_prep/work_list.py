"""The work as a list of shards, each a part of the input that one process turns into one file per split."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from data_prep.survey import FileSurvey

_SMALL_SHARD_BYTES = 1 << 20
_SHARD_BYTES = 4 << 20
_FEW_SHARDS = 16
_MANY_SHARDS = 1024


@dataclasses.dataclass(frozen=True)
class TextRange:
    """The documents of a file between two offsets of its unpacked text."""

    file_index: int
    path: str
    start: int
    end: int


@dataclasses.dataclass(frozen=True)
class Shard:
    """Parts of the input, in order; `size` is their text in bytes."""

    index: int
    ranges: tuple[TextRange, ...]
    size: int


def default_num_shards(text_bytes: int) -> int:
    """One shard per MiB of text up to 16, from 64 MiB on one per 4 MiB, never more than 1024.

    It looks at the text alone, so that the output does not depend on the machine.
    """
    by_megabyte = min(_FEW_SHARDS, -(-text_bytes // _SMALL_SHARD_BYTES))
    return max(1, min(_MANY_SHARDS, max(by_megabyte, -(-text_bytes // _SHARD_BYTES))))


def make_work_list(files: Sequence[FileSurvey], num_shards: int) -> list[Shard]:
    """Deals the files' text in order over at most `num_shards` shards of about equal size; no shard is empty.

    A cut falls only where a document begins, so there may be fewer shards than asked for.
    """
    pieces = []
    for file_index, file in enumerate(files):
        for start, end in zip(file.cuts, (*file.cuts[1:], file.end)):
            pieces.append(TextRange(file_index, file.path, start, end))
    total = sum(piece.end - piece.start for piece in pieces)
    groups: list[list[TextRange]] = [[] for _ in range(num_shards)]
    done = 0
    for piece in pieces:
        # The shard in whose share the middle of the piece lies.
        middle = done + (piece.end - piece.start) // 2
        group = groups[min(num_shards - 1, middle * num_shards // total)]
        if group and group[-1].file_index == piece.file_index:
            group[-1] = dataclasses.replace(group[-1], end=piece.end)
        else:
            group.append(piece)
        done += piece.end - piece.start
    filled = [group for group in groups if group]
    return [
        Shard(index, tuple(group), sum(piece.end - piece.start for piece in group))
        for index, group in enumerate(filled)
    ]
