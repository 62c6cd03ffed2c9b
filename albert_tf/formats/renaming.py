"""Values of a file under their released names, each of which only one of them may have."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from albert_tf.errors import InputError


def renamed(values: Mapping[str, np.ndarray], names: Mapping[str, str], path: str) -> dict[str, np.ndarray]:
    """The values under other names.

    Args:
        values: name in the file to array.
        names: name in the file -> released name, for each of them.
        path: for the message.

    Raises:
        InputError: two of them have one released name, so that one would get lost.
    """
    found: dict[str, str] = {}
    for name in values:
        other = found.setdefault(names[name], name)
        if other != name:
            raise InputError(
                f"{path} has two values for {names[name]}, {other} and {name}: it is of more than one model, or "
                "damaged; save the one that is meant alone"
            )
    return {names[name]: value for name, value in values.items()}
