"""A directory to the backend for what is in it, ready to answer."""

from __future__ import annotations

from albert_tf.answering.loading import load_answerer
from albert_tf.serving import saved_model
from albert_tf.serving.backend import DEFAULT_SIGNATURE, Backend
from albert_tf.serving.portable import PortableBackend


def load_backend(path: str, max_batch_rows: int) -> Backend:
    """The SavedModel, or the model of any other form, at a path; it has answered once where it has an example.

    Raises:
        InputError: nothing that can answer is there.
    """
    backend: Backend = saved_model.load(path) or PortableBackend(
        load_answerer(path, batch_size=max_batch_rows, fills=False)
    )
    example = backend.examples.get(DEFAULT_SIGNATURE)
    if example is not None:  # so that the first request does not wait for the tracing
        backend.run([backend.from_rows(DEFAULT_SIGNATURE, [example])])
    return backend
