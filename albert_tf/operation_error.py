"""What an error of a TensorFlow operation says to a person."""

from __future__ import annotations

import re
from typing import Any


def reason(error: Any) -> str:
    """The first line of a `tf.errors.OpError` without the names of the operation, before it and behind."""
    first = (error.message.splitlines() or [""])[0]
    return re.sub(r"^\{\{.*?\}\} *| *\[Op:.*$", "", first)
