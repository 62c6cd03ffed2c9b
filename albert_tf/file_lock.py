"""Locks between processes that the operating system lets go of when their holder ends, however it ends."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Callable, Iterator

from albert_tf.errors import InputError

SECONDS_BETWEEN_TRIES = 0.1

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


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
        while _take(file.fileno()) is False:
            if not told:
                when_taken()
                told = True
            sleep(SECONDS_BETWEEN_TRIES)
        yield  # closing the file lets go of the lock


@contextlib.contextmanager
def held(path: str) -> Iterator[bool | None]:
    """Holds the lock on a file or directory that is there, during the block; does not wait.

    Yields:
        Whether it was there and free. None where that cannot be told: it cannot be opened, the file system has no
        locks, or the system is Windows, which does not rename what is open.
    """
    descriptor, is_free = None, None
    try:
        if sys.platform != "win32":
            descriptor = os.open(path, os.O_RDONLY)
            is_free = _take(descriptor)
    except FileNotFoundError:
        is_free = False
    except OSError:
        pass
    try:
        yield is_free
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _take(descriptor: int) -> bool | None:
    """Whether the lock was free; None where there are no locks, as on some network file systems."""
    try:
        _lock(descriptor)
    except OSError as error:
        return False if error.errno in (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK) else None
    return True
