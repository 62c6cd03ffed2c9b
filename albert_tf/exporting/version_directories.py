"""Numbered directories, as TF Serving looks for the versions of a model: it serves the highest number."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from albert_tf import output_lock, storage
from albert_tf.errors import InputError


def versions(base: str) -> list[tuple[int, str]]:
    """What has a number as its name in the directory `base`, if there is one: number and path, the highest first."""
    names = [name for name in storage.list_directory(base) if name.isdecimal() and name.isascii()]
    return sorted(((int(name), storage.join(base, name)) for name in names), reverse=True)


def next_version(base: str) -> int:
    """One more than the highest number among the names in the directory `base`; 1 where there is none."""
    return max((number for number, _ in versions(base)), default=0) + 1


@contextlib.contextmanager
def new_version(base: str, version: int) -> Iterator[str]:
    """Yields a local directory to fill; its content is `base`/`version` when the block ends well.

    Raises:
        InputError: that version is there already, or cannot be written, or another process exports to `base`.
    """
    path = storage.join(base, str(version))
    storage.make_directory(base)
    with output_lock.only_user(base, "--output"):
        if storage.exists(path):
            raise InputError(f"{path} is there already, and a server may have loaded it: give another version, or none")
        with storage.complete_directory(path) as directory:
            yield directory
