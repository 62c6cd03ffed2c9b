"""The output directory of a fine-tuning before anything is in it: whether it may be written."""

from __future__ import annotations

from albert_tf import output_lock, run_settings, storage, task_file
from albert_tf.errors import InputError
from albert_tf.formats import portable


def check(output_dir: str) -> None:
    """Refuses a directory that a fine-tuning must not write to; writes nothing.

    Raises:
        InputError: it is a file, another process uses it, it holds a pre-training, or its `model` holds other things.
    """
    if storage.exists(output_dir) and not storage.is_directory(output_dir):
        raise InputError(f"--output_dir={output_dir} is a file: give a directory, it need not be there yet")
    if storage.is_directory(output_dir):
        with output_lock.only_user(output_dir):
            pass
    if run_settings.holds_fine_tuning(output_dir) is False:
        raise InputError(
            f"--output_dir={output_dir} holds a pre-training run: give another directory, and that one as --model "
            "to begin with its weights"
        )
    model = storage.join(output_dir, task_file.MODEL)
    if storage.exists(model) and not storage.is_directory(model):
        raise InputError(f"--output_dir={output_dir}: {model} is a file, and the model is to be written there")
    names = storage.list_directory(model)
    foreign = [name for name in names if name not in (*portable.FILES, task_file.TASK_FILE)]
    if names and task_file.TASK_FILE not in names:
        foreign = foreign or names
    if foreign:
        raise InputError(
            f"--output_dir={output_dir}: {model} holds {', '.join(foreign[:3])}, which would be lost: give another "
            "directory"
        )
