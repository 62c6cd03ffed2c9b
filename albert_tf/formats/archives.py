"""Archives of released models, unpacked for the time of reading; nothing in them can write outside that place."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator

from albert_tf.errors import InputError

ARCHIVE_SUFFIXES = (".tar.gz", ".tgz", ".tar")


def is_archive(path: str | os.PathLike[str]) -> bool:
    """Whether the path is a file with an archive's suffix."""
    return os.fspath(path).endswith(ARCHIVE_SUFFIXES) and os.path.isfile(path)


@contextlib.contextmanager
def unpacked(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yields a temporary directory with the content of an archive, below its top folders if it has such.

    Raises:
        InputError: the archive is damaged, cut short or does not fit on the disk, or a member would be a link, a
            device or a file outside the directory.
    """
    path = os.fspath(path)
    with tempfile.TemporaryDirectory(prefix="albert_tf_") as directory:
        try:
            with tarfile.open(path) as archive:
                for member in archive:
                    _extract(archive, member, directory, path)
        except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(
                f"cannot unpack the archive {path} ({reason}): it is damaged, cut short or does not fit in {directory}"
            ) from error
        top = _below_top_folders(directory)
        with named_after(path, top):
            yield top


@contextlib.contextmanager
def named_after(path: str, directory: str) -> Iterator[None]:
    """Errors about files in a temporary directory, which will be gone, name the path that it stands for."""
    try:
        yield
    except InputError as error:
        raise InputError(str(error).replace(directory, path)) from error


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, directory: str, path: str) -> None:
    name = pathlib.PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts or not (member.isreg() or member.isdir()):
        raise InputError(
            f"the archive {path} is not unpacked: its member {member.name!r} is a link, a device or outside the "
            "archive's folder, which no released model has"
        )
    target = os.path.join(directory, *name.parts)
    if member.isdir():
        os.makedirs(target, exist_ok=True)
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    source = archive.extractfile(member)
    assert source is not None  # it is a regular file
    with source, open(target, "wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)


def _below_top_folders(directory: str) -> str:
    names = os.listdir(directory)
    while len(names) == 1 and os.path.isdir(os.path.join(directory, names[0])):
        directory = os.path.join(directory, names[0])
        names = os.listdir(directory)
    return directory
