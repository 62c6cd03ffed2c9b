"""TensorFlow's checkpoint files (PREFIX.index, PREFIX.data-…): names, shapes and values, by name and by object."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf import storage
from albert_tf.errors import InputError

OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
READ_ERRORS = (tf.errors.OpError, RuntimeError, ValueError, IndexError)  # all of them come from damaged files
VARIABLE_KEY_END = "/.ATTRIBUTES/VARIABLE_VALUE"  # of the keys of variables in an object-based checkpoint
_SHARD = re.compile(r"\.data-(\d{5})-of-(\d{5})$")


class TensorBundle:
    """One checkpoint, opened for reading.

    Attributes:
        prefix: the path without `.index`.
        shapes: the name of each tensor in the file -> its shape, sorted by name.

    Raises:
        InputError: the index is missing or damaged.
    """

    def __init__(self, prefix: str):
        self.prefix = prefix
        try:
            self._reader = tf.train.load_checkpoint(prefix)
            shapes = self._reader.get_variable_to_shape_map()
            self._types = self._reader.get_variable_to_dtype_map()
        except READ_ERRORS as error:
            raise InputError(f"cannot read the checkpoint index {prefix}.index: {_first_line(error)}") from error
        self.shapes: dict[str, tuple[int, ...]] = {name: tuple(shapes[name]) for name in sorted(shapes)}

    @property
    def is_object_based(self) -> bool:
        """Whether it was saved from Python objects (TensorFlow 2) and not by the names of variables."""
        return OBJECT_GRAPH in self.shapes

    def is_number(self, name: str) -> bool:
        """Whether the tensor holds numbers, not text."""
        return self._types[name] != tf.string

    def object_graph(self) -> bytes:
        """The serialized TrackableObjectGraph of an object-based checkpoint."""
        return self._tensor(OBJECT_GRAPH)

    def read(self, names: Iterable[str]) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
        """Reads tensors.

        Returns:
            Name to array, other kinds of float than float32 turned into float32; and a note for each kind turned.

        Raises:
            InputError: a file with values is missing, cut or damaged.
        """
        values: dict[str, np.ndarray] = {}
        turned: dict[str, int] = {}
        for name in names:
            value = np.asarray(self._tensor(name))
            if self._types[name].is_floating and value.dtype != np.float32:
                turned[self._types[name].name] = turned.get(self._types[name].name, 0) + 1
                value = value.astype(np.float32)
            values[name] = value
        return values, tuple(f"{count} {kind} arrays were turned into float32" for kind, count in turned.items())

    def _tensor(self, name: str) -> Any:
        try:
            return self._reader.get_tensor(name)
        except READ_ERRORS as error:
            missing = self._missing_shard()
            if missing:
                raise InputError(f"{missing} is missing: it holds the weights of {self.prefix}.index") from None
            raise InputError(
                f"cannot read {name} from {self.prefix}.data-…: the file is cut or damaged ({_first_line(error)})"
            ) from error

    def _missing_shard(self) -> str | None:
        directory, base = os.path.split(self.prefix)
        names = storage.list_directory(directory or ".")
        found = [
            match for name in names if name.startswith(f"{base}.data-") for match in [_SHARD.search(name)] if match
        ]
        count = int(found[0][2]) if found else 1
        wanted = [f"{self.prefix}.data-{shard:05d}-of-{count:05d}" for shard in range(count)]
        return next((path for path in wanted if not storage.exists(path)), None)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
