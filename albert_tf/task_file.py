"""Where a fine-tuned model lies and what its task.json tells, read without TensorFlow; `task_model` writes both."""

from __future__ import annotations

from typing import Any

from albert_tf import storage
from albert_tf.errors import InputError

TASK_FILE = "task.json"
MODEL = "model"  # the directory in the output directory of a run
FORMAT = 1
PAIRS = "pairs"  # in task.json: whether texts came in pairs


def find(path: str) -> str | None:
    """The model directory that a path stands for: itself, or the one in a run's output directory; None for neither."""
    for directory in (path, storage.join(path, MODEL)):
        if storage.exists(storage.join(directory, TASK_FILE)):
            return directory
    return None


def read_about(directory: str) -> dict[str, Any]:
    """The content of task.json.

    Raises:
        InputError: it is missing, damaged, or of another format.
    """
    path = storage.join(directory, TASK_FILE)
    values = storage.read_json(path)
    if not isinstance(values, dict) or values.get("format") != FORMAT or not isinstance(values.get("settings"), dict):
        raise InputError(f"{path} is not a {TASK_FILE} of format {FORMAT} with settings: fine-tune the model again")
    return values
