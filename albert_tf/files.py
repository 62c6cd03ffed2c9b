"""Files that appear under their final name only when they are complete."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import glob
import hashlib
import json
import os
import pathlib
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import IO, Any

from albert_tf import json_text
from albert_tf.errors import InputError
from albert_tf.file_lock import held

PARTIAL_SUFFIX = ".partial"

_OWN_NAME = r"\.[0-9a-f]{8}" + re.escape(PARTIAL_SUFFIX)  # behind the name of what is written
_NEW, _OLD = "new", "old"  # inside the directory of a writer: what it makes, what it took away
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_WRITING_ALONE = (*_FULL, errno.EIO)
_CURRENT_DIRECTORY, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of renameat2(2)


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
    """Opens a file of this writer's own for writing; it becomes `path`, synced to disk, only when the block ends well.

    Raises:
        InputError: the file or its directory cannot be made, or the disk is full.
    """
    path = os.fspath(path)
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    with _errors_of_writing(path), _aside(path, lambda name: pathlib.Path(name).touch()) as aside:
        with open(aside, mode, **text) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)


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
        with open(path, "rb") as file:
            return json_text.parse(file.read(), allow_repeated_keys=True)
    except OSError as error:
        raise InputError(f"cannot read {os.fspath(path)}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{os.fspath(path)} is not a JSON file: {error}") from error


@contextlib.contextmanager
def atomic_directory(path: str | os.PathLike[str], replaces: Collection[str] = ()) -> Iterator[str]:
    """Yields an empty directory of this writer's own; it becomes `path`, whole, only when the block ends well.

    Of several writers at once the last one wins. What a killed one left behind goes with the next one.

    Args:
        path: the directory to make. Where it is a link to a directory, that one is replaced.
        replaces: names that may be in a directory that is there already, beside the new ones; nothing else is lost.

    Raises:
        InputError: `path` is empty, a file or a link to nothing, holds something else, or cannot be made.
    """
    given = os.fspath(path)
    if not given:
        raise InputError("the directory to write is empty: give a path, such as ./model")
    recover_directory(given)
    if not os.path.exists(given) and os.path.islink(given.rstrip(os.sep)):
        raise InputError(f"cannot write {given}: it is a link to {os.path.realpath(given)}, which does not exist")
    path = os.path.realpath(given)
    if os.path.isfile(path):
        raise InputError(f"cannot write {path}: it is a file, and a directory is to be written")
    with _errors_of_writing(path), _aside(path, os.mkdir) as aside:
        new, old = os.path.join(aside, _NEW), os.path.join(aside, _OLD)
        os.mkdir(new)
        try:
            yield new
        except InputError as error:
            raise InputError(str(error).replace(new, path)) from error
        _put_in_place(new, path, old, replaces)


def recover_directory(path: str | os.PathLike[str]) -> None:
    """Puts back what was at `path`, if a writer was killed after it had taken that away; else does nothing."""
    path = os.path.realpath(path)
    if not os.path.lexists(path):
        for leftover in _leftovers(path):
            with contextlib.suppress(OSError):
                os.rename(os.path.join(leftover, _OLD), path)


def _put_in_place(new: str, path: str, old: str, replaces: Collection[str]) -> None:
    """Gives the directory `new` the name `path`, in one step where the system can, else by way of `old`."""
    while True:
        with contextlib.suppress(FileNotFoundError):
            others = sorted(set(os.listdir(path)) - set(os.listdir(new)) - set(replaces))
            if others:
                raise InputError(f"{path} holds {', '.join(others[:3])}, which would be lost: give another directory")
            if _exchange(new, path):
                return
            os.rename(path, old)
        try:
            os.rename(new, path)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):  # another writer was faster, and is followed
                _remove(old)
                continue
            with contextlib.suppress(OSError):
                os.rename(old, path)
            raise
        with contextlib.suppress(FileNotFoundError):
            os.rename(old, new)  # so that it is not put back once its removal has begun
        return


def _exchange(one: str, other: str) -> bool:
    """Swaps the names of two directories in one step, if the system and the file system can."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        rename = ctypes.CDLL(None).renameat2
    except AttributeError:  # an old C library
        return False
    names = (_CURRENT_DIRECTORY, os.fsencode(one), _CURRENT_DIRECTORY, os.fsencode(other))
    return bool(rename(*names, _EXCHANGE) == 0)


@contextlib.contextmanager
def _aside(path: str, make: Callable[[str], None]) -> Iterator[str]:
    """Yields the name of a new file or directory beside `path`, locked, which is removed after the block."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    for leftover in _leftovers(path):
        _remove(leftover)
    while True:
        aside = f"{path}.{secrets.token_hex(4)}{PARTIAL_SUFFIX}"
        make(aside)
        with held(aside) as is_free:
            if is_free is False or not os.path.exists(aside):
                continue  # before it was locked, another writer took it for a left-over
            try:
                yield aside
            finally:
                _remove(aside)
            return


def _leftovers(path: str) -> Iterator[str]:
    """What killed writers of `path` left beside it, each one locked while it is looked at."""
    directory, name = os.path.split(path)
    pattern = re.compile(re.escape(name) + _OWN_NAME)
    try:
        names = os.listdir(directory or ".")
    except OSError:  # not there, or not to be read
        return
    for leftover in filter(pattern.fullmatch, names):
        with held(os.path.join(directory, leftover)) as is_free:
            if is_free:
                yield os.path.join(directory, leftover)


def _remove(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            os.remove(path)


@contextlib.contextmanager
def _errors_of_writing(path: str) -> Iterator[None]:
    """Says in one sentence that `path` cannot be written; errors of what else the block does stay as they are."""
    try:
        yield
    except OSError as error:
        name = str(error.filename or "")
        is_inside = re.fullmatch(f"{re.escape(path)}({_OWN_NAME})?({re.escape(os.sep)}.*)?", name)
        is_parent = name and path.startswith(os.path.join(name, ""))
        if not is_inside and not is_parent and error.errno not in _WRITING_ALONE:
            raise
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    except InputError:
        raise
    except Exception as error:
        if reason := reason_of_writing(error):
            raise InputError(f"cannot write {path}: {reason}") from error
        raise


def reason_of_writing(error: Exception) -> str:
    """Why the system could not write, where TensorFlow or another library tells it in its own way; else ""."""
    return next((reason for reason in map(os.strerror, _FULL) if reason in str(error)), "")


def sha256(path: str | os.PathLike[str]) -> str:
    """The file's SHA-256, as hexadecimal text."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
