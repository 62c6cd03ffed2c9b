"""Files that appear under their final name only when they are complete."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import shutil
from collections.abc import Collection, Iterator, Sequence
from typing import IO, Any

from albert_tf.errors import InputError

PARTIAL_SUFFIX = ".partial"


def expand_globs(patterns: str | Sequence[str], flag: str) -> list[str]:
    """Resolves comma-separated names and globs to a sorted list of files without repeats.

    Args:
        patterns: one string with commas between patterns, or a list of patterns. A pattern that is itself the name
            of a file is taken as it is, commas, brackets and spaces included.
        flag: the flag the patterns came from, for the message.

    Raises:
        InputError: a pattern matches no file, or matches a directory only.
    """
    if isinstance(patterns, str):
        patterns = [patterns] if os.path.isfile(patterns) else [p.strip() for p in patterns.split(",") if p.strip()]
    if not patterns:
        raise InputError(f"--{flag} is empty: give a file name or a pattern such as 'text/*.txt'")
    found: set[str] = set()
    for pattern in patterns:
        matches = [pattern] if os.path.isfile(pattern) else glob.glob(pattern, recursive=True)
        matches = [name for name in matches if os.path.isfile(name) and not name.endswith(PARTIAL_SUFFIX)]
        if not matches and os.path.isdir(pattern):
            raise InputError(f"--{flag}: {pattern!r} is a directory: give its files, such as '{pattern.rstrip('/')}/*'")
        if not matches:
            raise InputError(f"--{flag}: no file matches {pattern!r}")
        found.update(matches)
    return sorted(found)


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "wb") -> Iterator[IO[Any]]:
    """Opens `path` for writing aside; the file takes its name, synced to disk, only when the block ends well.

    Raises:
        InputError: the file or its directory cannot be made.
    """
    path = os.fspath(path)
    aside = f"{path}{PARTIAL_SUFFIX}"
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        opened = open(aside, mode, **text)  # noqa: SIM115 (closed below)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    try:
        with opened as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(aside)
        raise


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Writes `value` as indented JSON, complete or not at all."""
    with atomic_write(path, "w") as file:
        json.dump(value, file, indent=2, ensure_ascii=False)
        file.write("\n")


def read_json(path: str | os.PathLike[str]) -> Any:
    """Reads a JSON file.

    Raises:
        InputError: the file is missing or is not JSON (the line is named).
    """
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise InputError(f"cannot read {os.fspath(path)}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{os.fspath(path)} is not a JSON file: {error}") from error


@contextlib.contextmanager
def atomic_directory(path: str | os.PathLike[str], replaces: Collection[str] = ()) -> Iterator[str]:
    """Yields an empty directory beside `path`; it replaces `path` only when the block ends well.

    Args:
        path: the directory to make.
        replaces: names that may be in a directory that is there already, beside the new ones; nothing else is lost.

    Raises:
        InputError: `path` is a file, holds something else, or cannot be made.
    """
    path = os.path.abspath(os.fspath(path))
    aside, old = f"{path}{PARTIAL_SUFFIX}", f"{path}.old{PARTIAL_SUFFIX}"
    if not os.path.isdir(path) and os.path.isdir(old):
        os.rename(old, path)  # the last writer was stopped between its two renames
    for leftover in (aside, old):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        if os.path.exists(path) and not os.path.isdir(path):
            raise InputError(f"cannot write {path}: it is a file, and a directory is to be written")
        os.makedirs(aside)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    try:
        yield aside
        if os.path.isdir(path):
            others = sorted(set(os.listdir(path)) - set(os.listdir(aside)) - set(replaces))
            if others:
                raise InputError(f"{path} holds {', '.join(others[:3])}, which would be lost: give another directory")
            os.rename(path, old)
        os.rename(aside, path)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        if os.path.isdir(path):
            shutil.rmtree(old, ignore_errors=True)


def sha256(path: str | os.PathLike[str]) -> str:
    """The file's SHA-256, as hexadecimal text."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
