"""What an error of a TensorFlow operation says to a person."""

from __future__ import annotations

import re
from typing import Any

_OF_A_GRAPH = "Graph execution error:"


def reason(error: Any) -> str:
    """The line of a `tf.errors.OpError` that says what is wrong, without the names of the operation.

    That is the first one, or where a graph was run the last one before the operation's name.
    """
    lines = error.message.splitlines() or [""]
    says = 0
    if lines[0] == _OF_A_GRAPH:
        says = next((at for at, line in enumerate(lines) if line.lstrip().startswith("[[")), len(lines)) - 1
    return re.sub(r"^\{\{.*?\}\} *| *\[Op:.*$", "", lines[says])
