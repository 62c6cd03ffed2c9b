"""A directory to the backend for what is in it, ready to answer."""

from __future__ import annotations

import contextlib
import os

from albert_tf.answering.loading import load_answerer
from albert_tf.errors import InputError
from albert_tf.serving import saved_model
from albert_tf.serving.backend import DEFAULT_SIGNATURE, Backend
from albert_tf.serving.portable import PortableBackend
from albert_tf.serving.settings import Settings

Stamp = tuple[tuple[str, int, int], ...]


def directory_of_versions(path: str, settings: Settings) -> SavedModelVersions | None:
    """Where newer versions of a SavedModel at a path will be; None where it has no numbered ones."""
    found = saved_model.newest_version(path)
    return None if found is None or found[0] == path else SavedModelVersions(path, settings)


class SavedModelVersions:
    """A `Directory` with a SavedModel in each of its numbered directories."""

    def __init__(self, path: str, settings: Settings):
        self._path = path
        self._settings = settings
        self._tried: tuple[str, Stamp] | None = None

    def wanted(self, current: int) -> int | None:
        """See `Directory`: the newest, be it the one before a version that was taken away.

        What did not load is tried again when its files have changed, since it may have been copied meanwhile.
        """
        found = saved_model.newest_version(self._path)
        if found is None or found[1] == current or self._tried == (found[0], _stamp(found[0])):
            return None
        return found[1]

    def load(self, version: int) -> Backend:
        """See `Directory`."""
        found = saved_model.newest_version(self._path)
        if found is None or found[1] != version:
            raise InputError(f"{self._path} has no version {version} any more")
        self._tried = found[0], _stamp(found[0])
        backend = load_backend(found[0], self._settings)
        self._tried = None
        return backend


def _stamp(directory: str) -> Stamp:
    """The names, sizes and times of the files in it."""
    found = []
    for folder, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):
                about = os.stat(os.path.join(folder, name))
                found.append((os.path.join(folder, name), about.st_size, about.st_mtime_ns))
    return tuple(sorted(found))


def load_backend(path: str, settings: Settings) -> Backend:
    """The SavedModel, or the model of any other form, at a path; it has answered once where it has an example.

    Raises:
        InputError: nothing that can answer is there.
    """
    backend: Backend = saved_model.load(path, settings.max_answer_values) or PortableBackend(
        load_answerer(path, batch_size=settings.max_batch_rows, fills=False)
    )
    example = backend.examples.get(DEFAULT_SIGNATURE)
    if example is not None:  # so that the first request does not wait for the tracing
        backend.run([backend.from_rows(DEFAULT_SIGNATURE, [example])])
    return backend
