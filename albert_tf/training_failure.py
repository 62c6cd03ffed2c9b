"""What both trainings say of a failure that is nobody's mistake in the program."""

from __future__ import annotations

from albert_tf import files
from albert_tf.errors import InputError


def of_the_machine(error: Exception) -> InputError | None:
    """What to say if the disk or the memory of the device is full, else None."""
    import tensorflow as tf

    if not isinstance(error, tf.errors.OpError):
        return None
    if reason := files.reason_of_writing(error):
        return InputError(f"cannot write below --output_dir: {reason} (the same command goes on when there is room)")
    if not isinstance(error, tf.errors.ResourceExhaustedError):  # which a full disk is to TensorFlow, too
        return None
    return InputError(
        "the memory of the device is full: raise --gradient_accumulation_steps, or lower --train_batch_size, "
        "--eval_batch_size or the length of the sequences (--max_seq_length)"
    )
