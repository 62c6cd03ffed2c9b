"""A lock between processes that the operating system lets go of when its holder ends, however it ends."""

from __future__ import annotations

import contextlib
import errno
import sys
import time
from collections.abc import Callable, Iterator
from typing import IO

from albert_tf.errors import InputError

SECONDS_BETWEEN_TRIES = 0.1

if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextlib.contextmanager
def file_lock(path: str, when_taken: Callable[[], None], sleep: Callable[[float], None] = time.sleep) -> Iterator[None]:
    """Holds the lock `path` during the block; waits while another process or thread has it.

    Args:
        path: a file for the lock alone. It is made, and it stays: were it removed, two processes could each hold one.
        when_taken: called once if there is somebody to wait for.
        sleep: waits so many seconds.

    Raises:
        InputError: the file cannot be made.
    """
    try:
        opened = open(path, "ab")  # noqa: SIM115 (closed below)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    with opened as file:
        told = False
        while not _take(file):
            if not told:
                when_taken()
                told = True
            sleep(SECONDS_BETWEEN_TRIES)
        yield  # closing the file lets go of the lock


def _take(file: IO[bytes]) -> bool:
    try:
        _lock(file)
    except OSError as error:
        # Some network file systems have no locks: better no lock than no file.
        return error.errno not in (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK)
    return True
