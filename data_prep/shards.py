"""One shard of the work list to one finished file per split: the way from text to records."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator
from typing import IO, Any, BinaryIO

import numpy as np

from albert_tf.files import atomic_write
from albert_tf.tokenizer import Tokenizer
from data_prep.batches import SpecialIds, assemble
from data_prep.documents import Document, open_text, read_documents
from data_prep.masking import Masking, mask_batch
from data_prep.random_draws import document_generator, held_out_draw, order_generator
from data_prep.records import encode_batch
from data_prep.segments import EncodedDocument, Instance, pack_function
from data_prep.sentences import SentenceSplitter
from data_prep.settings import Settings
from data_prep.statistics import RecordCounts, Statistics
from data_prep.tfrecord import frames
from data_prep.work_list import Shard

TRAIN, EVAL = "train", "eval"

# Documents are read, packed, masked and shuffled by windows of so much text: what the memory is bounded by.
WINDOW_BYTES = 1 << 21
_ENCODED_TOGETHER = 1 << 18  # characters given to the tokenizer at a time
_MASKED_TOGETHER = 1 << 18  # pieces (N * S) masked at a time


def shard_name(split: str, index: int, num_shards: int) -> str:
    """The file name of a shard."""
    return f"{split}-{index:05d}-of-{num_shards:05d}.tfrecord"


@dataclasses.dataclass(frozen=True)
class Job:
    """What every process must know. Documents with a draw below `held_out_limit` are held out for evaluation."""

    settings: Settings
    tokenizer: Tokenizer
    output_dir: str
    num_shards: int
    held_out_limit: float


@dataclasses.dataclass(frozen=True)
class FinishedFile:
    """An output file as metadata.json lists it."""

    file: str
    split: str
    records: int
    bytes: int


class ShardBuilder:
    """Builds shards one after the other; it keeps the last text file open, so a gzip file is unpacked once only."""

    def __init__(self, job: Job):
        settings, tokenizer = job.settings, job.tokenizer
        regular = np.setdiff1d(np.arange(tokenizer.vocab_size, dtype=np.int32), tokenizer.special_ids)
        self._job = job
        self._masking = Masking(
            starts_word=tokenizer.starts_word(),
            regular_ids=regular,
            mask_id=tokenizer.mask_id,
            max_predictions=settings.max_predictions_per_seq,
            masked_lm_prob=settings.masked_lm_prob,
            ngram=settings.ngram,
            favor_shorter_ngram=settings.favor_shorter_ngram,
            whole_words=settings.do_whole_word_mask,
        )
        self._special = SpecialIds(tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id)
        self._pack = pack_function(settings.sentence_objective)
        self._splitter = SentenceSplitter() if settings.split_sentences else None
        self._open_path = ""
        self._open_file: BinaryIO | None = None

    def build(self, shard: Shard) -> tuple[list[FinishedFile], Statistics]:
        """Writes the shard's files, complete or not at all. A split without records gets no file.

        Raises:
            InputError: the text cannot be read (see `documents.read_lines`).
        """
        statistics = Statistics()
        with contextlib.ExitStack() as stack:
            writers: dict[str, IO[bytes]] = {}
            names: dict[str, str] = {}
            for window in self._windows(shard):
                statistics.text.bytes += sum(document.size for document in window)
                splits = self._encode(window, statistics)
                for split, documents in splits.items():
                    for records in self._passes(split, documents, _others(splits, split), statistics):
                        if split not in writers:
                            names[split] = shard_name(split, shard.index, self._job.num_shards)
                            path = os.path.join(self._job.output_dir, names[split])
                            writers[split] = stack.enter_context(atomic_write(path))
                        writers[split].write(frames(records))
                        del records  # before the next pass makes as many
        files = []
        for split, name in names.items():
            size = os.path.getsize(os.path.join(self._job.output_dir, name))
            files.append(FinishedFile(name, split, statistics.splits[split].records, size))
        return files, statistics

    def _windows(self, shard: Shard) -> Iterator[list[Document]]:
        window: list[Document] = []
        size = 0
        for document in self._documents(shard):
            window.append(document)
            size += document.size
            if size >= WINDOW_BYTES:
                yield window
                window, size = [], 0
        if window:
            yield window

    def _documents(self, shard: Shard) -> Iterator[Document]:
        for part in shard.ranges:
            if self._open_file is None or self._open_path != part.path:
                if self._open_file is not None:
                    self._open_file.close()
                self._open_path, self._open_file = part.path, open_text(part.path)
            errors = self._job.settings.errors
            yield from read_documents(self._open_file, part.path, part.file_index, part.start, part.end, errors)

    def _encode(self, window: list[Document], statistics: Statistics) -> dict[str, list[EncodedDocument]]:
        """The window's documents that have pieces, by split."""
        tokenizer = self._job.tokenizer
        sentences = self._sentences(window)
        ids, lengths = _encode_in_parts(tokenizer, [text for lines in sentences for text in lines])
        starts_word = self._masking.starts_word[ids]
        statistics.text.documents += len(window)
        statistics.text.sentences += int(np.count_nonzero(lengths))
        statistics.text.pieces += len(ids)
        statistics.text.unknown_pieces += int(np.count_nonzero(ids == tokenizer.unk_id))

        splits: dict[str, list[EncodedDocument]] = {TRAIN: [], EVAL: []}
        sentence = start = 0
        for document, lines in zip(window, sentences):
            sizes = lengths[sentence : sentence + len(lines)]
            sentence += len(lines)
            ends = np.cumsum(sizes[sizes > 0]).tolist()
            if not ends:
                statistics.text.skipped_documents += 1
                continue
            end = start + ends[-1]
            key = (document.file_index, document.offset)
            is_held_out = held_out_draw(self._job.settings.random_seed, *key) < self._job.held_out_limit
            statistics.text.held_out_documents += is_held_out
            splits[EVAL if is_held_out else TRAIN].append(
                EncodedDocument(key, ids[start:end], ends, starts_word[start:end])
            )
            start = end
        return splits

    def _sentences(self, window: list[Document]) -> list[list[str]]:
        if self._splitter is None:
            return [document.lines for document in window]
        split = iter(self._splitter.split([line for document in window for line in document.lines]))
        return [[text for _ in document.lines for text in next(split)] for document in window]

    def _passes(
        self, split: str, documents: list[EncodedDocument], others: list[EncodedDocument], statistics: Statistics
    ) -> Iterator[list[bytes]]:
        """The records of each pass in shuffled order; held-out documents are gone through once.

        Second segments may come from `others` too.
        """
        at_hand = [*documents, *others]
        for pass_index in range(self._job.settings.dupe_factor if split == TRAIN else 1):
            records: list[bytes] = []
            for instances, draws in self._instances(at_hand, len(documents), pass_index, statistics):
                batch = assemble(at_hand, instances, self._job.settings.max_seq_length, self._special)
                masked = mask_batch(batch, self._masking, draws)
                statistics.splits.setdefault(split, RecordCounts()).add(batch, masked)
                records += encode_batch(batch, masked)
            if records:
                order = order_generator(self._job.settings.random_seed, *documents[0].key, pass_index)
                yield [records[place] for place in order.permutation(len(records)).tolist()]

    def _instances(
        self, at_hand: list[EncodedDocument], count: int, pass_index: int, statistics: Statistics
    ) -> Iterator[tuple[list[Instance], np.ndarray]]:
        """Instances of the first `count` documents with the uniform numbers of their masking, in batches."""
        settings = self._job.settings
        packing, width = settings.packing(), self._masking.draws_per_record(settings.max_seq_length)
        together = max(1, _MASKED_TOGETHER // settings.max_seq_length)
        instances: list[Instance] = []
        draws: list[np.ndarray] = []
        for index, document in enumerate(at_hand[:count]):
            rng = document_generator(settings.random_seed, *document.key, pass_index)
            packed = self._pack(at_hand, index, packing, rng)
            statistics.text.skipped_documents += not packed and pass_index == 0
            for start in range(0, len(packed), together):
                part = packed[start : start + together]
                instances += part
                draws.append(rng.random((len(part), width)))
                if len(instances) >= together:
                    yield instances, np.concatenate(draws)
                    instances, draws = [], []
        if instances:
            yield instances, np.concatenate(draws)


def _others(splits: dict[str, list[EncodedDocument]], split: str) -> list[EncodedDocument]:
    """Documents of the other split, for second segments: for a held-out document that is alone in its window.

    Without them it would have no random second segment. The other way round held-out text would be trained on.
    """
    return splits[TRAIN] if split == EVAL and len(splits[EVAL]) == 1 else []


def _encode_in_parts(tokenizer: Tokenizer, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """`tokenizer.encode_batch`, a part at a time: what it needs while it works is bounded."""
    ids, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    start = size = 0
    for place, text in enumerate(texts, 1):
        size += len(text)
        if size >= _ENCODED_TOGETHER or place == len(texts):
            part_ids, part_lengths = tokenizer.encode_batch(texts[start:place])
            ids.append(part_ids)
            lengths.append(part_lengths)
            start, size = place, 0
    return np.concatenate(ids), np.concatenate(lengths)


def finished_to_dict(files: list[FinishedFile], statistics: Statistics) -> dict[str, Any]:
    """A finished shard as JSON."""
    return {"files": [dataclasses.asdict(file) for file in files], "statistics": statistics.to_dict()}


def finished_from_dict(value: dict[str, Any]) -> tuple[list[FinishedFile], Statistics]:
    """The inverse of `finished_to_dict`."""
    return [FinishedFile(**file) for file in value["files"]], Statistics.from_dict(value["statistics"])
