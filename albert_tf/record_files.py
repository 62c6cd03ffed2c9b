"""The shards of pre-training records: found, measured and compared with the settings, before TensorFlow is imported."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Mapping
from typing import Any

import google_crc32c

from albert_tf import record_metadata, record_spec, storage
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError

_HEADER_BYTES, _FOOTER_BYTES = 12, 4  # a TFRecord: length [8], its checksum [4], the record, its checksum [4]


@dataclasses.dataclass(frozen=True)
class Shard:
    """One TFRecord file.

    Attributes:
        path: file name or address.
        records: how many records it holds.
        bytes: its length.
    """

    path: str
    records: int
    bytes: int


@dataclasses.dataclass(frozen=True)
class RecordFiles:
    """The shards of one flag and what their metadata says.

    Attributes:
        flag: the flag the files came from, for messages.
        shards: the shards that hold records, sorted by path.
        settings: the settings of the metadata.json beside the shards; empty where there is none.
        left_out: paths of the bad shards that were left out.
    """

    flag: str
    shards: tuple[Shard, ...]
    settings: Mapping[str, Any]
    left_out: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        """Number of records of all shards."""
        return sum(shard.records for shard in self.shards)

    @property
    def paths(self) -> list[str]:
        """The shards' paths, sorted."""
        return [shard.path for shard in self.shards]


def find_record_files(patterns: str, flag: str, *, skip_bad: bool = False) -> RecordFiles:
    """Finds the shards, counts their records and reads the metadata beside them.

    The counts come from metadata.json where it lists the shard, and else from a walk over the record lengths.

    Args:
        patterns: file names and globs with commas between them.
        flag: the flag they came from.
        skip_bad: leave out shards that are not whole instead of refusing them.

    Raises:
        InputError: nothing matches, a shard is no complete TFRecord file or is empty, or the directories' metadata
            disagree; the shard and the flag are named.
    """
    metadata: dict[str, dict[str, Any]] = {}
    shards, left_out = [], []
    for path in storage.expand_globs(patterns, flag):
        if storage.basename(path) == record_spec.METADATA_FILE:
            continue
        directory = storage.dirname(path)
        if directory not in metadata:
            metadata[directory] = record_metadata.read(directory)
        try:
            shard = _measure(path, flag, metadata[directory])
        except InputError:
            if not skip_bad:
                raise
            left_out.append(path)
            continue
        if shard.records:
            shards.append(shard)
    if not shards:
        raise InputError(f"--{flag}={patterns}: none of the files holds a record")
    settings = [(directory, found["settings"]) for directory, found in metadata.items() if found.get("settings")]
    for directory, other in settings[1:]:
        for name in ("max_seq_length", "max_predictions_per_seq", "vocab_sha256", "sentence_objective"):
            first = settings[0][1].get(name)
            if other.get(name) != first:
                raise InputError(
                    f"--{flag}: {name} is {first!r} in the records of {settings[0][0] or '.'} but "
                    f"{other.get(name)!r} in those of {directory or '.'}"
                )
    return RecordFiles(flag, tuple(shards), settings[0][1] if settings else {}, tuple(left_out))


def leave_out(records: RecordFiles, is_bad: Callable[[str], bool]) -> RecordFiles:
    """The same without the shards that `is_bad` says are.

    Raises:
        InputError: none is left.
    """
    bad = [path for path in records.paths if is_bad(path)]
    shards = tuple(shard for shard in records.shards if shard.path not in bad)
    if not shards:
        raise InputError(f"--{records.flag}: all shards are damaged: {', '.join(bad)}")
    return dataclasses.replace(records, shards=shards, left_out=(*records.left_out, *bad))


def check_against(
    settings: Mapping[str, Any], expected: Mapping[str, Any], *, records_flag: str, flags: Mapping[str, str]
) -> None:
    """Compares what the records were made with to what this run wants.

    Args:
        settings: the records' settings.
        expected: the run's values; None means that the run takes what the records have.
        records_flag: the flag that named the records.
        flags: for each name of `expected`, the flag or file the run's value came from.

    Raises:
        InputError: the first disagreement, with both values.
    """
    for name, value in expected.items():
        recorded = settings.get(name)
        if value is not None and recorded is not None and recorded != value:
            raise InputError(
                f"{name} is {recorded!r} in the records of --{records_flag} but {value!r} by {flags[name]}: "
                f"prepare the records again or change the setting"
            )


def check_fits_model(settings: Mapping[str, Any], config: AlbertConfig, records_flag: str) -> None:
    """Compares the records' settings with the model's sizes.

    Raises:
        InputError: the records are longer than the model's positions, or have more pieces than its table.
    """
    for name, limit in (("max_seq_length", "max_position_embeddings"), ("vocab_size", "vocab_size")):
        value, most = settings.get(name), getattr(config, limit)
        if value is not None and value > most:
            raise InputError(
                f"{name} is {value} in the records of --{records_flag}, but the model has {limit} {most}: give another "
                "--albert_config_file or prepare the records again"
            )


def count_records(path: str) -> int:
    """Counts the records of a TFRecord file by walking over their lengths, without reading them.

    Raises:
        InputError: it is not a TFRecord file, or it was cut.
    """
    size = storage.size(path)
    records = offset = 0
    with storage.open_binary(path) as file:
        while offset < size:
            file.seek(offset)
            header = file.read(_HEADER_BYTES)
            if len(header) < _HEADER_BYTES:
                raise InputError(f"{path} is cut short: record {records + 1} ends after {len(header)} bytes")
            length, checksum = struct.unpack("<QI", header)
            if masked_crc32c(header[:8]) != checksum:
                what = "is not a TFRecord file" if offset == 0 else f"is damaged at byte {offset}"
                raise InputError(f"{path} {what}: give the files that create_pretraining_data wrote")
            offset += _HEADER_BYTES + length + _FOOTER_BYTES
            records += 1
    if offset != size:
        raise InputError(
            f"{path} is cut short: record {records} should end at byte {offset}, but the file has {size} bytes"
        )
    return records


def masked_crc32c(data: bytes) -> int:
    """The checksum of the TFRecord format: CRC-32C, rotated and offset."""
    crc = google_crc32c.value(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def _measure(path: str, flag: str, metadata: Mapping[str, Any]) -> Shard:
    size = storage.size(path)
    listed = next((s for s in metadata.get("shards", []) if s["file"] == storage.basename(path)), None)
    if listed is None:
        if size == 0:
            raise InputError(f"--{flag}: {path} is empty (0 bytes): leave it out or prepare it again")
        return Shard(path, count_records(path), size)
    if size != listed["bytes"]:
        raise InputError(
            f"--{flag}: {path} has {size} bytes but {listed['bytes']} by its metadata.json: it was cut or changed"
        )
    return Shard(path, int(listed["records"]), size)
