"""The output directory while it is being filled: who may write to it, and what a stopped run has finished."""

from __future__ import annotations

import glob
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from typing import Any

from albert_tf import record_metadata, record_spec
from albert_tf.errors import InputError
from albert_tf.files import PARTIAL_SUFFIX, read_json, write_json

PROGRESS_DIRECTORY = "progress"
_PLAN_FILE = "plan.json"
_SHARD_PATTERN = "{split}-[0-9]*-of-[0-9]*.tfrecord"
_SECONDS_TO_WAIT = 30.0

# The parts of a plan that decide the output; the names of the input files do not.
_DECIDING = ("settings", "tokenizer", "input_content")


class RunState:
    """The finished shards of one plan in one directory.

    A plan is the settings, the tokenizer and the input's content. It is written first; each finished shard leaves a
    small JSON file in OUTPUT_DIR/progress; when all is done, metadata.json takes their place.

    Raises:
        InputError: the directory holds records of another plan, or another run is writing to it.
    """

    def __init__(self, output_dir: str, plan: Mapping[str, Any], splits: Sequence[str], *, overwrite: bool):
        self._output_dir = output_dir
        self._progress = os.path.join(output_dir, PROGRESS_DIRECTORY)
        self._splits = splits
        self.is_complete = False
        _make(output_dir)
        self._lock = _lock(output_dir)
        try:
            self._start(plan, overwrite)
        except BaseException:
            self.close()
            raise

    def _start(self, plan: Mapping[str, Any], overwrite: bool) -> None:
        if overwrite:
            self._remove_output()
        elif os.path.exists(self._path_of_metadata()):
            metadata = record_metadata.read(self._output_dir)
            self._refuse_other_plan(metadata, plan, "records")
            self._refuse_damaged_shards(metadata["shards"])
            self.is_complete = True
        elif os.path.exists(self._path_of_plan()):
            old = read_json(self._path_of_plan())
            if not isinstance(old, Mapping):
                raise InputError(f"{self._path_of_plan()} is no plan of a preparation: --overwrite begins afresh")
            self._refuse_other_plan(old, plan, "an unfinished run")
        elif found := self._shard_files(""):
            raise InputError(
                f"--output_dir={self._output_dir} holds {os.path.basename(found[0])} but neither metadata.json nor the "
                "plan of a stopped run: give another directory, or --overwrite to remove the old records"
            )
        if not self.is_complete:
            for path in self._shard_files(f"*{PARTIAL_SUFFIX}"):
                os.remove(path)
            _make(self._progress)
            write_json(self._path_of_plan(), plan)

    def finished(self, index: int) -> dict[str, Any] | None:
        """What `finish` was given for a shard, if its files are all there."""
        path = self._path_of_shard(index)
        if not os.path.exists(path):
            return None
        value: dict[str, Any] = read_json(path)
        return value if all(self._size(file["file"]) == file["bytes"] for file in value["files"]) else None

    def _size(self, file: str) -> int | None:
        path = os.path.join(self._output_dir, file)
        return os.path.getsize(path) if os.path.exists(path) else None

    def _refuse_damaged_shards(self, shards: Sequence[Mapping[str, Any]]) -> None:
        for shard in shards:
            size = self._size(shard["file"])
            if size != shard["bytes"]:
                found = "is missing" if size is None else f"has {size} bytes"
                raise InputError(
                    f"--output_dir={self._output_dir}: {shard['file']} {found}, but has {shard['bytes']} bytes by "
                    "metadata.json: give --overwrite to prepare the records again"
                )

    def finish(self, index: int, value: dict[str, Any]) -> None:
        """Notes a shard whose files are complete."""
        write_json(self._path_of_shard(index), value)

    def complete(self, metadata: Mapping[str, Any]) -> None:
        """Writes metadata.json, the sign that all is there, and removes the notes."""
        write_json(self._path_of_metadata(), metadata)
        shutil.rmtree(self._progress, ignore_errors=True)
        self.is_complete = True

    def discard(self) -> None:
        """Removes everything this run has written."""
        self._remove_output()

    def close(self) -> None:
        """Lets another run write to the directory."""
        os.close(self._lock)

    def _remove_output(self) -> None:
        # metadata.json goes first: without it nobody takes what is left for complete.
        for path in (self._path_of_metadata(), *self._shard_files(""), *self._shard_files(f"*{PARTIAL_SUFFIX}")):
            if os.path.exists(path):
                os.remove(path)
        shutil.rmtree(self._progress, ignore_errors=True)

    def _refuse_other_plan(self, old: Mapping[str, Any], new: Mapping[str, Any], what: str) -> None:
        for part in _DECIDING:
            if difference := _difference(part, old.get(part), new[part]):
                raise InputError(
                    f"--output_dir={self._output_dir} holds {what} with other {difference}: give another directory, or "
                    "--overwrite to start afresh"
                )

    def _shard_files(self, suffix: str) -> list[str]:
        directory = glob.escape(self._output_dir)
        patterns = [os.path.join(directory, _SHARD_PATTERN.format(split=split) + suffix) for split in self._splits]
        return sorted(path for pattern in patterns for path in glob.glob(pattern))

    def _path_of_metadata(self) -> str:
        return os.path.join(self._output_dir, record_spec.METADATA_FILE)

    def _path_of_plan(self) -> str:
        return os.path.join(self._progress, _PLAN_FILE)

    def _path_of_shard(self, index: int) -> str:
        return os.path.join(self._progress, f"{index:05d}.json")


def _make(directory: str) -> None:
    try:
        os.makedirs(directory, exist_ok=True)
    except OSError as error:
        raise InputError(f"--output_dir: cannot make {directory}: {error.strerror}") from error


def _difference(part: str, old: Any, new: Any) -> str:
    """What differs, in words; empty if nothing does. metadata.json says more under "settings" than a plan."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return "" if old == new else "input files (number or content)"
    names = [name for name in new if old.get(name) != new[name]]
    values = ", ".join(f"{name} {old.get(name)!r} there and {new[name]!r} now" for name in names)
    return f"{part} ({values})" if names else ""


def _lock(directory: str) -> int:
    """Locks the directory; the lock ends with the process and those it forked, however they end."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        import fcntl
    except ImportError:  # no such lock on this system
        return handle
    deadline = time.monotonic() + _SECONDS_TO_WAIT
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(handle)
                raise InputError(
                    f"--output_dir={directory}: another run is writing to it; wait for its end or stop it"
                ) from None
            time.sleep(0.2)  # the processes of a run that was just killed may need a moment to end
