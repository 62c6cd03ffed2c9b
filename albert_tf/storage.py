"""Files by path or by address: local ones through Python, `gs://…` and the like through tf.io.gfile.

TensorFlow is imported only when an address with a scheme is met, so that checks of local files stay fast.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from typing import IO, Any

from albert_tf import files, json_text
from albert_tf.errors import InputError

_LAST = "saved_model.pb"  # is copied behind all else


def is_remote(path: str) -> bool:
    """Whether `path` is an address with a scheme, such as gs://bucket/name."""
    return "://" in path


def join(directory: str, *names: str) -> str:
    """`directory` and `names` joined by the separator of their file system."""
    return "/".join([directory.rstrip("/"), *names]) if is_remote(directory) else os.path.join(directory, *names)


def basename(path: str) -> str:
    """The last component of `path`."""
    return path.rstrip("/").rsplit("/", 1)[-1] if is_remote(path) else os.path.basename(os.path.normpath(path))


def dirname(path: str) -> str:
    """All but the last component of `path`."""
    return path.rstrip("/").rsplit("/", 1)[0] if is_remote(path) else os.path.dirname(path)


def beside(path: str, name: str) -> str:
    """`name` in the directory that holds `path`."""
    return join(dirname(path if is_remote(path) else os.path.abspath(path)), name)


def same_file(path: str, other: str) -> bool:
    """Whether two names are of one file that exists; those of addresses are compared as they are written."""
    if is_remote(path) or is_remote(other):
        return path == other
    return os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)


def expand_globs(patterns: str, flag: str) -> list[str]:
    """`files.expand_globs` that takes addresses too; an address pattern must match a file.

    Raises:
        InputError: a pattern matches nothing.
    """
    if not is_remote(patterns):
        return files.expand_globs(patterns, flag)
    found: set[str] = set()
    for pattern in (p.strip() for p in patterns.split(",")):
        matches = _gfile().glob(pattern) if is_remote(pattern) else files.expand_globs(pattern, flag)
        if not matches:
            raise InputError(f"--{flag}: no file matches {pattern!r}")
        found.update(matches)
    return sorted(found)


@contextlib.contextmanager
def open_binary(path: str) -> Iterator[IO[bytes]]:
    """Opens `path` for reading bytes."""
    with _gfile().GFile(path, "rb") if is_remote(path) else open(path, "rb") as file:
        yield file


@contextlib.contextmanager
def open_to_append(path: str) -> Iterator[IO[bytes]]:
    """Opens `path` for adding bytes at its end."""
    with _gfile().GFile(path, "ab") if is_remote(path) else open(path, "ab") as file:
        yield file


def size(path: str) -> int:
    """The length of the file in bytes."""
    return int(_gfile().stat(path).length) if is_remote(path) else os.path.getsize(path)


def exists(path: str) -> bool:
    """Whether a file or directory of this name exists."""
    return _gfile().exists(path) if is_remote(path) else os.path.exists(path)


def is_directory(path: str) -> bool:
    """Whether `path` is a directory."""
    return _gfile().isdir(path) if is_remote(path) else os.path.isdir(path)


def list_directory(path: str) -> list[str]:
    """The names in a directory, sorted; none when it does not exist."""
    if not is_directory(path):
        return []
    return sorted(name.rstrip("/") for name in (_gfile().listdir(path) if is_remote(path) else os.listdir(path)))


def make_directory(path: str) -> None:
    """Creates `path` and its parents.

    Raises:
        InputError: it cannot be created.
    """
    try:
        _gfile().makedirs(path) if is_remote(path) else os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot create the directory {path}: {error.strerror}: give another") from error


def remove_directory(path: str) -> None:
    """Removes `path` and all in it, if it is there."""
    if not is_remote(path):
        shutil.rmtree(path, ignore_errors=True)
    elif _gfile().isdir(path):
        import tensorflow as tf

        with contextlib.suppress(tf.errors.NotFoundError):
            _gfile().rmtree(path)


def write_bytes(path: str, content: bytes) -> None:
    """Writes a file, complete or not at all (an object store shows an object only when it is complete)."""
    if is_remote(path):
        with _gfile().GFile(path, "wb") as file:
            file.write(content)
    else:
        with files.atomic_write(path) as file:
            file.write(content)


def read_bytes(path: str) -> bytes:
    """The whole content of a file.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with open_binary(path) as file:
            return file.read()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except Exception as error:  # tf.io.gfile has its own kinds
        raise InputError(f"cannot read {path}: {error}") from error


def write_json(path: str, value: Any) -> None:
    """Writes `value` as indented JSON, complete or not at all."""
    write_bytes(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8"))


def read_json(path: str) -> Any:
    """Reads a JSON file.

    Raises:
        InputError: the file is missing or is not JSON.
    """
    content = read_bytes(path)
    try:
        return json_text.parse(content, allow_repeated_keys=True)
    except ValueError as error:
        raise InputError(f"{path} is not a JSON file: {error}") from error


def sync_directory(path: str) -> None:
    """Forces the files of a local directory to disk, so that a later rename never names content that is lost."""
    for folder, _, names in os.walk(path):
        for entry in [*(os.path.join(folder, name) for name in names), folder]:
            descriptor = os.open(entry, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


@contextlib.contextmanager
def complete_directory(path: str, replaces: Collection[str] = ()) -> Iterator[str]:
    """Yields a local directory to fill; its content replaces `path` when the block ends well.

    `replaces` is as of `files.atomic_directory`; of what is at an address everything is replaced. For an address the
    files are uploaded after the block, since writers of safetensors and the like need a local path.
    """
    if not is_remote(path):
        with files.atomic_directory(path, replaces) as directory:
            yield directory
        return
    with files_to_add(path) as directory:
        yield directory
        remove_directory(path)


@contextlib.contextmanager
def files_to_add(path: str) -> Iterator[str]:
    """Yields a local directory whose files are in the directory `path` when the block ends well: itself, if local."""
    if not is_remote(path):
        make_directory(path)
        yield path
        return
    with tempfile.TemporaryDirectory() as directory:
        yield directory
        make_directory(path)
        _upload(directory, path)


def _upload(directory: str, path: str) -> None:
    """Copies all that is in a local directory; what a server waits for comes when everything else is there."""
    found = []
    for folder, folders, names in os.walk(directory):
        inner = [] if folder == directory else os.path.relpath(folder, directory).split(os.sep)
        for name in folders:
            make_directory(join(path, *inner, name))
        found += [[*inner, name] for name in names]
    for names in sorted(found, key=lambda names: (names[-1] == _LAST, names)):
        _gfile().copy(os.path.join(directory, *names), join(path, *names), overwrite=True)


def copy_to_local(path: str, local: str) -> None:
    """Copies one file, wherever it is, to a local path."""
    _gfile().copy(path, local, overwrite=True)


def _gfile() -> Any:
    import tensorflow as tf

    return tf.io.gfile
