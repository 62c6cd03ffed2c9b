"""One process at a time for an output directory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from albert_tf import storage
from albert_tf.errors import InputError
from albert_tf.file_lock import held


@contextlib.contextmanager
def only_user(output_dir: str, flag: str = "--output_dir") -> Iterator[None]:
    """Keeps other processes from using the directory during the block; an address is not guarded.

    The system lets go of it when the process ends, however it ends.

    Args:
        output_dir: it is there.
        flag: that names it, for the message.

    Raises:
        InputError: another process uses it.
    """
    if storage.is_remote(output_dir):
        yield
        return
    with held(output_dir) as is_free:
        if is_free is False:
            raise InputError(
                f"{flag}={output_dir} is in use by another process: wait for its end, or give another directory"
            )
        yield
